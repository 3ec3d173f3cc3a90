#include "comm/ending/deferred_free.h"

#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/threads/thread.h"
#include "comm/ending/watch.h"

namespace tutti::comm {

namespace {

constexpr auto kPause = std::chrono::milliseconds(5);
/// What runs may be about to be done.
constexpr milliseconds kShortWait{1000};

/// Whether the device runs none within that time.
bool othersRest(int device, Deadline deadline) {
  while (KernelWatch::instance().runsKernelsOn(device)) {
    if (deadline.expired()) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

}  // namespace

void freeWhenOthersRest(int device, std::function<void()> free) {
  if (othersRest(device, Deadline::in(kShortWait))) return free();
  info(kDestroy, "kernels of other communicators run on device {}: memory is freed when they are done", device);
  const auto shared = std::make_shared<const std::function<void()>>(std::move(free));
  auto thread = Thread::start("tutti free", [device, shared] {
    othersRest(device, Deadline::never());
    (*shared)();
  });
  if (!thread.ok()) return (*shared)();
  thread.value().detach();
}

}  // namespace tutti::comm
