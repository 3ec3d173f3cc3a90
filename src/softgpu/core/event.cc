#include "softgpu/core/event.h"

#include <sched.h>

#include "softgpu/core/engine.h"
#include "softgpu/core/machine.h"

namespace tutti::softgpu {

void Marker::complete() {
  std::lock_guard<std::mutex> guard(machine().lock);
  nanoseconds = Engine::now();
  done.store(true, std::memory_order_release);
  reached.notify_all();
  for (Engine* engine : waiters) engine->wake();
  waiters.clear();
}

void Marker::wait() {
  constexpr int kYields = 20;
  for (int i = 0; i < kYields; ++i) {
    if (done.load(std::memory_order_acquire)) return;
    ::sched_yield();
  }
  std::unique_lock<std::mutex> guard(machine().lock);
  reached.wait(guard, [this] { return done.load(); });
}

}  // namespace tutti::softgpu
