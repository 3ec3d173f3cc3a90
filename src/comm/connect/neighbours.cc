#include "comm/connect/neighbours.h"

#include <algorithm>
#include <span>
#include <utility>

#include "topo/channels/trees.h"

namespace tutti::comm {

namespace {

/// A list that grows by addLink().
class LinkList {
 public:
  explicit LinkList(int self) : self_(self) {}
  void add(const LinkRequest& link) { addLink(links_, self_, link); }
  void addBothWays(int peer, device::ConnKind kind, ChannelMask channels) {
    add({peer, device::Direction::Send, kind, channels});
    add({peer, device::Direction::Recv, kind, channels});
  }
  std::vector<LinkRequest> take() { return std::move(links_); }

 private:
  int self_;
  std::vector<LinkRequest> links_;
};

std::vector<LinkRequest> ringLinks(int rank, std::span<const topo::RankChannel> channels) {
  LinkList links(rank);
  for (std::size_t c = 0; c < channels.size(); ++c) {
    const ChannelMask mask = oneChannel(static_cast<int>(c));
    links.add({channels[c].next, device::Direction::Send, device::ConnKind::Graph, mask});
    links.add({channels[c].prev, device::Direction::Recv, device::ConnKind::Graph, mask});
  }
  return links.take();
}

std::vector<LinkRequest> treeLinks(int rank, std::span<const topo::RankChannel> channels) {
  LinkList links(rank);
  for (std::size_t c = 0; c < channels.size(); ++c) {
    const ChannelMask mask = oneChannel(static_cast<int>(c));
    links.addBothWays(channels[c].tree.up, device::ConnKind::Graph, mask);
    for (const int child : channels[c].tree.down) links.addBothWays(child, device::ConnKind::Graph, mask);
  }
  return links.take();
}

std::vector<LinkRequest> patLinks(int rank, int nRanks, ChannelMask all) {
  LinkList links(rank);
  for (const int peer : topo::patNeighbours(rank, nRanks)) links.addBothWays(peer, device::ConnKind::Graph, all);
  return links.take();
}

}  // namespace

void addLink(std::vector<LinkRequest>& links, int self, const LinkRequest& link) {
  if (link.peer == self || link.peer < 0) return;
  const auto same = std::find_if(links.begin(), links.end(), [&](const LinkRequest& other) {
    return other.peer == link.peer && other.direction == link.direction && other.kind == link.kind;
  });
  if (same == links.end()) {
    links.push_back(link);
  } else {
    same->channels |= link.channels;
  }
}

Neighbours neighboursOf(int rank, int nRanks, std::vector<topo::RankChannel> channels) {
  std::vector<LinkRequest> ring = ringLinks(rank, channels);
  std::vector<LinkRequest> tree = treeLinks(rank, channels);
  std::vector<LinkRequest> pat = patLinks(rank, nRanks, allChannels(static_cast<int>(channels.size())));
  return {rank, std::move(channels), std::move(ring), std::move(tree), std::move(pat), {}, {}};
}

}  // namespace tutti::comm
