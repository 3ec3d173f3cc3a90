// Computes the channels of every algorithm from a machine and its paths. Pure: the same result on any computer.
#pragma once

#include <functional>

#include "topo/machine/machine.h"
#include "topo/machine/paths.h"
#include "topo/search/graph.h"

namespace tutti::topo {

struct SearchSettings {
  bool interNode = false;  ///< the communicator spans several machines: rings end at NICs
  bool collNet = false;    ///< a collNet plugin is there: its graphs are wanted
  bool nvls = true;        ///< multicast allowed, where the machine has it
  int crossNic = 2;        ///< NCCL_CROSS_NIC: 0 one rail, 1 any NIC, 2 as the bandwidth wants
  int maxChannels = 32;    ///< of the ring
  int minChannels = 1;
};

/// Which graph is wanted, and within which numbers of channels.
struct GraphRequest {
  GraphId id = GraphId::Ring;
  Pattern pattern = Pattern::Ring;
  int minChannels = 1;
  int maxChannels = 32;
};

/// All graphs of one machine; collNet's and NVLS' have no channels where they are not wanted or not possible.
struct GraphSet {
  Graph ring;
  Graph tree;  ///< as many channels as the ring
  Graph collNetChain;
  Graph collNetDirect;
  Graph nvls;
};

/// Hears of each graph of a set, in order, as soon as its own search is over: for whoever measures the time.
using GraphSearched = std::function<void(GraphId)>;

/// All graphs, in order, the later ones bound by the ring's number of channels. The ring may still be split for the
/// tree's sake. Never fails for ring and tree: what cannot be connected well gets one channel of 0.1 GB/s over SYS.
GraphSet searchGraphs(const Machine& machine, const PathTable& paths, const SearchSettings& settings,
                      const GraphSearched& searched = {});

/// The most bandwidth (GB/s, sum over channels) that such a graph of this machine can have: a cut, never exceeded by
/// what is feasible. docs/topology.md, "Bound".
float bandwidthBound(const Machine& machine, const PathTable& paths, const GraphRequest& request,
                     const SearchSettings& settings);

}  // namespace tutti::topo
