// The processors that threads may use, and what follows from their number.
#pragma once

#include <sched.h>

namespace tutti::softgpu {

/// How many processors the calling thread may use; 0: unknown.
inline int usableProcessors() {
  cpu_set_t allowed;
  return ::sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 0;
}

/// Whether one thread should do all the work, for another one that looks for work would take its processor. With many
/// processors it would not, and with a second engine there is work for it.
constexpr bool oneThreadServes(int processors, int engines) {
  constexpr int kPlenty = 8;
  return processors > 0 && processors < kPlenty && engines == 1;
}

/// The next processor after `current` that the thread may use, -1 if there is none but that.
inline int nextProcessor(const cpu_set_t& allowed, int current) {
  for (int i = 1; i < CPU_SETSIZE; ++i) {
    const int candidate = (current + i) % CPU_SETSIZE;
    if (CPU_ISSET(candidate, &allowed)) return candidate;
  }
  return -1;
}

}  // namespace tutti::softgpu
