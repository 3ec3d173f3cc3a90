// Host memory that a thread cannot have: operator new of this program, which each program has once.
#pragma once

#include <atomic>
#include <cstddef>

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

/// Every allocation of this thread fails.
class NoMemory {
 public:
  NoMemory();
  NoMemory(const NoMemory&) = delete;
  ~NoMemory();
};

}  // namespace tutti::test
