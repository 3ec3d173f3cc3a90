#include "softgpu/device/waiting.h"

#include <sched.h>

#include <algorithm>

#include "softgpu/exec/processors.h"
#include "softgpu/exec/yield_pace.h"

namespace tutti::softgpu {
namespace {

constexpr std::int64_t kLeastLost = 500'000;     // ns given to others before a move
constexpr std::int64_t kMostLost = 20'000'000;   // where moves do not help: more busy threads than processors
constexpr std::int64_t kForgotten = 50'000'000;  // ns without a loss

struct Losses {
  std::int64_t sum = 0;
  std::int64_t bearable = kLeastLost;
  std::int64_t last = 0;
};

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
  static const int processors = usableProcessors();
  return oneThreadServes(processors, static_cast<int>(machine().engines->size()));
}

void relaxOrYield(std::int64_t now, std::int64_t since) {
  static constinit thread_local YieldPace pace;
  static constinit thread_local Losses losses;
  if (!pace.due(now, since)) return relax();
  const std::int64_t before = Engine::now();  // looking for work may have taken as long as a switch
  ::sched_yield();
  const std::int64_t after = Engine::now();
  if (!pace.yielded(before, after)) return;
  if (before - losses.last > kForgotten) losses = {};
  losses.sum += after - before;
  losses.last = after;
  if (losses.sum < losses.bearable) return;
  moveAway();
  losses.sum = 0;
  losses.bearable = std::min(2 * losses.bearable, kMostLost);
  losses.last = Engine::now();
}

}  // namespace tutti::softgpu
