// How fast parts of a machine are: bandwidths of links by kind and generation, GB/s per direction. Pure tables; the
// numbers are those that NCCL computes with (docs/topology.md, "Links").
#pragma once

#include <string_view>

#include "topo/machine/machine.h"

namespace tutti::topo {

/// Gpu-Device, virtual NIC-Cpu, peer-linked switches: no limit of their own.
inline constexpr float kLocalBandwidth = 5000;
/// Between two partitions of one GPU.
inline constexpr float kPartitionBandwidth = 2618;

/// One NVLink of a GPU of this compute capability (x 10).
float nvlinkBandwidth(int sm);

/// A PCI link of `speed` (as in /sys: "16.0 GT/s PCIe") and `width` lanes; unknown speeds count as Gen3, 0 lanes as 16.
float pciBandwidth(std::string_view speed, int width);

/// The link between two CPUs of one host.
float cpuBandwidth(CpuKind kind);

}  // namespace tutti::topo
