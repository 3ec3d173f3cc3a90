// The progress engine: one thread per device that drives the tasks of all communicators on it, and sleeps while there
// is nothing to drive, or while other threads drive them.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/threads/thread.h"
#include "proxy/backoff_policy.h"
#include "proxy/fair_mutex.h"
#include "proxy/group.h"
#include "proxy/parker.h"

namespace tutti::proxy {

/// What an engine's thread has done so far.
struct EngineCounters {
  std::uint64_t rounds = 0;     ///< turns over all active groups
  std::uint64_t drives = 0;     ///< those of other threads
  std::uint64_t naps = 0;       ///< short sleeps because others drive
  std::uint64_t pauses = 0;     ///< short sleeps between rounds
  std::uint64_t sleeps = 0;     ///< sleeps without an end, for want of an active group
  std::uint64_t wakeUps = 0;    ///< ends of such sleeps
  std::uint64_t questions = 0;  ///< calls of busy()
};

struct EngineOptions {
  /// Processors that the thread may run on, of the GPU's NUMA node; empty: those of the thread that starts it.
  std::optional<cpu_set_t> processors = {};
  /// Empty: by the number of processors that the thread may run on.
  std::optional<BackoffPolicy> backoff;
};

/// Owns the thread, which is started with the first task and ends with the engine's last owner: the caller's pointer
/// and those of its groups. That owner must not be the engine's own thread.
class ProgressEngine : public std::enable_shared_from_this<ProgressEngine> {
 public:
  /// `threadName` as Thread::start() takes it. Errors: ncclInternalError for pauses without length.
  static Result<std::shared_ptr<ProgressEngine>> create(std::string threadName, EngineOptions options = {});
  ~ProgressEngine();
  ProgressEngine(const ProgressEngine&) = delete;
  ProgressEngine& operator=(const ProgressEngine&) = delete;

  /// A group without tasks. Any thread but the engine's. Errors: ncclInternalError without `hooks.busy`.
  Result<std::unique_ptr<ProgressGroup>> group(GroupHooks hooks);
  /// On these processors, if nobody said so before and the thread has not been started. Any thread but the engine's.
  void runOn(const cpu_set_t& processors);
  /// Any thread.
  EngineCounters counters() const;

  /// One round in the thread's stead, for a thread that has nothing to do but wait for kernels of this device; whether
  /// it did anything. Never waits: nothing where another thread is in a round, wants to visit the engine, or is this
  /// one. While somebody drives, the engine's thread naps; nobody need say that he stops, for it looks after some
  /// hundred microseconds at first and after about a millisecond in the long run. Failures are told by the engine's
  /// thread.
  bool drive();
  /// For a thread that drove and stops: one more round if a task presses, and wakes the engine's thread if one still
  /// does. What does not press waits for the end of its nap.
  void leave();

 private:
  friend class ProgressGroup;
  enum class After : std::uint8_t { Progress, Idle, Rest };  ///< what a visit of a group left behind
  struct Tally {
    std::atomic<std::uint64_t> rounds{0}, drives{0}, naps{0}, pauses{0}, sleeps{0}, wakeUps{0}, questions{0};
  };
  /// What there is to know about other threads that drive.
  struct Drivers {
    std::atomic<bool> wanted{false};  ///< there are active groups
    bool inRound = false;             ///< within a turn: it is not the engine's thread's
    bool called = false;              ///< engine's thread: somebody wants a round of it
    std::uint64_t seen = 0;           ///< engine's thread: of Tally::drives
    std::chrono::nanoseconds nap{0};  ///< engine's thread: how long the next one is
  };
  ProgressEngine(std::string threadName, EngineOptions options);

  // Any thread.
  void pushWoken(ProgressGroup* group);
  // Within a turn.
  Status start();
  void takeWoken(SteadyClock::time_point now);
  void list(ProgressGroup* group, SteadyClock::time_point now);
  // The engine's thread, engine_loop.cc.
  void loop();
  void settle();
  bool leftToDrivers();
  bool driversRound();
  bool pressed() const;
  bool round(SteadyClock::time_point now);
  After visit(ProgressGroup& group, SteadyClock::time_point now);
  After visitGuarded(ProgressGroup& group, SteadyClock::time_point now) noexcept;
  Result<bool> advance(ProgressGroup& group);
  After end(ProgressGroup& group, Status why);
  After tell(ProgressGroup& group);
  After consider(ProgressGroup& group, ActivityRefs::Seen seen, SteadyClock::time_point now);
  After drop(ProgressGroup& group);
  void sleep();
  void rest(std::chrono::nanoseconds idle);

  const std::string threadName_;
  EngineOptions options_;  ///< `processors` within a turn, until the thread is started
  BackoffPolicy backoff_;  ///< within a turn; written by the engine's thread
  FairMutex rounds_;
  std::vector<ProgressGroup*> active_;          ///< within a turn
  std::size_t groups_ = 0;                      ///< within a turn
  std::atomic<ProgressGroup*> woken_{nullptr};  ///< a stack of groups to be put on active_; taken whole, within a turn
  Parker parker_;
  Drivers drivers_;
  std::atomic<bool> stop_{false};
  Tally tally_;
  Thread thread_;  ///< within a turn; last: joined before the rest goes
};

}  // namespace tutti::proxy
