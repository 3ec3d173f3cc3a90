// What one call says of how it is to run: algSelection, minCTAs and maxCTAs of ncclCollConfig_t, as plain values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/work.h"

namespace tutti::comm {

/// Algorithms and protocols that a call may use. What it names counts more than NCCL_ALGO and NCCL_PROTO; where it
/// names algorithms alone, or protocols alone, these still speak for the other. Equal on all ranks.
struct Selection {
  std::uint32_t combinations = 0;     ///< a bit each, see bitOf(); 0: the call selects nothing
  std::uint16_t namedAlgorithms = 0;  ///< a bit each
  std::uint8_t namedProtocols = 0;    ///< a bit each
  bool forced = true;                 ///< false: where nothing selected is possible, the call goes without

  bool given() const { return combinations != 0; }
  static constexpr std::uint32_t bitOf(std::size_t algorithm, std::size_t protocol) {
    return std::uint32_t{1} << (algorithm * device::kProtocols + protocol);
  }
  bool allows(std::size_t algorithm, std::size_t protocol) const {
    return (combinations & bitOf(algorithm, protocol)) != 0;
  }
};

/// Of one call. Equal on all ranks.
struct CallOptions {
  Selection selection;
  std::uint8_t minChannels = 0;  ///< 0: not said
  std::uint8_t maxChannels = 0;  ///< the same
};

}  // namespace tutti::comm
