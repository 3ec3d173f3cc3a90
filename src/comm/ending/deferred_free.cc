#include "comm/ending/deferred_free.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/threads/thread.h"
#include "comm/ending/watch.h"
#include "comm/launch/graph_refs.h"

namespace tutti::comm {

namespace {

constexpr auto kPause = std::chrono::milliseconds(5);
/// How long the caller waits for what is freed elsewhere: what runs may be about to be done.
constexpr milliseconds kShortWait{250};

void awaitOthersRest() {
  while (KernelWatch::instance().runsKernels()) std::this_thread::sleep_for(kPause);
}

}  // namespace

void freeWhenOthersRest(std::function<void()> free) {
  // Kernels that are launched while this is freed would hold it up as well: only alone nobody launches any.
  if (KernelWatch::instance().empty()) return free();
  const auto shared = std::make_shared<const std::function<void()>>(std::move(free));
  const auto done = std::make_shared<std::atomic<bool>>(false);
  auto thread = Thread::start("tutti free", [shared, done] {
    awaitOthersRest();
    (*shared)();
    done->store(true);
  });
  if (!thread.ok()) return (*shared)();
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
