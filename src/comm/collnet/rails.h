// From what every rank says of its node to the heads and rails of a communicator. Pure: every rank computes the same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/collnet/node_heads.h"
#include "topo/search/graph.h"

namespace tutti::topo {
class RankLayout;
struct PeerInfo;
}  // namespace tutti::topo

namespace tutti::comm {

/// What one rank tells of its node. Trivially copyable: travels through ControlChannel::allGather as it is.
struct RailReport {
  std::int16_t rail = -1;                                     ///< of which its node names it the head; -1: none
  std::uint8_t rails = 0;                                     ///< heads of its node
  std::uint8_t chains = 0;                                    ///< channels of its node's chain graph
  std::uint8_t reachesLocals = 0;                             ///< its kernels reach the memory of all ranks of its node
  std::uint8_t switched = 0;                                  ///< NodeHeads::switched
  std::array<std::int8_t, topo::kMostChannels> chainRails{};  ///< by channel of the chain graph: its head's rail
};

/// `localRank` of the rank itself.
RailReport railReport(const NodeHeads& node, int localRank, bool reachesLocals);

/// Who talks to the network.
struct Rails {
  int heads = 0;            ///< of every node: rails; 0: none
  std::vector<int> ranks;   ///< the head of rail h of node n: [n * heads + h]
  int mostLocals = 1;       ///< ranks of the largest node
  int chains = 0;           ///< channels of a chain graph that all nodes have, with their heads on the same rails
  std::string whyNoDirect;  ///< empty: CollNetDirect is possible
  std::string whyNoChain;   ///< likewise

  int headOf(int node, int rail) const { return ranks[static_cast<std::size_t>(node * heads + rail)]; }
  /// The rail that the rank heads; -1: none.
  int railOf(int rank) const;
  bool direct() const { return whyNoDirect.empty(); }
  bool chain() const { return whyNoChain.empty(); }
  /// Whether all ranks are heads: what gathering and scattering needs.
  bool everyRankHeads() const { return heads > 0 && heads == mostLocals; }
};

/// `reports` and `peers` by rank.
Rails railsFrom(const topo::RankLayout& layout, std::span<const topo::PeerInfo> peers,
                std::span<const RailReport> reports);

}  // namespace tutti::comm
