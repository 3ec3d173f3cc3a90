// When to look whether an operation still moves: pure, so that it can be tested with any times.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace tutti::comm {

/// Follows one communicator. While operations end in time it asks for nothing. One thread.
class StallClock {
 public:
  using Time = SteadyClock::time_point;

  /// `limit` 0: never due, never stalled.
  explicit StallClock(milliseconds limit) : limit_(limit) {}

  /// Whether something is under way. A communicator that is idle for a moment begins anew.
  void follow(Time now, bool busy) {
    if (!busy) {
      busy_ = known_ = reported_ = false;
      return;
    }
    if (!busy_) begun_ = now;
    busy_ = true;
  }

  /// Whether the counters should be read, at most every quarter of a second.
  bool due(Time now) const {
    if (limit_ <= milliseconds(0) || !busy_ || now - begun_ < limit_) return false;
    return !known_ || now - read_ >= (reported_ ? quiet() : kApart);
  }

  /// What was read, as a number that differs when anything moved.
  void read(Time now, std::uint64_t fingerprint) {
    read_ = now;
    if (known_ && seen_ == fingerprint) return;
    // What moves is no stall; it gets its time again.
    if (known_) begun_ = now;
    known_ = true;
    seen_ = fingerprint;
    unmoved_ = now;
    reported_ = false;
  }

  /// Something else than what is read was seen to move: it gets its time again.
  void moved(Time now) {
    begun_ = unmoved_ = now;
    reported_ = false;
  }

  /// It has been under way for so long that it may be stalled, or is: worth a look at everything.
  bool suspects(Time now) const { return limit_ > milliseconds(0) && busy_ && now - begun_ >= limit_; }
  /// Unmoved for so long means that it does not move: a tenth of the limit, a second at least.
  milliseconds quiet() const { return std::max(milliseconds(1000), limit_ / 10); }
  milliseconds limit() const { return limit_; }

  /// Nothing has moved for long enough, and nobody has been told.
  bool stalled(Time now) const { return suspects(now) && known_ && !reported_ && now - unmoved_ >= quiet(); }
  /// Whether something was seen to have moved after `when`.
  bool movedAfter(Time when) const { return known_ && unmoved_ > when; }
  void report() { reported_ = true; }
  bool reported() const { return reported_; }

  /// How long the operation has been under way without having been seen to move.
  milliseconds age(Time now) const {
    return busy_ ? std::chrono::duration_cast<milliseconds>(now - begun_) : milliseconds(0);
  }

 private:
  static constexpr milliseconds kApart{250};
  milliseconds limit_;
  bool busy_ = false;
  Time begun_{};            ///< while busy
  bool known_ = false;      ///< something was read
  Time read_{};             ///< last
  std::uint64_t seen_ = 0;  ///< then
  Time unmoved_{};          ///< since then
  bool reported_ = false;
};

}  // namespace tutti::comm
