#include "transport/net/lane/user_registrations.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"

namespace tutti::net {

UserRegistrations::UserRegistrations(std::shared_ptr<transport::RegisteredMemory> memory, MemoryRegistrar& registrar)
    : memory_(std::move(memory)), registrar_(registrar) {
  memory_->join(*this);
}

UserRegistrations::~UserRegistrations() {
  memory_->leave(*this);
  for (const Entry& entry : entries_) {
    if (!entry.refused) registrar_.deregister(entry.registration);
  }
}

UserRegistrations::Entry& UserRegistrations::entryOf(const transport::RegisteredRange& range) {
  const auto known =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.range == range.id; });
  if (known != entries_.end()) return *known;
  const std::size_t bytes = range.end - range.begin;
  std::string why;
  Entry entry{.range = range.id, .refused = true};
  if (!range.refused) {
    const ErrorsAsInfo harmless;
    const auto registered = registrar_.registerUser(reinterpret_cast<void*>(range.begin), bytes);
    entry.refused = !registered.ok();
    if (registered.ok()) entry.registration = registered.value();
    if (!registered.ok()) why = lastErrorText();
  }
  if (!why.empty() && memory_->refuse(range.id)) {
    warn(
        "{}: the network does not take the {} bytes at {:#x} that are registered: what lies there is sent through "
        "buffers of the library. {}",
        registrar_.text(), bytes, range.begin, why);
  }
  return entries_.emplace_back(entry);
}

std::optional<UserRegistrations::Use> UserRegistrations::begin(const void* data, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto range = memory_->find(reinterpret_cast<std::uintptr_t>(data), bytes);
  if (!range) return {};
  Entry& entry = entryOf(*range);
  if (entry.refused) return {};
  ++entry.underWay;
  return Use{entry.range, entry.registration};
}

void UserRegistrations::end(const Use& use) {
  const std::lock_guard lock(mutex_);
  const auto known =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.range == use.range; });
  if (known == entries_.end() || --known->underWay > 0) return;
  tidyLocked();
}

void UserRegistrations::tidy() {
  const std::lock_guard lock(mutex_);
  tidyLocked();
}

void UserRegistrations::tidyLocked() {
  const std::uint64_t gone = memory_->gone();
  if (gone == seen_) return;
  bool left = false;
  std::erase_if(entries_, [&](const Entry& entry) {
    if (memory_->knows(entry.range)) return false;
    left = left || entry.underWay > 0;
    if (entry.underWay > 0) return false;
    if (!entry.refused) registrar_.deregister(entry.registration);
    return true;
  });
  if (!left) seen_ = gone;
}

}  // namespace tutti::net
