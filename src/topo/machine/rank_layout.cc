#include "topo/machine/rank_layout.h"

#include <algorithm>
#include <unordered_map>

namespace tutti::topo {

RankLayout::RankLayout(int rank, std::span<const PeerInfo> peers) : rank_(rank) {
  std::unordered_map<std::uint64_t, int> nodeByHost;
  nodeOf_.reserve(peers.size());
  for (std::size_t r = 0; r < peers.size(); ++r) {
    const auto [found, isNew] = nodeByHost.try_emplace(peers[r].hostHash, static_cast<int>(ranksOnNode_.size()));
    if (isNew) ranksOnNode_.emplace_back();
    std::vector<int>& ranks = ranksOnNode_[static_cast<std::size_t>(found->second)];
    if (static_cast<int>(r) == rank) localRank_ = static_cast<int>(ranks.size());
    ranks.push_back(static_cast<int>(r));
    nodeOf_.push_back(found->second);
  }
}

std::vector<int> RankLayout::ringOrder() const {
  std::vector<int> order;
  order.reserve(nodeOf_.size());
  for (const std::vector<int>& ranks : ranksOnNode_) order.insert(order.end(), ranks.begin(), ranks.end());
  return order;
}

std::vector<std::int32_t> ringFrom(std::span<const int> order, int rank) {
  std::vector<std::int32_t> ring(order.begin(), order.end());
  const auto start = std::find(ring.begin(), ring.end(), rank);
  std::rotate(ring.begin(), start, ring.end());
  return ring;
}

}  // namespace tutti::topo
