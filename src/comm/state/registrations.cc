#include "comm/state/registrations.h"

#include <algorithm>
#include <utility>

#include "transport/common/registered_memory.h"

namespace tutti::comm {

Registrations::Registrations() : memory_(std::make_shared<transport::RegisteredMemory>()) {}

Registrations::~Registrations() {
  for (const auto& range : ranges_) memory_->remove(range->id);
}

void Registrations::tidy() {
  memory_->tidy();
}

bool Registrations::addForGraph(std::uintptr_t begin, std::size_t bytes, unsigned long long capture) {
  return memory_->addForGraph(begin, begin + bytes, capture);
}

std::shared_ptr<const void> Registrations::holdForGraph(unsigned long long capture) const {
  // The deleter is what counts: it runs once, with the last copy.
  return {memory_.get(), [memory = memory_, capture](const void*) { memory->removeForGraph(capture); }};
}

bool Registrations::cover(std::uintptr_t begin, std::size_t bytes, unsigned long long capture) const {
  return memory_->covers(begin, bytes, capture);
}

void* Registrations::add(const void* begin, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = address / kPage * kPage;
  const std::uintptr_t end = (address + bytes + kPage - 1) / kPage * kPage;
  const std::lock_guard lock(mutex_);
  for (const auto& range : ranges_) {
    if (range->begin > first || range->end < end) continue;
    ++range->count;
    return range.get();
  }
  ranges_.push_back(std::make_unique<Range>(Range{first, end, memory_->add(first, end)}));
  return ranges_.back().get();
}

bool Registrations::remove(const void* handle) {
  std::unique_ptr<Range> last;
  {
    const std::lock_guard lock(mutex_);
    const auto known =
        std::find_if(ranges_.begin(), ranges_.end(), [&](const auto& range) { return range.get() == handle; });
    if (known == ranges_.end()) return false;
    if (--(*known)->count == 0) {
      last = std::move(*known);
      ranges_.erase(known);
    }
  }
  if (last) memory_->remove(last->id);
  return true;
}

std::size_t Registrations::size() const {
  const std::lock_guard lock(mutex_);
  return ranges_.size();
}

}  // namespace tutti::comm
