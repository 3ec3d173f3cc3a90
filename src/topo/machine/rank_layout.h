// Which ranks share a host, and in which order they are neighbours: plain facts about all ranks -> a value.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topo/machine/peer_info.h"

namespace tutti::topo {

/// The ranks of a communicator by host, and which of them is ours. A value, constant after it is built.
class RankLayout {
 public:
  /// `peers[r]` describes rank r; nodes are numbered in the order of their lowest rank.
  RankLayout(int rank, std::span<const PeerInfo> peers);

  int rank() const { return rank_; }
  int nRanks() const { return static_cast<int>(nodeOf_.size()); }
  int nNodes() const { return static_cast<int>(ranksOnNode_.size()); }
  int nodeOf(int rank) const { return nodeOf_[static_cast<std::size_t>(rank)]; }
  /// Ranks of one node, ascending.
  std::span<const int> ranksOnNode(int node) const { return ranksOnNode_[static_cast<std::size_t>(node)]; }
  /// Ranks on our own node, and our place among them.
  int localRanks() const { return static_cast<int>(ranksOnNode(nodeOf(rank_)).size()); }
  int localRank() const { return localRank_; }

  /// All ranks, node by node, so that a ring crosses between two nodes once per node.
  std::vector<int> ringOrder() const;

 private:
  int rank_;
  int localRank_ = 0;
  std::vector<int> nodeOf_;
  std::vector<std::vector<int>> ranksOnNode_;
};

/// `order` turned so that it starts at `rank`: what a kernel of that rank walks along.
std::vector<std::int32_t> ringFrom(std::span<const int> order, int rank);

}  // namespace tutti::topo
