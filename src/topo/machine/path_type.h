// How far apart two nodes of a machine are, by the worst link on the way.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tutti::topo {

/// Ordered: a larger one is a longer path. Numbers and names are those of NCCL's logs, files and settings.
enum class PathType : std::uint8_t {
  Loc = 0,   ///< the same device
  Nvl = 1,   ///< NVLink and NVSwitch only
  Nvb = 2,   ///< NVLink through one GPU in between
  C2c = 3,   ///< chip-to-chip link between GPU and CPU
  Pix = 4,   ///< at most one PCI switch
  Pxb = 5,   ///< several PCI switches, no host bridge
  P2c = 6,   ///< GPU, C2C, CPU, PCI, NIC
  Pxn = 7,   ///< GPU, NVLink, another GPU that is near the NIC, NIC
  Phb = 8,   ///< through a PCI host bridge: the CPU of one NUMA node
  Sys = 9,   ///< over the link between CPUs
  Net = 10,  ///< only over the network
  Dis = 11,  ///< not connected
};

/// "LOC", "NVL", …
const char* pathTypeName(PathType type);

/// The type of that name (upper case, as NCCL_P2P_LEVEL and graph XML write it); empty if there is none.
std::optional<PathType> parsePathType(std::string_view name);

}  // namespace tutti::topo
