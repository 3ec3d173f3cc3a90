// Who of a node talks to a network that reduces (collNet), as the node's graphs say it. Plain facts -> a value.
#pragma once

#include <span>
#include <vector>

namespace tutti::topo {
class Machine;
struct GraphSet;
}  // namespace tutti::topo

namespace tutti::comm {

/// A rank that talks to the network, for all ranks of its node.
struct NodeHead {
  int localRank = 0;
  int nic = -1;  ///< the network's number of the NIC
  friend bool operator==(const NodeHead&, const NodeHead&) = default;
};

/// The heads of one node, by rail, and the chains through its ranks.
struct NodeHeads {
  std::vector<NodeHead> heads;           ///< at most device::kMaxCollNetLocals; empty: CollNet is not possible
  std::vector<std::vector<int>> chains;  ///< by channel: local ranks, beginning with a head
  bool switched = true;                  ///< all GPUs of the node meet in NVSwitches, as far as anybody knows
};

/// Of the graphs of a machine whose GpuFacts::rank are local ranks. Heads are the first GPUs of the direct graph's
/// channels, each once. A chain that begins at another rank is left out.
NodeHeads headsOfGraphs(const topo::Machine& machine, const topo::GraphSet& graphs);

/// Where nobody knows the machine: the first ranks, a device each, and chains in the order of ranks from each of them
/// on. `devices`: the network's numbers of those that can do it.
NodeHeads headsByRank(int localRanks, std::span<const int> devices);

}  // namespace tutti::comm
