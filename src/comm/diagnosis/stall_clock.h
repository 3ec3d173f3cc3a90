// When to look whether an operation still moves: pure, so that it can be tested with any times.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"
#include "comm/settings/stall_limits.h"

namespace tutti::comm {

/// Follows one communicator. While operations end in time it asks for nothing. One thread.
class StallClock {
 public:
  using Time = SteadyClock::time_point;

  /// Without `report`: never due, never stalled.
  explicit StallClock(StallLimits limits) : limits_(limits) {}

  /// Whether something is under way. A communicator that is idle for a moment begins anew.
  void follow(Time now, bool busy) {
    if (!busy) {
      busy_ = known_ = false;
      news_ = {};
      return;
    }
    if (!busy_) begun_ = now;
    busy_ = true;
  }

  /// Whether the counters should be read, at most every quarter of a second.
  bool due(Time now) const {
    if (!suspects(now)) return false;
    return !known_ || now - read_ >= (news_.told() ? quiet() : kApart);
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
    news_ = {};
  }

  /// Something else than what is read was seen to move: it gets its time again.
  void moved(Time now) {
    begun_ = unmoved_ = now;
    news_ = {};
  }

  /// It has been under way for so long that it may be stalled, or is: worth a look at everything.
  bool suspects(Time now) const { return busy_ && limits_.reports(now - begun_); }
  /// Unmoved for so long means that it does not move: a tenth of the limit, a second at least.
  milliseconds quiet() const { return std::max(milliseconds(1000), limits_.report / 10); }
  milliseconds limit() const { return limits_.report; }

  /// Nothing has moved for long enough, and nobody has been told, or not everybody who should be.
  bool stalled(Time now) const {
    return busy_ && known_ && news_.due(limits_, now - begun_) && now - unmoved_ >= quiet();
  }
  /// It has lasted so long that everybody should be told.
  bool alarms(Time now) const { return busy_ && limits_.alarms(now - begun_); }
  /// Whether something was seen to have moved after `when`.
  bool movedAfter(Time when) const { return known_ && unmoved_ > when; }
  /// Who should know has been told.
  void report(Time now) { news_.tell(limits_, now - begun_); }
  bool reported() const { return news_.told(); }

  /// How long nothing of it has moved, as far as was looked; 0: it was not read.
  milliseconds unmoved(Time now) const {
    return busy_ && known_ ? std::chrono::duration_cast<milliseconds>(now - unmoved_) : milliseconds(0);
  }

  /// How long the operation has been under way without having been seen to move.
  milliseconds age(Time now) const {
    return busy_ ? std::chrono::duration_cast<milliseconds>(now - begun_) : milliseconds(0);
  }

 private:
  static constexpr milliseconds kApart{250};
  StallLimits limits_;
  bool busy_ = false;
  Time begun_{};            ///< while busy
  bool known_ = false;      ///< something was read
  Time read_{};             ///< last
  std::uint64_t seen_ = 0;  ///< then
  Time unmoved_{};          ///< since then
  StallNews news_;
};

}  // namespace tutti::comm
