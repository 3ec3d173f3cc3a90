#include "softgpu/core/waiting.h"

#include <sched.h>

#include <algorithm>

namespace tutti::softgpu {
namespace {

constexpr std::int64_t kSwitch = 1'500;          // ns; a yield to nobody takes a fraction of that
constexpr std::int64_t kLeastLost = 500'000;     // ns given to others before a move
constexpr std::int64_t kMostLost = 20'000'000;   // where moves do not help: more busy threads than processors
constexpr std::int64_t kForgotten = 50'000'000;  // ns without a loss

struct Losses {
  std::int64_t sum = 0;
  std::int64_t bearable = kLeastLost;
  std::int64_t last = 0;
};

/// The next processor after `current` that the thread may use, -1 if there is none but that.
int nextProcessor(const cpu_set_t& allowed, int current) {
  for (int i = 1; i < CPU_SETSIZE; ++i) {
    const int candidate = (current + i) % CPU_SETSIZE;
    if (CPU_ISSET(candidate, &allowed)) return candidate == current ? -1 : candidate;
  }
  return -1;
}

/// Goes to another processor; which ones the thread may use remains as it was.
void moveAway() {
  cpu_set_t allowed;
  const int current = ::sched_getcpu();
  if (current < 0 || current >= CPU_SETSIZE || ::sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  const int next = nextProcessor(allowed, current);
  if (next < 0) return;
  cpu_set_t there;
  CPU_ZERO(&there);
  CPU_SET(next, &there);
  if (::sched_setaffinity(0, sizeof(there), &there) == 0) ::sched_setaffinity(0, sizeof(allowed), &allowed);
}

}  // namespace

bool oneThreadIsEnough() {
  constexpr int kPlenty = 8;
  static const bool few = [] {
    cpu_set_t allowed;
    return ::sched_getaffinity(0, sizeof(allowed), &allowed) == 0 && CPU_COUNT(&allowed) < kPlenty;
  }();
  return few && machine().engines.load(std::memory_order_relaxed) == 1;
}

void yieldOrMove(std::int64_t now) {
  static thread_local Losses losses;
  ::sched_yield();
  const std::int64_t after = Engine::now();
  if (after - now < kSwitch) return;
  if (now - losses.last > kForgotten) losses = {};
  losses.sum += after - now;
  losses.last = after;
  if (losses.sum < losses.bearable) return;
  moveAway();
  losses.sum = 0;
  losses.bearable = std::min(2 * losses.bearable, kMostLost);
  losses.last = Engine::now();
}

}  // namespace tutti::softgpu
