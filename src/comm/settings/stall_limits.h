// How long something may go on without progress before people are told, and what they have been told.
#pragma once

#include "base/clock.h"

namespace tutti::comm {

/// 0: for ever.
struct StallLimits {
  milliseconds report{0};  ///< before a warning says so
  milliseconds alarm{0};   ///< before that is printed at every level; without `report` it never is

  bool reports(SteadyClock::duration age) const { return report > milliseconds(0) && age >= report; }
  bool alarms(SteadyClock::duration age) const { return reports(age) && alarm > milliseconds(0) && age >= alarm; }

  /// The shorter of each.
  StallLimits shorterOf(StallLimits other) const {
    const auto shorter = [](milliseconds a, milliseconds b) {
      return a == milliseconds(0) || (b > milliseconds(0) && b < a) ? b : a;
    };
    return {shorter(report, other.report), shorter(alarm, other.alarm)};
  }
};

/// What has been told of one thing that does not go on: nothing at first. One thread.
class StallNews {
 public:
  /// Whether there is more to tell.
  bool due(const StallLimits& limits, SteadyClock::duration age) const {
    return (limits.reports(age) && !reported_) || (limits.alarms(age) && !alarmed_);
  }
  /// Whoever should know by now does.
  void tell(const StallLimits& limits, SteadyClock::duration age) {
    reported_ = true;
    alarmed_ = limits.alarms(age);
  }
  bool told() const { return reported_; }
  /// Somebody else tells it.
  void leaveToOthers() { reported_ = alarmed_ = true; }

 private:
  bool reported_ = false;
  bool alarmed_ = false;
};

}  // namespace tutti::comm
