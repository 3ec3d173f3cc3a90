// Tasks and communicators as the engine sees them, driven by the test.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "proxy/engine.h"
#include "proxy/task.h"

namespace tutti::test {

/// Waits until `what` holds; false after ten seconds.
inline bool eventually(const std::function<bool()>& what) {
  const Deadline deadline = Deadline::in(std::chrono::seconds(10));
  while (!what()) {
    if (deadline.expired()) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

/// Does one posted step per turn. Members that are not atomic are set before the task is added.
class FakeTask : public proxy::ProgressTask {
 public:
  explicit FakeTask(std::string name = "send to rank 1") : name_(std::move(name)) {}

  Result<bool> advance() override {
    thread_.store(::pthread_self());
    turns.fetch_add(1);
    if (during) during();
    if (error.load() != ncclSuccess) return Status(error.load());
    if (done.load() == posted.load()) return false;
    done.fetch_add(1);
    return true;
  }
  bool quiet() const override {
    if (whenAsked) whenAsked();
    return isQuiet.load();
  }
  bool presses() const override { return isPressing.load(); }
  void part() override { isParting = true; }
  bool parted() const override { return !isParting.load(); }
  proxy::TaskCounters counters() const override {
    return {.posted = posted.load(), .done = done.load(), .bytes = 8 * done.load()};
  }
  std::string describe() const override { return name_; }

  /// Processor time that the thread which last advanced the task has used.
  std::chrono::nanoseconds threadTime() const {
    clockid_t clock{};
    timespec time{};
    if (::pthread_getcpuclockid(thread_.load(), &clock) != 0 || ::clock_gettime(clock, &time) != 0) return {};
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }

  std::atomic<std::uint64_t> posted{0};
  std::atomic<std::uint64_t> done{0};
  std::atomic<std::uint64_t> turns{0};
  std::atomic<bool> isQuiet{true};
  std::atomic<bool> isPressing{false};
  std::atomic<bool> isParting{false};  ///< it was told to, until the test takes it back
  std::atomic<ncclResult_t> error{ncclSuccess};
  std::function<void()> during;
  std::function<void()> whenAsked;

 private:
  std::string name_;
  std::atomic<pthread_t> thread_{};
};

/// What a communicator tells the engine, and what it heard. Outlives its group.
struct FakeComm {
  std::atomic<int> running{0};  ///< kernels
  std::atomic<bool> isAborted{false};
  std::atomic<int> failures{0};
  std::mutex mutex;
  std::string failure;  ///< under mutex

  proxy::GroupHooks hooks() {
    return {.busy = [this] { return running.load() > 0; },
            .aborted = [this] { return isAborted.load(); },
            .failed =
                [this](Status) {
                  const std::lock_guard lock(mutex);
                  failure = lastErrorText();
                  failures.fetch_add(1);
                }};
  }
  std::string failureText() {
    const std::lock_guard lock(mutex);
    return failure;
  }
};

/// Goes to sleep as soon and as often as possible.
inline proxy::BackoffPolicy hasty() {
  return {.spin = std::chrono::nanoseconds(0),
          .yield = std::chrono::nanoseconds(0),
          .shortestPause = std::chrono::nanoseconds(1),
          .longestPause = std::chrono::microseconds(5),
          .askEvery = std::chrono::nanoseconds(1),
          .askAtLeastEvery = std::chrono::microseconds(5)};
}

inline std::shared_ptr<proxy::ProgressEngine> makeEngine(proxy::EngineOptions options = {}) {
  return proxy::ProgressEngine::create("NCCL Progress 0", std::move(options)).value();
}
inline std::unique_ptr<proxy::ProgressGroup> makeGroup(proxy::ProgressEngine& engine, FakeComm& comm) {
  return engine.group(comm.hooks()).value();
}

/// Whether the engine's thread is in a sleep that only a wake-up ends.
inline bool asleep(const proxy::ProgressEngine& engine) {
  const proxy::EngineCounters counters = engine.counters();
  return counters.sleeps == counters.wakeUps + 1;
}

/// An engine of its own with one task of one communicator. What the task and the hooks refer to is declared before it.
struct OneTask {
  /// `change`: of what the communicator tells the engine.
  explicit OneTask(proxy::EngineOptions options = {},
                   const std::function<void(OneTask&, proxy::GroupHooks&)>& change = {})
      : engine(makeEngine(std::move(options))) {
    proxy::GroupHooks hooks = comm.hooks();
    if (change) change(*this, hooks);
    group = engine->group(std::move(hooks)).value();
  }
  ~OneTask() {
    if (held) group->release();
    group->remove(&task);
  }
  OneTask(const OneTask&) = delete;
  OneTask& operator=(const OneTask&) = delete;

  /// From here on the engine drives the task.
  void add() { EXPECT_TRUE(group->add(&task).ok()); }
  /// The same, held until the end.
  void addHeld() {
    add();
    group->hold();
    held = true;
  }
  bool fallsAsleep() const {
    return eventually([this] { return asleep(*engine); });
  }

  FakeComm comm;
  FakeTask task;
  std::shared_ptr<proxy::ProgressEngine> engine;
  std::unique_ptr<proxy::ProgressGroup> group;
  bool held = false;
};

}  // namespace tutti::test
