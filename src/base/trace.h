// TRACE lines where data moves: nothing but a relaxed load while nobody asks for them.
#pragma once

#include <atomic>
#include <utility>

#include "base/log.h"

namespace tutti {

namespace detail {
/// Whether lines of level TRACE may be wanted: true until NCCL_DEBUG has been read.
extern std::atomic<bool> mayTrace;
}  // namespace detail

/// Whether it is worth the while to make up what a TRACE line says. Any thread.
inline bool tracing() {
  return detail::mayTrace.load(std::memory_order_relaxed);
}

/// trace() for hot paths. Arguments are evaluated in any case: they must cost nothing.
template <class... Args>
void traceStep(std::uint32_t subsys, Format<Args...> format, Args&&... args) noexcept {
  if (!tracing()) [[likely]]
    return;
  if (!detail::logEnabled(LogLevel::Trace, subsys)) return;
  detail::logFormatted(LogLevel::Trace, subsys, format.where, format.text, fmt::make_format_args(args...));
}

}  // namespace tutti
