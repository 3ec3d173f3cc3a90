// An init that does not go on: in which stage, and what it waits for.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/threads/activity.h"
#include "comm/settings/stall_limits.h"

namespace tutti::comm {

/// What one thread waits for, for people: "it waits for rank 3 (host b, pid 7) in its barrier"; "it is in connect of
/// network x, device 0, which does not return"; "" where it says nothing. `describe`: a rank. Pure.
std::string describeActivity(const Activity& activity, const std::function<std::string(int rank)>& describe);

/// Follows the init of one rank. Made by the thread that runs it; the watch's looks.
class InitStall {
 public:
  using Time = SteadyClock::time_point;
  struct Subject {
    std::string who;                             ///< "rank 1 of 4 on host a, device 1"
    std::string function;                        ///< the call of the API
    StallLimits limits{};                        ///< for one stage
    std::function<std::string(int)> describe{};  ///< a rank, for messages; any thread
  };

  explicit InitStall(Subject subject) : subject_(std::move(subject)) {}
  /// The init has come to a stage. `stage` is a literal.
  void enter(const char* stage);
  /// Four times a second: a WARN, once for each stage and limit, where that takes longer.
  void tick(Time now);
  /// How far it is.
  std::string line(Time now) const;
  StallLimits limits() const { return subject_.limits; }
  const ActivitySlot& thread() const { return thread_; }

 private:
  const Subject subject_;
  const ActivitySlot& thread_ = ActivitySlot::own();
  mutable std::mutex mutex_;
  const char* stage_ = "start";  // with all below: guarded by mutex_
  Time since_ = SteadyClock::now();
  StallNews news_;
  std::uint64_t calls_ = 0;  ///< of the thread, when the watch last looked …
  Time callsSince_{};        ///< … and since when it has seen that number
};

/// Follows calls of plugins, of all threads, that do not return. The watch's thread.
class HungCalls {
 public:
  using Time = SteadyClock::time_point;
  /// Four times a second: a WARN, once for each limit, for each call that takes longer, but those of the threads that
  /// `told` speak for.
  void tick(Time now, const StallLimits& limits, const std::vector<const ActivitySlot*>& told);
  /// Those that have taken longer than a second, for people.
  std::vector<std::string> lines(Time now) const;

 private:
  struct Seen {
    Activity activity;
    Time since{};
    StallNews news;
  };
  std::map<const ActivitySlot*, Seen> seen_;  ///< threads inside a call
};

}  // namespace tutti::comm
