// Steady time: deadlines that every bounded wait takes.
#pragma once

#include <algorithm>
#include <chrono>

namespace tutti {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// A point in steady time after which a wait gives up. Trivially copyable; safe to share between threads.
class Deadline {
 public:
  /// Never expires. Only for waits that something else bounds (an Abort, a peer's deadline); say which.
  static Deadline never() { return Deadline(SteadyClock::time_point::max()); }
  static Deadline at(SteadyClock::time_point when) { return Deadline(when); }
  /// `span` from now; a negative span has expired already.
  static Deadline in(std::chrono::nanoseconds span) { return Deadline(SteadyClock::now() + span); }

  bool isNever() const { return when_ == SteadyClock::time_point::max(); }
  bool expired() const { return !isNever() && SteadyClock::now() >= when_; }
  SteadyClock::time_point when() const { return when_; }

  /// Time left, rounded up to a millisecond, never negative, at most `cap` (an hour unless told).
  milliseconds remaining(milliseconds cap = std::chrono::hours(1)) const {
    if (isNever()) return cap;
    const auto left = std::chrono::ceil<milliseconds>(when_ - SteadyClock::now());
    return std::clamp(left, milliseconds(0), cap);
  }
  Deadline earlierOf(Deadline other) const { return when_ <= other.when_ ? *this : other; }

 private:
  explicit Deadline(SteadyClock::time_point when) : when_(when) {}
  SteadyClock::time_point when_;
};

/// Seconds since `start`, for messages.
inline double secondsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

}  // namespace tutti
