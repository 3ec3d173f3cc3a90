// Notices that tasks which should have something to do have done nothing for long.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "proxy/task.h"

namespace tutti {

/// Of one group of tasks. One thread.
class StallWatch {
 public:
  /// `after` 0: never reports anything.
  explicit StallWatch(milliseconds after) : after_(after) {}

  /// From now on the group is active.
  void begin(SteadyClock::time_point now) {
    work_.reset();
    reported_ = false;
    look_ = now;
    since_ = now;
  }
  /// Whether to call look(): the sum takes a while.
  bool due(SteadyClock::time_point now) const { return after_ > milliseconds(0) && now >= look_; }
  /// `sum` of all tasks' counters; whether a stall has to be reported: once, until a counter changes again.
  bool look(SteadyClock::time_point now, const TaskCounters& sum) {
    look_ = now + std::max(std::chrono::nanoseconds(after_) / 8, std::chrono::nanoseconds(milliseconds(1)));
    // Attempts that the network refuses (TaskCounters::stalls) are no progress.
    const std::uint64_t work = sum.posted + sum.done + sum.bytes;
    if (work_ != work) {
      work_ = work;
      since_ = now;
      reported_ = false;
    }
    if (reported_ || now - since_ < after_) return false;
    reported_ = true;
    return true;
  }

 private:
  milliseconds after_;
  std::optional<std::uint64_t> work_;
  bool reported_ = false;
  SteadyClock::time_point look_;
  SteadyClock::time_point since_;
};

}  // namespace tutti
