// What the environment says about devices of a network that become one, as plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/settings/params.h"

namespace tutti::comm {

/// How far apart two devices of a network are. Ordered.
enum class NicDistance : std::uint8_t {
  Port,   ///< ports, or functions, of one adapter
  Pix,    ///< below one PCI switch
  Pxb,    ///< several switches in between
  Phb,    ///< the same NUMA node
  Apart,  ///< different ones, or unknown
};

/// What the environment says.
struct FusionSettings {
  std::optional<NicDistance> farthest = NicDistance::Port;  ///< NCCL_NET_MERGE_LEVEL; empty: LOC, none are fused
  bool onlyOfOneRail = false;                               ///< NCCL_NET_MERGE_POLICY=RAIL
  std::string forced;                                       ///< NCCL_NET_FORCE_MERGE
};

FusionSettings fusionSettings(const Params::Topology& params);

}  // namespace tutti::comm
