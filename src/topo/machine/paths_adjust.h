// What P2P, SHM, GPUDirect RDMA and PXN make of the shortest paths: the parts of computePaths() (paths.h) that others
// ask for as well.
#pragma once

#include <cstdint>
#include <string_view>

#include "topo/machine/machine.h"
#include "topo/machine/paths.h"

namespace tutti::topo {

/// One path after the other. C2C and PHB together are P2C, else the longer type counts.
Path joinPaths(const Path& first, const Path& second);

/// The CPU nearest to a GPU; -1: none. A node number.
int localCpu(const Machine& machine, const PathTable& paths, int gpu);

/// How far apart two GPUs may be for P2P.
PathType p2pLevel(const Machine& machine, const PathSettings& settings);

/// How far a GPU may be from a NIC for GPUDirect RDMA.
PathType gdrLevel(const PathSettings& settings);

/// The GPU that a GPU sends through on its way to a NIC (PXN); -1: none. Node numbers.
int relayOnWay(const Machine& machine, const PathTable& paths, int gpu, int net);

struct GdrPair {
  int gpu = -1;
  int net = -1;
  bool read = false;                  ///< the NIC reads the GPU's memory (sending), else it writes to it
  PathType distance = PathType::Dis;  ///< of the path between the two
};
/// Why GPUDirect RDMA works for a GPU and a NIC, or does not.
enum class GdrVerdict : std::uint8_t {
  Usable,
  GpuCannot,  ///< the driver says that NICs do not reach its memory
  Divided,    ///< the GPU is a partition
  NicCannot,  ///< the NIC takes no GPU memory
  TooFar,     ///< NCCL_NET_GDR_LEVEL
  ReadOff,    ///< NCCL_NET_GDR_READ=0
  ReadSlow,   ///< a GPU before compute capability 8 without NVLink is read better by itself
};
GdrVerdict judgeGdr(const Machine& machine, const PathTable& paths, const PathSettings& settings, const GdrPair& pair);
/// In words that fit behind a colon; "": it works.
std::string_view gdrVerdictText(GdrVerdict verdict);

/// Whether GPUDirect RDMA works for a GPU and a NIC.
bool gdrUsable(const Machine& machine, const PathTable& paths, const PathSettings& settings, const GdrPair& pair);

}  // namespace tutti::topo
