#include "softgpu/exec/idle_hooks.h"

#include <sched.h>

#include <algorithm>

namespace tutti::softgpu {
namespace {

thread_local bool insideHook = false;

}  // namespace

std::optional<std::uint64_t> IdleHooks::add(const IdleHook& hook) {
  const std::lock_guard<std::mutex> guard(change_);
  for (std::size_t i = 0; i < kPlaces; ++i) {
    Place& place = places_[i];
    if (place.taken.load() || place.inside.load() != 0) continue;
    place.hook = hook;
    place.taken.store(true);
    used_.store(std::max(used_.load(), i + 1), std::memory_order_release);
    return i;
  }
  return std::nullopt;
}

bool IdleHooks::remove(std::uint64_t ticket) {
  const std::lock_guard<std::mutex> guard(change_);
  if (ticket >= kPlaces || !places_[ticket].taken.exchange(false)) return false;
  while (places_[ticket].inside.load() != 0) ::sched_yield();
  return true;
}

template <class Body>
void IdleHooks::each(Body body) {
  if (insideHook) return;
  insideHook = true;
  const std::size_t used = used_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < used; ++i) {
    Place& place = places_[i];
    if (!place.taken.load(std::memory_order_relaxed)) continue;
    // Either remove() sees this one inside, or this one sees that the hook is gone.
    place.inside.fetch_add(1, std::memory_order_seq_cst);
    if (place.taken.load(std::memory_order_seq_cst)) body(place.hook);
    place.inside.fetch_sub(1, std::memory_order_release);
  }
  insideHook = false;
}

bool IdleHooks::turn() {
  bool any = false;
  each([&any](const IdleHook& hook) { any |= hook.turn(hook.argument) != 0; });
  return any;
}

void IdleHooks::leave() {
  each([](const IdleHook& hook) { hook.leave(hook.argument); });
}

}  // namespace tutti::softgpu
