// The rounds, and the engine's own thread.
//
// Why no step is left behind when a group is dropped. Work for a task comes from kernels, whose launch is held, or from
// the network, whose messages a quiet task can leave where they are. The engine drops a group when, in this order,
//   1. it saw the group not held (ActivityRefs::look),
//   2. busy() said no: kernels launched before 1 have ended, and whatever they posted can be seen,
//   3. all tasks were advanced once more, none could do anything, and all are quiet,
//   4. the word of 1 is still the same: nobody has held the group since, so no kernel was launched since.
// Whoever holds it later finds it dropped, puts it on the stack of woken groups and leaves the engine a token
// (proxy/parker.h), which it takes before it looks at that stack. Who makes the rounds does not matter: they come one
// after the other, and the thread sleeps without an end only after one of its own that left no group listed.
#include "proxy/engine.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <exception>
#include <new>
#include <thread>
#include <utility>

#include "base/hwloc/binding.h"
#include "base/log.h"
#include "base/trace.h"
#include "proxy/task.h"

namespace tutti::proxy {

namespace {

/// Counters have one writer.
void count(std::atomic<std::uint64_t>& counter) {
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// How many processors the calling thread may run on.
int processorsAllowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());  // more than a cpu_set_t can name
}

bool allQuiet(const std::vector<ProgressTask*>& tasks) {
  return std::all_of(tasks.begin(), tasks.end(), [](const ProgressTask* task) { return task->quiet(); });
}

constexpr std::chrono::nanoseconds kShortestNap = std::chrono::microseconds(300);
/// What a step may be late when drivers stop without a word. A thread that wakes more often takes a processor from
/// them.
constexpr std::chrono::nanoseconds kLongestNap = std::chrono::microseconds(1200);

/// A task of a round may wait for the device and so come to drive() itself.
thread_local bool inRound = false;
class InRound {
 public:
  InRound() { inRound = true; }
  ~InRound() { inRound = false; }
  InRound(const InRound&) = delete;
  InRound& operator=(const InRound&) = delete;
};

}  // namespace

void ProgressEngine::loop() {
  const OwnLastError own;  // tasks of a communicator that has failed fail as well: not what the application is to read
  settle();
  auto progressAt = SteadyClock::now();
  while (!stop_.load(std::memory_order_acquire)) {
    if (leftToDrivers()) {
      progressAt = SteadyClock::now();
      continue;
    }
    const auto now = SteadyClock::now();
    bool progressed = false;
    bool nobody = false;
    {
      // A driver whose round the thread waited for would have to wake it.
      const FairMutex::Round turn(
          rounds_, std::exchange(drivers_.called, false) ? FairMutex::Who::Waits : FairMutex::Who::Tries);
      if (!turn.won()) {
        ::sched_yield();
        continue;
      }
      const InRound inside;
      progressed = round(now);
      nobody = active_.empty();
    }
    count(tally_.rounds);
    if (nobody) {
      sleep();
      progressAt = SteadyClock::now();
    } else if (progressed) {
      progressAt = now;
    } else {
      rest(now - progressAt);
    }
  }
}

void ProgressEngine::settle() {
  if (const auto& processors = options_.processors; processors.has_value()) {
    const int error = bindThread(*processors);
    if (error != 0) {
      info(kProxy, "Progress engine \"{}\" stays where it is: binding it to the GPU's processors failed: {}",
           threadName_, errnoText(error));
    }
  }
  // Else the kernel makes every pause 50 us longer.
  constexpr unsigned long kSlackNanoseconds = 1000;
  ::prctl(PR_SET_TIMERSLACK, kSlackNanoseconds, 0, 0, 0);
  const FairMutex::Round turn(rounds_);
  drivers_.nap = kShortestNap;
  backoff_ = options_.backoff.value_or(BackoffPolicy::forProcessors(processorsAllowed()));
}

bool ProgressEngine::drive() {
  if (inRound || !drivers_.wanted.load(std::memory_order_relaxed)) return false;
  const FairMutex::Attempt turn(rounds_);
  return turn.won() && driversRound();
}

bool ProgressEngine::driversRound() {
  const InRound inside;
  const OwnLastError own;  // as in the engine's thread
  count(tally_.drives);
  drivers_.inRound = true;
  const bool progressed = round(SteadyClock::now());
  drivers_.inRound = false;
  return progressed;
}

bool ProgressEngine::pressed() const {
  const auto presses = [](const ProgressTask* task) { return task->presses(); };
  return std::any_of(active_.begin(), active_.end(), [&](const ProgressGroup* group) {
    return std::any_of(group->tasks_.begin(), group->tasks_.end(), presses);
  });
}

void ProgressEngine::leave() {
  if (inRound || !drivers_.wanted.load(std::memory_order_relaxed)) return;
  {
    const FairMutex::Attempt turn(rounds_);
    if (!turn.won() || !pressed()) return;
    // What a kernel sends last may not have been seen yet, where all that it received was there already.
    driversRound();
    if (!pressed()) return;
  }
  parker_.wake();
}

/// Up and looking, the thread would take a processor from those who do its work.
bool ProgressEngine::leftToDrivers() {
  if (const std::uint64_t drives = tally_.drives.load(std::memory_order_relaxed); drives == drivers_.seen) {
    drivers_.nap = kShortestNap;
    return false;
  }
  count(tally_.naps);
  drivers_.seen = tally_.drives.load(std::memory_order_relaxed);
  drivers_.called = parker_.nap(drivers_.nap);
  drivers_.nap = std::min(2 * drivers_.nap, kLongestNap);
  if (drivers_.called) drivers_.seen = tally_.drives.load(std::memory_order_relaxed);
  return !drivers_.called || stop_.load(std::memory_order_acquire);
}

void ProgressEngine::sleep() {
  if (!parker_.settleDown()) return;
  count(tally_.sleeps);
  parker_.sleep();
  count(tally_.wakeUps);
}

void ProgressEngine::rest(std::chrono::nanoseconds idle) {
  const BackoffPolicy::Next next = backoff_.next(idle);
  switch (next.step) {
    case BackoffPolicy::Step::Spin:
      relax();
      return;
    case BackoffPolicy::Step::Yield:
      ::sched_yield();
      return;
    case BackoffPolicy::Step::Pause:
      count(tally_.pauses);
      parker_.pause(next.pause);
      return;
  }
}

bool ProgressEngine::round(SteadyClock::time_point now) {
  takeWoken(now);
  bool progressed = false;
  std::size_t kept = 0;
  for (ProgressGroup* group : active_) {
    const After after = visitGuarded(*group, now);
    progressed |= after == After::Progress;
    if (after != After::Rest) active_[kept++] = group;
  }
  active_.resize(kept);
  drivers_.wanted.store(kept != 0 || woken_.load(std::memory_order_relaxed) != nullptr, std::memory_order_relaxed);
  return progressed;
}

ProgressEngine::After ProgressEngine::visitGuarded(ProgressGroup& group, SteadyClock::time_point now) noexcept {
  std::string what = "unknown";
  try {
    return visit(group, now);
  } catch (const std::exception& e) {
    what = e.what();
  } catch (...) {
  }
  const Status why = fail(ncclSystemError, "Progress engine \"{}\": unexpected exception: {}", threadName_, what);
  try {
    return end(group, why);
  } catch (const std::bad_alloc&) {
    group.end_->told = false;
    return After::Idle;  // the next round tells it
  }
}

/// Marked as listed still, so that holds of it cost nothing and come to nothing; add() may put it back.
ProgressEngine::After ProgressEngine::drop(ProgressGroup& group) {
  traceStep(kProxy, "progress engine {}: group {} rests", threadName_, fmt::ptr(&group));
  group.dormant_ = true;
  if (!group.end_ && !group.tasks_.empty()) group.ctrl_.sleeps();
  return After::Rest;
}

ProgressEngine::After ProgressEngine::end(ProgressGroup& group, Status why) {
  if (!group.end_.has_value()) {
    group.end_ = {.why = why, .said = {}};  // first: whatever happens to the text, no task goes on
    group.end_->said = lastErrorText();
  }
  return tell(group);
}

ProgressEngine::After ProgressEngine::tell(ProgressGroup& group) {
  if (!group.end_->told) {
    if (drivers_.inRound) {
      parker_.wake();
      return After::Idle;
    }
    group.end_->told = true;
    if (group.end_->said != lastErrorText()) restoreLastError(group.end_->said);  // a driver's round
    if (group.hooks_.failed) group.hooks_.failed(group.end_->why);
  }
  return drop(group);
}

ProgressEngine::After ProgressEngine::visit(ProgressGroup& group, SteadyClock::time_point now) {
  if (!group.end_ && group.hooks_.aborted && group.hooks_.aborted()) group.end_ = {.why = {}, .said = {}, .told = true};
  if (group.end_) return tell(group);
  if (group.tasks_.empty()) return drop(group);
  const ActivityRefs::Seen seen = group.refs_.look();
  const Result<bool> advanced = advance(group);
  if (!advanced.ok()) return end(group, advanced.status());
  const bool heldAnew = std::exchange(group.holdsSeen_, seen.holdsMade()) != seen.holdsMade();
  group.ctrl_.turn(!advanced.value());
  if (!advanced.value() && !heldAnew) return consider(group, seen, now);
  group.progressAt_ = now;
  group.idle_.reset();
  return After::Progress;
}

/// Every task once, so that none waits for more than one turn of each other.
Result<bool> ProgressEngine::advance(ProgressGroup& group) {
  bool any = false;
  for (ProgressTask* task : group.tasks_) {
    ASSIGN(const bool did, task->advance());
    any |= did;
  }
  return any;
}

/// Nothing could be done: whether the group can be dropped. See the top of this file.
ProgressEngine::After ProgressEngine::consider(ProgressGroup& group, ActivityRefs::Seen seen,
                                               SteadyClock::time_point now) {
  if (const auto before = std::exchange(group.idle_, std::nullopt); before.has_value()) {
    if (!allQuiet(group.tasks_) || !group.refs_.rest(*before)) return After::Idle;
    group.ctrl_.sleeps();
    return After::Rest;
  }
  const auto idle = now - group.progressAt_;
  if (seen.held() || idle < backoff_.beforePauses() || now < group.askAt_ || !allQuiet(group.tasks_))
    return After::Idle;
  group.askAt_ = now + backoff_.untilNextQuestion(idle);
  count(tally_.questions);
  if (!group.hooks_.busy()) group.idle_ = seen;
  return After::Idle;
}

}  // namespace tutti::proxy
