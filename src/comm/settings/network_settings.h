// What the environment says about networks, as plain values: devices that become one, GPUDirect RDMA, and messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "topo/machine/path_type.h"

namespace tutti {
struct Params;
}

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

FusionSettings fusionSettings(const Params& params);

/// What the environment says, besides what paths between GPU and NIC depend on.
struct GpuDirectSettings {
  std::optional<topo::PathType> level;  ///< NCCL_NET_GDR_LEVEL, where nothing is known of the machine
  int read = -2;                        ///< NCCL_NET_GDR_READ, likewise
  bool dmaBuf = true;                   ///< NCCL_DMABUF_ENABLE
  bool alwaysFlush = false;             ///< NCCL_NET_FORCE_FLUSH
  bool neverFlush = false;              ///< NCCL_GDR_FLUSH_DISABLE
};

GpuDirectSettings gpuDirectSettings(const Params& params);

/// What the environment says of collectives in the network, besides whether they are wanted.
struct CollNetSettings {
  int nodeThreshold = 2;         ///< NCCL_COLLNET_NODE_THRESHOLD
  bool ignoresMismatch = false;  ///< NCCL_IGNORE_COLLNET_MISMATCH
};

/// What the environment says of one rank's messages.
struct MessageSettings {
  int fewest = 1;              ///< NCCL_MIN_P2P_NCHANNELS
  int most = 64;               ///< NCCL_MAX_P2P_NCHANNELS
  std::uint32_t nvlChunk = 0;  ///< NCCL_P2P_NVL_CHUNKSIZE, bytes; 0: what suits the world; the same for the others
  std::uint32_t pciChunk = 0;  ///< NCCL_P2P_PCI_CHUNKSIZE
  std::uint32_t netChunk = 0;  ///< NCCL_P2P_NET_CHUNKSIZE
  int mostPerGroup = 8;        ///< NCCL_P2P_SCHEDULE_GROUP_SIZE, see MessageSchedule
};

}  // namespace tutti::comm
