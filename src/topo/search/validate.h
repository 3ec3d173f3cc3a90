// Is a graph what it says it is? Checked from the machine and its paths alone, without the search.
#pragma once

#include <string>
#include <vector>

#include "topo/machine/machine.h"
#include "topo/machine/paths.h"
#include "topo/search/graph.h"

namespace tutti::topo {

/// Sentences that say what is wrong with `graph`; empty: the machine carries it. Each names graph, channel, GPU or NIC,
/// or a link with its load and capacity. `interNode`: the graph belongs to several machines, so it uses NICs. The rules
/// stand in docs/topology.md, "Validator". CollNet's and NVLS' graphs without channels are those of an algorithm that
/// is off: nothing is wrong with them. Any thread.
std::vector<std::string> validateGraph(const Machine& machine, const PathTable& paths, const Graph& graph,
                                       bool interNode);

}  // namespace tutti::topo
