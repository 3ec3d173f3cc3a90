// What the nodes of a communicator found, brought down to what all of them can do: from everybody's words
// (node_graphs.h) each rank computes the same.
#pragma once

#include <array>
#include <span>

#include "base/status.h"
#include "topo/channels/node_graphs.h"

namespace tutti::topo {

class RankLayout;
struct PeerInfo;

/// What all nodes can do; equal on all ranks.
struct AgreedGraphs {
  std::array<GraphSummary, kGraphs> graphs;  ///< fewest channels, least bandwidths, longest paths, most latency
  bool amdOrMixedCpus = false;               ///< some node has an AMD CPU, or nodes have CPUs of different makers

  const GraphSummary& of(GraphId id) const { return graphs[static_cast<std::size_t>(id)]; }
  /// Whether every rank knows its machine: only then there are channels to be built of the graphs.
  bool known() const { return of(GraphId::Ring).channels > 0 && of(GraphId::Tree).channels > 0; }
};

/// Reduces the words of all ranks, `all[r]` being rank r's. Where nodes differ in a tree's pattern the one that asks
/// less of a node counts (TREE: one GPU at the network); each node's edges still end where its own pattern puts them.
/// ncclInvalidUsage, on all ranks alike, where two ranks of one node found different graphs: names both.
Result<AgreedGraphs> agreeOnGraphs(const RankLayout& layout, std::span<const PeerInfo> peers,
                                   std::span<const GraphReport> all);

}  // namespace tutti::topo
