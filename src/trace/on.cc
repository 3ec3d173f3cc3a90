#include "trace/on.h"

#include <ctime>

namespace tutti::trace {

namespace detail {
constinit std::atomic<bool> gOn{false};
}

std::uint64_t now() {
  timespec time{};
  static_cast<void>(::clock_gettime(CLOCK_MONOTONIC, &time));
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace tutti::trace
