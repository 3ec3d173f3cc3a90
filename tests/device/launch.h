// How tests launch kernels that run beside them.
#pragma once

#include <array>

#include "device/fiber_executor.h"
#include "device/thread_executor.h"

namespace tutti::device::test {

#if defined(__SANITIZE_THREAD__)
/// Races between the threads of a block show only where they are threads.
using Launch = ThreadLaunch;
/// Threads of a block that share its work. ThreadSanitizer makes their hand-overs many times as slow.
inline constexpr std::array kSharingThreads{64u};
#else
using Launch = FiberLaunch;
/// Threads of a block that share its work: one warp, and several.
inline constexpr std::array kSharingThreads{32u, 96u};
#endif

}  // namespace tutti::device::test
