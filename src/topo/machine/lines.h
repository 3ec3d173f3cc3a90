// A machine as text: what NCCL_DEBUG_SUBSYS=GRAPH prints before the graphs.
#pragma once

#include <string>
#include <vector>

#include "topo/machine/machine.h"
#include "topo/machine/paths.h"

namespace tutti::topo {

/// "=== System : maxBw 48.0 totalBw 480.0 ===", then a tree of nodes under each CPU, then a line of '='.
std::vector<std::string> machineLines(const Machine& machine, const MachineBandwidth& bandwidth);

/// The tree alone: "CPU/0-0 (1/1/2)", "+ PCI[48.0] - PCI/0-4000 (11f8405211f8beef)", …, 14 columns a level.
std::vector<std::string> machineTreeLines(const Machine& machine);

}  // namespace tutti::topo
