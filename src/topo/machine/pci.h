// The PCI trees of a topology file as nodes of a machine: CPUs, switches, devices with their GPUs, NICs with their
// nets.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "topo/machine/machine.h"
#include "topo/xml/xml.h"

namespace tutti::topo {

/// A machine with its trees, and what its other links are made of (machine_links.h). Borrows elements of the file.
struct PciTrees {
  struct Device {
    const XmlElement* gpu;  ///< carries nvlink and c2c
    int node;
    int cpu;
  };
  struct PciLink {
    const XmlElement* element;
    int from;
  };

  Machine machine;
  std::map<std::pair<int, std::uint64_t>, int> byBusId;  ///< host and bus id -> node
  std::vector<Device> devices;
  std::vector<PciLink> pciLinks;

  /// The node of a bus id on a host, -1: none.
  int find(int system, std::uint64_t busId) const;
};

/// Errors: see buildMachine().
Result<PciTrees> buildPciTrees(const XmlElement& system);

}  // namespace tutti::topo
