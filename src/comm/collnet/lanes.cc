#include "comm/collnet/lanes.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "comm/collnet/rails.h"
#include "comm/connect/links.h"
#include "topo/machine/rank_layout.h"

namespace tutti::comm {

namespace {

/// Contributions go to a head by Graph connections, results come from it by Mesh connections.
std::vector<LinkRequest> directLinks(const topo::RankLayout& layout, const Rails& rails, int nChannels) {
  const int self = layout.rank();
  const ChannelMask all = allChannels(nChannels);
  const int node = layout.nodeOf(self);
  std::vector<LinkRequest> links;
  for (int rail = 0; rail < rails.heads; ++rail) {
    const int head = rails.headOf(node, rail);
    if (head != self) {
      addLink(links, self, {head, device::Direction::Send, device::ConnKind::Graph, all});
      addLink(links, self, {head, device::Direction::Recv, device::ConnKind::Mesh, all});
      continue;
    }
    for (const int rank : layout.ranksOnNode(node)) {
      addLink(links, self, {rank, device::Direction::Recv, device::ConnKind::Graph, all});
      addLink(links, self, {rank, device::Direction::Send, device::ConnKind::Mesh, all});
    }
  }
  return links;
}

/// The rank's neighbours in the chain of one channel.
device::CollNetChainPlace placeIn(const std::vector<int>& chain, std::span<const int> ranks, int localRank) {
  const auto at = std::find(chain.begin(), chain.end(), localRank);
  const auto rankOf = [&](int local) { return ranks[static_cast<std::size_t>(local)]; };
  device::CollNetChainPlace place{-1, -1, 0, 0};
  if (at == chain.end()) return place;
  if (at != chain.begin()) place.up = rankOf(*(at - 1));
  if (at + 1 != chain.end()) place.down = rankOf(*(at + 1));
  return place;
}

/// Channels by the rail of their chain's head, then by number: what a head's lanes carry lies in a row.
std::vector<int> orderByRail(std::span<const int> railOfChannel) {
  std::vector<int> order(railOfChannel.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return railOfChannel[static_cast<std::size_t>(a)] < railOfChannel[static_cast<std::size_t>(b)];
  });
  return order;
}

int railOfLocal(const NodeHeads& node, int localRank) {
  const auto head = std::find_if(node.heads.begin(), node.heads.end(),
                                 [localRank](const NodeHead& one) { return one.localRank == localRank; });
  return static_cast<int>(head - node.heads.begin());
}

void addChains(CollNetLanes& lanes, const topo::RankLayout& layout, const NodeHeads& node, int chains) {
  const int self = layout.rank();
  std::vector<int> railOfChannel;
  for (int c = 0; c < lanes.nChannels; ++c) {
    const std::vector<int>& chain = node.chains[static_cast<std::size_t>(c % chains)];
    railOfChannel.push_back(railOfLocal(node, chain.front()));
    if (chain.front() == layout.localRank()) lanes.chainLanes.push_back(c);
    const device::CollNetChainPlace place = placeIn(chain, layout.ranksOnNode(layout.nodeOf(self)), layout.localRank());
    lanes.chainPlaces.push_back(place);
    for (const int peer : {place.up, place.down}) {
      addLink(lanes.chainLinks, self, {peer, device::Direction::Send, device::ConnKind::Graph, oneChannel(c)});
      addLink(lanes.chainLinks, self, {peer, device::Direction::Recv, device::ConnKind::Graph, oneChannel(c)});
    }
  }
  const std::vector<int> order = orderByRail(railOfChannel);
  for (std::size_t position = 0; position < order.size(); ++position) {
    lanes.chainPlaces[static_cast<std::size_t>(order[position])].position = static_cast<int>(position);
  }
}

}  // namespace

CollNetLanes lanesOf(const topo::RankLayout& layout, const NodeHeads& node, const Rails& rails, int nChannels) {
  CollNetLanes lanes;
  lanes.nChannels = nChannels;
  lanes.head = rails.railOf(layout.rank());
  if (rails.direct()) {
    lanes.directLinks = directLinks(layout, rails, nChannels);
    for (int c = 0; lanes.head >= 0 && c < nChannels; ++c) lanes.directLanes.push_back(c);
  }
  if (rails.chain()) addChains(lanes, layout, node, rails.chains);
  return lanes;
}

}  // namespace tutti::comm
