// What hangs under what in a machine, and what people call its parts: for pictures and lists.
#pragma once

#include <string>
#include <vector>

#include "topo/machine/machine.h"

namespace tutti::tool {

/// The PCI trees of a machine's CPUs: CPU > switches > devices > GPUs, and > NICs > nets. By node number.
struct MachineTree {
  std::vector<int> parent;                 ///< -1: CPUs, the NVSwitch, and what no CPU reaches by PCI
  std::vector<std::vector<int>> children;  ///< ascending
};

MachineTree treeOf(const topo::Machine& machine);

/// "Intel Sapphire Rapids", "AMD", …
const char* cpuKindText(topo::CpuKind kind);

/// What a GPU goes by in pictures and lists: its NVML index where that names one GPU of the machine, else its rank.
std::string gpuLabel(const topo::Machine& machine, int gpu);

/// A net's name; "net 3" where it has none.
std::string netLabel(const topo::Machine& machine, int net);

/// "0 7 6 5": labels of GPUs; of more than `most` only the first and the last, with dots between.
std::string orderText(const topo::Machine& machine, const std::vector<int>& gpus, std::size_t most = 1u << 20);

/// Bandwidth (GB/s) of the link of this kind from one node to the other, 0 if there is none.
float linkBandwidth(const topo::Machine& machine, int from, int to, topo::LinkKind kind);

/// "12", "370.8": GB/s without superfluous digits.
std::string bandwidthText(double gigabytes);

/// "PCI", "NVLink", "C2C", …
const char* linkKindText(topo::LinkKind kind);

}  // namespace tutti::tool
