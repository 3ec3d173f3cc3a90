// What the tuner knows of a network that reduces and gathers by itself. Plain values, equal on all ranks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "device/work.h"
#include "nccl.h"
#include "topo/channels/graph_speed.h"

namespace tutti::comm {

/// Types and operations that a network combines.
class CollNetSupport {
 public:
  void add(ncclDataType_t type, ncclRedOp_t op) { bits_[static_cast<std::size_t>(type)] |= bitOf(op); }
  bool has(ncclDataType_t type, ncclRedOp_t op) const {
    return (bits_[static_cast<std::size_t>(type)] & bitOf(op)) != 0;
  }
  /// Keeps what the other has as well.
  void intersect(const CollNetSupport& other) {
    for (std::size_t i = 0; i < bits_.size(); ++i) bits_[i] &= other.bits_[i];
  }
  friend bool operator==(const CollNetSupport&, const CollNetSupport&) = default;

 private:
  static std::uint8_t bitOf(ncclRedOp_t op) { return static_cast<std::uint8_t>(1U << static_cast<unsigned>(op)); }
  std::array<std::uint8_t, ncclNumTypes> bits_{};
};

/// Of a communicator's collNet.
struct CollNetFacts {
  bool direct = false;    ///< CollNetDirect is possible
  bool chain = false;     ///< CollNetChain is possible
  bool gathers = false;   ///< AllGather by CollNetDirect: the network can, and every rank is a head
  bool scatters = false;  ///< the same for ReduceScatter
  int heads = 0;          ///< of every node
  int mostLocals = 1;     ///< ranks of the largest node
  std::uint32_t slotBytes = 0;
  CollNetSupport reduces;
  topo::GraphSpeed directSpeed;
  topo::GraphSpeed chainSpeed;
  std::string why =
      "CollNet is not enabled (NCCL_COLLNET_ENABLE, or collnetEnable of the configuration)";  ///< it is not used
};

}  // namespace tutti::comm
