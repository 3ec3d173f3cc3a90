// Where the topology file puts a device: links, PCI tree, processors.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "softgpu/device/topology.h"
#include "softgpu/nvml/abi.h"

namespace tutti::softgpu::nvml {

/// A PCI function.
struct Function {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned slot = 0;
  bool operator==(const Function&) const = default;
};

/// The function that text such as "0000:1b:00.0" names; domain and function may be missing. Empty: none.
std::optional<Function> parseFunction(const char* text);

struct NvLink {
  LinkEnd end = kEndUnknown;
  Function target;
};

/// One device's place. Without a file everything is unknown.
struct Place {
  bool known = false;
  std::vector<NvLink> links;  ///< at most kMaxLinks
  unsigned c2cLinks = 0;
  unsigned c2cBandwidth = 0;    ///< MB/s of one
  unsigned pcieGeneration = 0;  ///< 0: unknown
  unsigned pcieWidth = 0;       ///< lanes, 0: unknown
  unsigned pciDeviceId = 0;     ///< device << 16 | vendor, 0: unknown
  unsigned pciSubSystemId = 0;  ///< the same
  unsigned pciClass = 0x030200;
  int numaNode = -1;                      ///< -1: unknown
  std::vector<std::uint32_t> processors;  ///< a bit each, from the first one; empty: unknown
  std::ptrdiff_t cpu = 0;                 ///< names the <cpu> within the file
  std::vector<std::ptrdiff_t> bridges;    ///< name the PCI bridges above, from the nearest one
};

/// The places of `file.devices`, in their order; where the file says nothing of a device it is unknown.
std::vector<Place> readPlaces(const MachineFile& file);

/// The nearest thing that both are below. Only for places that are known.
Ancestor commonAncestor(const Place& a, const Place& b);

}  // namespace tutti::softgpu::nvml
