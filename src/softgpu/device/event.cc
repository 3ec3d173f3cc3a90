#include "softgpu/device/event.h"

#include "softgpu/device/engine.h"
#include "softgpu/device/machine.h"
#include "softgpu/device/waiting.h"

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
  if (waitAwake([this] { return done.load(std::memory_order_acquire); })) return;
  std::unique_lock<std::mutex> guard(machine().lock);
  reached.wait(guard, [this] { return done.load(); });
}

}  // namespace tutti::softgpu
