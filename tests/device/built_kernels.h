// What this build of the tests has: all kernels, or those that -Donly_kernels chose; all seeds, or fewer.
#pragma once

#include <cstdint>
#include <string_view>

namespace tutti::device::test {

/// Whether -Donly_kernels left kernels out.
extern const bool kPartialBuild;
/// Seeds that each primitive is run with. Fewer under a sanitizer, which looks for other faults than wrong orders.
extern const std::uint64_t kSeeds;
/// Elements of a vector of many turns: some are as good for ThreadSanitizer, which makes each of them slow.
#if defined(__SANITIZE_THREAD__)
inline constexpr std::uint64_t kManyTurns = 2001;
#else
inline constexpr std::uint64_t kManyTurns = 9001;
#endif

/// Whether -Donly_kernels left this one out. Never in a full build: there a kernel that is missing is a fault.
bool isLeftOut(std::string_view kernelName);

}  // namespace tutti::device::test
