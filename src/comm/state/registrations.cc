#include "comm/state/registrations.h"

#include <algorithm>

namespace tutti::comm {

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
  ranges_.push_back(std::make_unique<Range>(Range{first, end}));
  return ranges_.back().get();
}

bool Registrations::remove(const void* handle) {
  const std::lock_guard lock(mutex_);
  const auto known =
      std::find_if(ranges_.begin(), ranges_.end(), [&](const auto& range) { return range.get() == handle; });
  if (known == ranges_.end()) return false;
  if (--(*known)->count == 0) ranges_.erase(known);
  return true;
}

std::size_t Registrations::size() const {
  const std::lock_guard lock(mutex_);
  return ranges_.size();
}

}  // namespace tutti::comm
