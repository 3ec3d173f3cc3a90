#include "transport/common/registered_memory.h"

#include <algorithm>
#include <utility>

namespace tutti::transport {

std::uint64_t RegisteredMemory::add(std::uintptr_t begin, std::uintptr_t end) {
  const std::lock_guard lock(mutex_);
  for (RegisteredRange& other : ranges_) {
    if (other.capture != 0 && other.begin < end && begin < other.end) other.outdated = true;
  }
  ranges_.push_back({.begin = begin, .end = end, .id = ++lastId_});
  return lastId_;
}

void RegisteredMemory::remove(std::uint64_t id) {
  {
    const std::lock_guard lock(mutex_);
    if (std::erase_if(ranges_, [&](const RegisteredRange& range) { return range.id == id; }) == 0) return;
    gone_.fetch_add(1, std::memory_order_release);
  }
  tidy();
}

bool RegisteredMemory::addForGraph(std::uintptr_t begin, std::uintptr_t end, unsigned long long capture) {
  const std::lock_guard lock(mutex_);
  const bool known = std::any_of(ranges_.begin(), ranges_.end(), [&](const RegisteredRange& range) {
    return range.capture == capture && range.holds(begin, end - begin);
  });
  if (known) return false;
  ranges_.push_back({.begin = begin, .end = end, .id = ++lastId_, .capture = capture});
  return true;
}

void RegisteredMemory::removeForGraph(unsigned long long capture) {
  const std::lock_guard lock(mutex_);
  const auto ended = std::erase_if(ranges_, [&](const RegisteredRange& range) { return range.capture == capture; });
  if (ended > 0) gone_.fetch_add(ended, std::memory_order_release);
}

bool RegisteredMemory::covers(std::uintptr_t from, std::size_t bytes, unsigned long long capture) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const RegisteredRange& range) {
    const bool counts = range.capture == 0 || (range.capture == capture && !range.outdated);
    return counts && !range.refused && range.holds(from, bytes);
  });
}

std::optional<RegisteredRange> RegisteredMemory::find(std::uintptr_t from, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto latest = std::find_if(ranges_.rbegin(), ranges_.rend(), [&](const RegisteredRange& range) {
    return !range.outdated && range.holds(from, bytes);
  });
  if (latest == ranges_.rend()) return {};
  return *latest;
}

bool RegisteredMemory::knows(std::uint64_t id) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const RegisteredRange& range) { return range.id == id; });
}

bool RegisteredMemory::refuse(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  for (RegisteredRange& range : ranges_) {
    if (range.id == id) return !std::exchange(range.refused, true);
  }
  return false;
}

void RegisteredMemory::join(RegistrationHolder& holder) {
  const std::lock_guard lock(holdersMutex_);
  holders_.push_back(&holder);
}

void RegisteredMemory::leave(RegistrationHolder& holder) {
  const std::lock_guard lock(holdersMutex_);
  std::erase(holders_, &holder);
}

void RegisteredMemory::tidy() {
  const std::uint64_t gone = gone_.load(std::memory_order_acquire);
  if (tidied_.load(std::memory_order_acquire) == gone) return;
  const std::lock_guard lock(holdersMutex_);
  for (RegistrationHolder* holder : holders_) holder->tidy();
  tidied_.store(gone, std::memory_order_release);
}

}  // namespace tutti::transport
