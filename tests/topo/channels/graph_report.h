// Ranks that tell of graphs, without machines behind them.
#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "topo/channels/graph_agreement.h"
#include "topo/machine/peer_info.h"
#include "topo/machine/rank_layout.h"

namespace tutti::test {

/// Ranks on hosts: hosts[r] is the host of rank r.
inline std::vector<topo::PeerInfo> peersOn(const std::vector<int>& hosts) {
  std::vector<topo::PeerInfo> peers(hosts.size());
  for (std::size_t r = 0; r < hosts.size(); ++r) {
    peers[r].rank = static_cast<int>(r);
    peers[r].hostHash = static_cast<std::uint64_t>(hosts[r]) + 1;
    const std::string name = "host" + std::to_string(hosts[r]);
    std::copy(name.begin(), name.end(), peers[r].hostName.begin());
  }
  return peers;
}

/// nodes x perNode ranks, node by node.
inline std::vector<topo::PeerInfo> evenPeers(int nodes, int perNode) {
  std::vector<int> hosts;
  for (int r = 0; r < nodes * perNode; ++r) hosts.push_back(r / perNode);
  return peersOn(hosts);
}

/// What a node's graphs say, but for the orders.
struct Words {
  int channels = 4;
  int crossNic = 0;
  topo::Pattern tree = topo::Pattern::BalancedTree;
  float bw = 20;
};

inline topo::GraphReport wordsOf(const Words& words) {
  topo::GraphReport graphs;
  topo::GraphSummary ring;
  ring.channels = static_cast<std::uint8_t>(words.channels);
  ring.crossNic = static_cast<std::uint8_t>(words.crossNic);
  ring.bwIntra = ring.bwInter = words.bw;
  ring.typeIntra = topo::PathType::Nvl;
  ring.typeInter = topo::PathType::Pxb;
  graphs.graphs[0] = ring;
  graphs.graphs[1] = ring;
  graphs.graphs[1].pattern = words.tree;
  return graphs;
}

/// Every node with orders of its own on every channel.
inline std::vector<topo::GraphReport> shuffledGraphs(const topo::RankLayout& layout, const Words& words,
                                                     unsigned seed) {
  std::mt19937 random(seed);
  std::vector<topo::GraphReport> all(static_cast<std::size_t>(layout.nRanks()), wordsOf(words));
  for (int node = 0; node < layout.nNodes(); ++node) {
    const std::span<const int> ranks = layout.ranksOnNode(node);
    std::vector<std::uint8_t> order(ranks.size());
    std::iota(order.begin(), order.end(), std::uint8_t{0});
    for (std::size_t c = 0; c < static_cast<std::size_t>(words.channels); ++c) {
      for (const bool tree : {false, true}) {
        std::shuffle(order.begin(), order.end(), random);
        for (std::size_t i = 0; i < ranks.size(); ++i) {
          topo::GraphReport& own = all[static_cast<std::size_t>(ranks[i])];
          (tree ? own.treePlace : own.ringPlace)[c] = order[i];
        }
      }
    }
  }
  return all;
}

}  // namespace tutti::test
