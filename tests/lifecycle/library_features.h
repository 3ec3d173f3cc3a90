// Which functions of the life cycle the library has.
#pragma once

#include <cstdint>
#include <string>

#include "nccl.h"

namespace lifecycle {

enum Feature : std::uint32_t {
  kSplit = 1,
  kShrink = 2,
  kGrow = 4,
  kRevoke = 8,
  kSuspend = 16,
  kMemStats = 32,
  kProbed = 1U << 31U,
};

/// Asks the library, by calls on a communicator of one rank that it makes on the current device and ends. A function is
/// missing only if it says so; any other answer is for the tests to judge.
std::uint32_t probeFeatures();

/// The names of those that are missing; "" if none is.
std::string missingFeatures(std::uint32_t features);

}  // namespace lifecycle
