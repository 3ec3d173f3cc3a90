// What a test plugin was told of memory, and from where it was asked to send: for tests of what is sent in place.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <vector>

namespace tutti::test {

/// Kept since the library was loaded. Any thread.
class TestNetMemory {
 public:
  struct Range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
    bool holds(const Range& other) const { return begin <= other.begin && other.end <= end; }
  };
  static Range rangeOf(const void* data, std::size_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(data);
    return {begin, begin + bytes};
  }

  /// The plugin's side. False: it was told to refuse such memory.
  bool enter(void* connection, void* data, std::size_t bytes, bool onGpu) {
    const std::lock_guard lock(mutex_);
    const Range range = rangeOf(data, bytes);
    const bool refused =
        std::any_of(refused_.begin(), refused_.end(), [&](const Range& other) { return other.overlaps(range); });
    if (refused) ++refusals_;
    if (!refused) entries_.push_back({connection, data, range, onGpu}), history_.push_back(range);
    return !refused;
  }
  void leave(void* connection, void* handle) {
    const std::lock_guard lock(mutex_);
    const auto known = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.connection == connection && entry.handle == handle;
    });
    if (known == entries_.end()) ++faults_;
    if (known != entries_.end()) entries_.erase(known);
  }
  void send(void* connection, void* data, std::size_t bytes, void* handle) {
    const std::lock_guard lock(mutex_);
    const Range range = rangeOf(data, bytes);
    const bool covered = std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.connection == connection && entry.handle == handle && entry.range.holds(range);
    });
    if (!covered && bytes > 0) ++faults_;
    if (watched_) sent_.push_back(range);
  }
  /// Whatever was registered on it should have been taken back.
  void close(void* connection) {
    const std::lock_guard lock(mutex_);
    faults_ +=
        static_cast<int>(std::erase_if(entries_, [&](const Entry& entry) { return entry.connection == connection; }));
  }

  // --- a test's side

  /// From now on memory that overlaps this is refused.
  void refuse(const void* data, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    refused_.push_back(rangeOf(data, bytes));
  }
  int refusals() const {
    const std::lock_guard lock(mutex_);
    return refusals_;
  }
  /// Messages from memory that was not registered, registrations left at close, such that were unknown.
  int faults() const {
    const std::lock_guard lock(mutex_);
    return faults_;
  }
  /// Registrations that overlap the memory, and are not taken back.
  std::size_t registrationsOf(const void* data, std::size_t bytes) const {
    const std::lock_guard lock(mutex_);
    const Range range = rangeOf(data, bytes);
    return static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(),
                                                  [&](const Entry& entry) { return entry.range.overlaps(range); }));
  }
  /// The same, taken back or not.
  std::size_t everRegistered(const void* data, std::size_t bytes) const {
    const std::lock_guard lock(mutex_);
    const Range range = rangeOf(data, bytes);
    return static_cast<std::size_t>(
        std::count_if(history_.begin(), history_.end(), [&](const Range& entry) { return entry.overlaps(range); }));
  }
  std::size_t registrations() const {
    const std::lock_guard lock(mutex_);
    return entries_.size();
  }
  /// Bytes that were sent from there.
  std::size_t bytesFrom(const void* data, std::size_t bytes) const {
    const std::lock_guard lock(mutex_);
    std::size_t sum = 0;
    for (const Range& one : sent_) sum += rangeOf(data, bytes).holds(one) ? one.end - one.begin : 0;
    return sum;
  }
  /// Bytes that were sent from anywhere, in messages of at least `least` bytes.
  std::size_t bytesSent(std::size_t least) const {
    const std::lock_guard lock(mutex_);
    std::size_t sum = 0;
    for (const Range& one : sent_) sum += one.end - one.begin >= least ? one.end - one.begin : 0;
    return sum;
  }
  /// From now on, and nothing before.
  void watchSent() {
    const std::lock_guard lock(mutex_);
    watched_ = true;
    sent_.clear();
  }

 private:
  struct Entry {
    void* connection = nullptr;
    void* handle = nullptr;
    Range range;
    bool onGpu = false;
  };
  mutable std::mutex mutex_;
  std::list<Entry> entries_;
  std::vector<Range> history_;
  std::vector<Range> sent_;
  std::vector<Range> refused_;
  bool watched_ = false;
  int refusals_ = 0;
  int faults_ = 0;
};

/// The function that each test plugin exports as "testNetMemory".
using TestNetMemoryFunction = TestNetMemory*();

}  // namespace tutti::test
