// The machine that a command is about.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "topo/search/search.h"
#include "topo/search/topology.h"

namespace tutti::tool {

/// What the command line says about the machine.
struct MachineChoice {
  std::string source;     ///< path of a topology file, or "live"
  std::vector<int> gpus;  ///< NVML indices in rank order; empty: all
  int nodes = 1;          ///< more than one: the communicator spans several such machines
  int hosts = 1;          ///< that many copies joined by NVLink
  bool collNet = false;
};

struct Loaded {
  std::string title;  ///< for pictures and headings
  topo::Topology topology;
  topo::SearchSettings settings;  ///< of the search that the choice asks for
};

/// Reads the file, or looks at the live machine. Errors: as buildTopology() and readTopologyFile(); on the live
/// machine also ncclInvalidUsage where there is nothing to see.
Result<Loaded> load(const MachineChoice& choice);

}  // namespace tutti::tool
