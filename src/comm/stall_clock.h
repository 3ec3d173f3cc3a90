// When to look whether an operation still moves: pure, so that it can be tested with any times.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace tutti {

/// Follows one communicator. While operations end in time it asks for nothing. One thread.
class StallClock {
 public:
  using Time = SteadyClock::time_point;

  /// `limit` 0: never due, never stalled.
  explicit StallClock(milliseconds limit) : limit_(limit) {}

  /// Whether something is under way. A communicator that is idle for a moment begins anew.
  void follow(Time now, bool busy) {
    if (!busy) {
      begun_.reset();
      seen_.reset();
      reported_ = false;
      return;
    }
    if (!begun_) begun_ = now;
  }

  /// Whether the counters should be read, at most every quarter of a second.
  bool due(Time now) const {
    if (limit_ <= milliseconds(0) || !begun_ || now - *begun_ < limit_) return false;
    return !read_ || now - *read_ >= (reported_ ? quiet() : kApart);
  }

  /// What was read, as a number that differs when anything moved.
  void read(Time now, std::uint64_t fingerprint) {
    read_ = now;
    if (seen_ == fingerprint) return;
    // What moves is no stall; it gets its time again.
    if (seen_) begun_ = now;
    seen_ = fingerprint;
    unmoved_ = now;
    reported_ = false;
  }

  /// Nothing has moved for long enough, and nobody has been told.
  bool stalled(Time now) const {
    return limit_ > milliseconds(0) && begun_ && seen_ && !reported_ && now - *begun_ >= limit_ &&
           now - unmoved_ >= quiet();
  }
  void report() { reported_ = true; }
  bool reported() const { return reported_; }

  /// How long the operation has been under way without having been seen to move.
  milliseconds age(Time now) const {
    return begun_ ? std::chrono::duration_cast<milliseconds>(now - *begun_) : milliseconds(0);
  }

 private:
  static constexpr milliseconds kApart{250};
  /// Unmoved for so long means that it does not move: a tenth of the limit, a second at least.
  milliseconds quiet() const { return std::max(milliseconds(1000), limit_ / 10); }

  milliseconds limit_;
  std::optional<Time> begun_;
  std::optional<Time> read_;
  std::optional<std::uint64_t> seen_;
  Time unmoved_;
  bool reported_ = false;
};

}  // namespace tutti
