// Host memory that a thread cannot have: operator new of this program, which each program has once.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

namespace tutti::test {

/// While it lives, operator new fails (std::bad_alloc) for `bytes` or more, on every thread but the one that made it.
class ShortMemory {
 public:
  explicit ShortMemory(std::size_t bytes);
  ShortMemory(const ShortMemory&) = delete;
  ~ShortMemory();
  /// How many times it failed.
  static int refusals();
};

/// While it lives, one allocation fails, of those of all threads but the one that made it: that with this number, from
/// 0 on.
class OneRefusal {
 public:
  explicit OneRefusal(long number);
  OneRefusal(const OneRefusal&) = delete;
  ~OneRefusal();
  /// How many allocations there were since it was made.
  static long seen();
};

/// Runs `life` `runs` times, each time with one allocation that fails: numbers spread over all that it makes. Which
/// step a number hits depends on the order of threads: over time, all. The test fails where `life` takes longer than
/// `bound`, or `well` says after one of them that not all is well.
void refuseOneByOne(long runs, std::chrono::seconds bound, const std::function<void()>& life,
                    const std::function<bool()>& well);

/// Every allocation of this thread fails.
class NoMemory {
 public:
  NoMemory();
  NoMemory(const NoMemory&) = delete;
  ~NoMemory();
};

}  // namespace tutti::test
