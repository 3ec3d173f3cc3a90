#include "comm/ending/deferred_free.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/never_destroyed.h"
#include "base/threads/shortage.h"
#include "base/threads/thread.h"
#include "comm/ending/watch.h"
#include "comm/launch/graph_refs.h"
#include "comm/state/exit_delivery.h"

namespace tutti::comm {

namespace {

constexpr auto kPause = std::chrono::milliseconds(5);
/// How long the caller waits for what is freed elsewhere: what runs may be about to be done.
constexpr milliseconds kShortWait{250};
/// How long the end of the process waits for what is being freed at that moment.
constexpr milliseconds kExitWait{1000};

bool othersRun() {
  return KernelWatch::instance().runsKernels() || ExitDelivery::instance().runsKernels();
}

/// Whether nothing of this process can launch kernels of a communicator: graphs do so after its end.
bool alone() {
  return KernelWatch::instance().empty() && !ExitDelivery::instance().mayLaunch();
}

/// What waits to be freed. When the process ends it stays: the driver is about to refuse every call.
class Waiting {
 public:
  using Free = std::function<void()>;
  using Place = std::list<Free>::iterator;

  static Waiting& instance() {
    static NeverDestroyed<Waiting> waiting;
    return waiting.get();
  }

  Place add(Free free) {
    const std::lock_guard lock(mutex_);
    // After the driver's own, whose ends therefore come later.
    static const bool registered = std::atexit([] { instance().atExit(); }) == 0;
    if (registered && process_.load() != ::getpid()) {
      process_.store(::getpid());
      freeing_ = 0;
    }
    return frees_.insert(frees_.end(), std::move(free));
  }
  Free take(Place place) {
    const std::lock_guard lock(mutex_);
    Free free = std::move(*place);
    frees_.erase(place);
    return free;
  }
  bool closed() const { return closed_.load(); }
  /// Frees what is at `place`, unless the process ends. Whether it is freed.
  bool run(Place place) {
    Free free;
    {
      const std::lock_guard lock(mutex_);
      if (closed_.load()) return false;
      ++freeing_;
      free = std::move(*place);
      frees_.erase(place);
    }
    ignoringShortage(free);
    free = nullptr;
    {
      const std::lock_guard lock(mutex_);
      --freeing_;
    }
    idle_.notify_all();
    return true;
  }

 private:
  void atExit() {
    if (process_.load() != ::getpid()) return;  // before the lock, which may have been held when this was forked
    std::unique_lock lock(mutex_);
    closed_.store(true);
    idle_.wait_for(lock, kExitWait, [this] { return freeing_ == 0; });
  }

  std::mutex mutex_;
  std::condition_variable idle_;
  std::list<Free> frees_;
  int freeing_ = 0;
  std::atomic<bool> closed_{false};
  std::atomic<pid_t> process_{0};  ///< whose exit it is: children by fork() have none of the threads
};

}  // namespace

void freeWhenOthersRest(std::function<void()> free) {
  // Kernels that are launched while this is freed would hold it up as well: only alone nobody launches any.
  if (alone()) return free();
  Waiting& waiting = Waiting::instance();
  const Waiting::Place place = waiting.add(std::move(free));
  const auto done = std::make_shared<std::atomic<bool>>(false);
  auto thread = Thread::start("tutti free", [&waiting, place, done] {
    while (othersRun() && !waiting.closed()) std::this_thread::sleep_for(kPause);
    done->store(waiting.run(place));
  });
  if (!thread.ok()) return waiting.take(place)();
  const Deadline deadline = Deadline::in(kShortWait);
  for (auto pause = std::chrono::microseconds(20); !done->load() && !deadline.expired();
       pause = std::min(pause * 2, std::chrono::microseconds(kPause))) {
    std::this_thread::sleep_for(pause);
  }
  if (done->load()) return;
  info(kDestroy, "kernels of other communicators run: memory is freed when they are done");
  thread.value().detach();
}

void freeAbandoned() {
  auto left = std::make_shared<std::vector<std::shared_ptr<void>>>(GraphRefs::takeAbandoned());
  if (!left->empty()) freeWhenOthersRest([left = std::move(left)] { left->clear(); });
}

}  // namespace tutti::comm
