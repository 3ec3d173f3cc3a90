// CPUs, NUMA nodes, PCI functions and their devices as Linux shows them in /sys and /proc, live or recorded: where
// hwloc is missing, and what hwloc does not tell. In all of it `root` is the folder with sys/ and proc/; empty: "/".
#pragma once

#include <string>
#include <vector>

#include "topo/detect/detect.h"

namespace tutti::topo {

/// All of the host. What is not there stays unknown. PCI functions are those that a topology needs (pci_facts.h).
HostFacts readSysfs(const std::string& root = {});

/// The kind of the CPUs; live, at least the architecture that this was built for.
ProcessorFacts readProcessor(const std::string& root);

/// NUMA nodes with CPUs, by number.
std::vector<NumaNodeFacts> readSysfsNodes(const std::string& root);

/// Bus id, parent and all 24 bits of the class of all functions, and nothing else of them.
std::vector<PciFacts> listSysfsPci(const std::string& root);

/// Sets speed and width of the functions' links: the most that device and slot can, for the current ones sink when a
/// GPU idles. A slot that is not among the functions does not count.
void takeSysfsLinks(std::vector<PciFacts>& pci, const std::string& root);

}  // namespace tutti::topo
