// What the settings say about paths (paths.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topo/machine/path_type.h"
#include "topo/machine/peer_refusal.h"

namespace tutti {
struct Params;
}

namespace tutti::topo {

/// What NVML says of direct access between GPUs.
struct P2pStatus {
  std::vector<PeerRefusal> refused;
  std::string host;  ///< whose NVML it is, for messages; empty: nobody's in particular
  int ignore = 0;    ///< NCCL_IGNORE_DISABLED_P2P: 1: no error over NVLink, 2: not looked at
};

/// What decides about paths besides the machine; defaults are those of the settings they are named after.
struct PathSettings {
  std::optional<PathType> p2pLevel;  ///< NCCL_P2P_LEVEL; empty: PXB, on AMD with at most 2 devices SYS
  bool p2pDisabled = false;
  bool shmDisabled = false;
  bool nvbDisabled = false;
  bool pxnDisabled = false;
  bool pxnOverC2c = true;
  bool gdrOverC2c = true;
  std::optional<PathType> gdrLevel;  ///< NCCL_NET_GDR_LEVEL
  int gdrRead = -2;                  ///< NCCL_NET_GDR_READ: -2 decided by the GPU's generation
  int netsPerGpu = 0;                ///< NCCL_NETDEVS_POLICY: most NICs of a GPU's channels, 0: AUTO
  bool netDisableIntra = false;      ///< NCCL_NET_DISABLE_INTRA: never the network inside a machine for its speed
  P2pStatus p2p;
};

/// All but what NVML says.
PathSettings pathSettings(const Params& params);

/// PathSettings::netsPerGpu of NCCL_NETDEVS_POLICY, in any case: "AUTO", "ALL", "MAX:n" with n from 1. Empty: anything
/// else.
std::optional<int> parseNetDevsPolicy(std::string_view text);

/// A level of NCCL_P2P_LEVEL or NCCL_NET_GDR_LEVEL: the name of a type up to SYS in upper case, or a digit of older
/// versions: LOC, PIX, PXB, PHB, SYS from 0, SYS above. Empty: anything else, "" included.
std::optional<PathType> parsePathLevel(std::string_view text);

}  // namespace tutti::topo
