// Whether this process writes a trace, and by which clock. Points stand where things happen; where no trace is asked
// for, each costs one relaxed load and a branch.
#pragma once

#include <atomic>
#include <cstdint>

namespace tutti::trace {

namespace detail {
extern std::atomic<bool> gOn;
}

/// Whether points write. Any thread.
inline bool on() {
  return detail::gOn.load(std::memory_order_relaxed);
}

/// Nanoseconds of the clock that all processes of a host share.
std::uint64_t now();

}  // namespace tutti::trace
