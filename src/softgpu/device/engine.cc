#include "softgpu/device/engine.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "softgpu/device/machine.h"
#include "softgpu/device/waiting.h"
#include "softgpu/exec/random.h"
#include "softgpu/exec/weak_memory.h"

namespace tutti::softgpu {
namespace {

constexpr std::int64_t kMicrosecond = 1000;
constexpr std::int64_t kSpinBeforeYield = 2 * kMicrosecond;     ///< a yield takes a third of one, a switch three
constexpr std::int64_t kSpinWithoutWork = 40 * kMicrosecond;    ///< before the full sleep
constexpr std::int64_t kSpinWhilePolling = 150 * kMicrosecond;  ///< before the first short sleep
constexpr std::int64_t kShortestSleep = 20 * kMicrosecond;
constexpr std::int64_t kLongestSleep = 200 * kMicrosecond;
constexpr std::int64_t kBriefTask = 8 * kMicrosecond;      ///< of work, waits not counted
constexpr int kNapFrom = 8;                                ///< so many more brief tasks than others
constexpr std::int64_t kNap = 300 * kMicrosecond;          ///< what an application loses that no longer waits
constexpr std::int64_t kLongestNap = 2400 * kMicrosecond;  ///< a processor that wakes more often takes no work over
constexpr std::int64_t kNapping = 2000 * kMicrosecond;     ///< without work, before the full sleep

void futexWait(std::atomic<std::uint32_t>* word, std::uint32_t seen, std::int64_t nanoseconds) {
  timespec timeout = {nanoseconds / 1000000000, nanoseconds % 1000000000};
  ::syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, nanoseconds < 0 ? nullptr : &timeout, nullptr, 0);
}

void futexWake(std::atomic<std::uint32_t>* word) {
  ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

[[noreturn]] void parkForEver() {
  for (;;) ::pause();
}

}  // namespace

Engine::Engine(int deviceIndex, int blockSlots, std::unique_ptr<Random> random, std::unique_ptr<Random> weak)
    : deviceIndex_(deviceIndex), freeSlots_(blockSlots), random_(std::move(random)), weak_(std::move(weak)) {}

Engine::~Engine() = default;

std::unique_ptr<WeakMemory> Engine::weakMemory(std::uint32_t threads) {
  if (weak_ == nullptr) return nullptr;
  return std::make_unique<WeakMemory>(weak_->next(), threads);
}

std::int64_t Engine::now() {
  timespec time;
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
}

void Engine::start() {
  const SignalsOff signalsOff;  // signals are the application's
  std::thread([this] { loop(); }).detach();
  machine().engines->add(*this, deviceIndex_);
}

void Engine::wake() {
  signal_.fetch_add(1, std::memory_order_seq_cst);
  if (sleep_.load(std::memory_order_seq_cst) == Sleep::Deep) futexWake(&signal_);
}

void Engine::takeOver() {
  mayNap_.store(false, std::memory_order_relaxed);
  signal_.fetch_add(1, std::memory_order_seq_cst);
  if (sleep_.load(std::memory_order_seq_cst) != Sleep::None) futexWake(&signal_);
}

void Engine::adopt(const std::shared_ptr<Stream>& stream) {
  inbox_.push_back(stream);
  newStreams_.store(true, std::memory_order_release);
  busy_.store(true, std::memory_order_relaxed);
}

void Engine::park(int milliseconds) {
  takeOver();
  for (int i = 0; i < milliseconds * 10 && parked_.load() == 0; ++i) ::usleep(100);
}

void Engine::loop() {
  char name[16];
  std::snprintf(name, sizeof(name), "softgpu-%d", deviceIndex_);
  ::pthread_setname_np(::pthread_self(), name);
  ::prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
  for (;;) {
    const std::uint32_t seen = signal_.load(std::memory_order_seq_cst);
    if (machineStopping()) {
      parked_.store(1);
      parkForEver();
    }
    if (othersAttend()) {
      sleep(Sleep::Nap, signal_.load(std::memory_order_seq_cst), nap_);
      nap_ = std::min(2 * nap_, kLongestNap);
      continue;
    }
    nap_ = kNap;
    looks_.store(looks_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    const Step state = attendOnce();
    if (state == Step::Progress) {
      idleSince_ = 0;
    } else {
      idle(state, seen);
    }
  }
}

Step Engine::attendOnce() {
  std::unique_lock<std::mutex> seat(seat_, std::try_to_lock);
  if (!seat.owns_lock()) return Step::Polling;
  if (newStreams_.load(std::memory_order_acquire)) {
    std::lock_guard<std::mutex> guard(machine().lock);
    active_.insert(active_.end(), inbox_.begin(), inbox_.end());
    inbox_.clear();
    newStreams_.store(false, std::memory_order_relaxed);
  }
  return stepAll();
}

bool Engine::attend() {
  attended_.store(attended_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return !machineStopping() && attendOnce() == Step::Progress;
}

/// Up and looking, the thread would take a processor from those who do its work.
bool Engine::othersAttend() {
  const std::uint32_t attended = attended_.load(std::memory_order_relaxed);
  if (attended == attendedSeen_) return false;
  attendedSeen_ = attended;
  idleSince_ = 0;
  return mayNap_.load(std::memory_order_relaxed);
}

Step Engine::stepAll() {
  Step result = Step::Blocked;
  const std::size_t first = random_ != nullptr && !active_.empty() ? random_->below(active_.size()) : 0;
  for (std::size_t i = 0; i < active_.size(); ++i) {
    Stream& stream = *active_[(first + i) % active_.size()];
    const Step step = stepStream(stream);
    if (step == Step::Progress || step == Step::Done) result = Step::Progress;
    if (step == Step::Polling && result == Step::Blocked) result = Step::Polling;
  }
  if (active_.empty()) return result;
  std::erase_if(active_, [](const std::shared_ptr<Stream>& stream) {
    if (stream->head.has_value()) return false;
    std::lock_guard<std::mutex> guard(machine().lock);
    if (!stream->queue.empty()) return false;
    stream->active = false;
    return true;
  });
  if (active_.empty()) {
    std::lock_guard<std::mutex> guard(machine().lock);
    busy_.store(!inbox_.empty(), std::memory_order_relaxed);
  }
  return result;
}

bool Engine::nextTask(Stream& stream) {
  std::lock_guard<std::mutex> guard(machine().lock);
  if (stream.queue.empty()) return false;
  stream.head = std::move(stream.queue.front());
  stream.queue.pop_front();
  stream.headWork = 0;
  return true;
}

Step Engine::stepStream(Stream& stream) {
  if (!stream.head.has_value() && !nextTask(stream)) return Step::Blocked;
  auto& after = stream.head->after;
  std::erase_if(after,
                [](const After& a) { return a.stream->completed.load(std::memory_order_acquire) >= a.sequence; });
  if (!after.empty()) return Step::Blocked;
  if (stream.context().error() != CUDA_SUCCESS) {
    stream.head->task->abandon();  // a failed context runs nothing any more
    finishTask(stream);
    return Step::Done;
  }
  const std::int64_t before = now();
  const Step step = stream.head->task->step(*this);
  if (step != Step::Polling && step != Step::Blocked) stream.headWork += now() - before;
  if (step == Step::Done) finishTask(stream);
  return step;
}

void Engine::finishTask(Stream& stream) {
  stream.head.reset();
  const std::uint32_t attended = attended_.load(std::memory_order_relaxed);
  const bool waitedFor = attended != attendedBefore_;
  attendedBefore_ = attended;
  const bool brief = waitedFor && (stream.headWork < kBriefTask || oneThreadIsEnough());
  brief_ = brief ? std::min(brief_ + 1, 2 * kNapFrom) : std::max(brief_ - kNapFrom / 2, 0);
  mayNap_.store(brief_ >= kNapFrom, std::memory_order_relaxed);
  std::lock_guard<std::mutex> guard(machine().lock);
  stream.completed.fetch_add(1, std::memory_order_release);
  if (stream.waiters > 0) stream.finished.notify_all();
}

void Engine::idle(Step state, std::uint32_t seen) {
  const std::int64_t time = now();
  if (idleSince_ == 0) idleSince_ = time;
  const std::int64_t idleFor = time - idleSince_;
  if (mayNap_.load(std::memory_order_relaxed) && !busy() && idleFor < kNapping) {
    sleep(Sleep::Nap, signal_.load(std::memory_order_seq_cst), kNap);
  } else if (state == Step::Polling) {
    // What it waits for may come from an engine of this process whose thread has no processor.
    if (helper_.help(this, time) || machine().idleHooks.turn()) {
      idleSince_ = 0;
    } else if (idleFor < kSpinBeforeYield) {
      relax();
    } else if (idleFor < kSpinWhilePolling) {
      ::sched_yield();
    } else {
      sleep(Sleep::Deep, seen, std::clamp((idleFor - kSpinWhilePolling) / 4, kShortestSleep, kLongestSleep));
    }
  } else if (idleFor < kSpinWithoutWork) {
    ::sched_yield();
  } else {
    machine().idleHooks.leave();
    sleep(Sleep::Deep, seen, -1);
    idleSince_ = 0;
  }
}

void Engine::sleep(Sleep how, std::uint32_t seen, std::int64_t nanoseconds) {
  sleep_.store(how, std::memory_order_seq_cst);
  if (signal_.load(std::memory_order_seq_cst) == seen && !machineStopping()) futexWait(&signal_, seen, nanoseconds);
  sleep_.store(Sleep::None, std::memory_order_seq_cst);
}

void stopEngines() {
  constexpr int kPatience = 200;
  for (const auto& device : machine().devices) {
    if (Engine* engine = device->startedEngine()) engine->park(kPatience);
  }
}

}  // namespace tutti::softgpu
