// What tutti-topo writes for readers: pure functions from a machine and its graphs to text.
#pragma once

#include <string>
#include <vector>

#include "topo/machine/machine.h"
#include "topo/search/graph.h"
#include "topo/search/topology.h"

namespace tutti::tool {

/// The tree of hosts, CPUs, switches, GPUs and NICs, at most 120 columns wide.
std::string showText(const topo::Machine& machine);

/// Two matrices, of types and of bandwidths, GPUs and NICs from (rows) and to (columns), and what the words mean.
std::string pathsText(const topo::Topology& topology);

/// A graph and its search.
struct Found {
  topo::Graph graph;
  float bound = 0;          ///< GB/s of all channels together, 0: unknown
  double milliseconds = 0;  ///< of its search, processor time
};

std::string searchText(const topo::Machine& machine, const std::vector<Found>& found, bool interNode);
/// The same as JSON: an object with the machine's GPUs and NICs, and an array of graphs.
std::string searchJson(const topo::Machine& machine, const std::vector<Found>& found, bool interNode);

}  // namespace tutti::tool
