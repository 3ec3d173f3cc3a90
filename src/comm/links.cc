#include "comm/links.h"

#include <algorithm>
#include <span>
#include <utility>

#include "topo/trees.h"

namespace tutti {

namespace {

using device::ConnKind;

class LinkList {
 public:
  explicit LinkList(int self) : self_(self) {}

  void add(const LinkRequest& link) {
    if (link.peer == self_ || link.peer < 0) return;
    const auto same = std::find_if(links_.begin(), links_.end(), [&](const LinkRequest& other) {
      return other.peer == link.peer && other.direction == link.direction && other.kind == link.kind;
    });
    if (same == links_.end()) {
      links_.push_back(link);
    } else {
      same->channels |= link.channels;
    }
  }
  void add(std::span<const LinkRequest> links) {
    for (const LinkRequest& link : links) add(link);
  }
  void addBothWays(int peer, ConnKind kind, ChannelMask channels) {
    add({peer, Direction::Send, kind, channels});
    add({peer, Direction::Recv, kind, channels});
  }
  std::vector<LinkRequest> take() { return std::move(links_); }

 private:
  int self_;
  std::vector<LinkRequest> links_;
};

std::vector<LinkRequest> ringLinks(int rank, std::span<const RankChannel> channels) {
  LinkList links(rank);
  for (std::size_t c = 0; c < channels.size(); ++c) {
    const ChannelMask mask = oneChannel(static_cast<int>(c));
    links.add({channels[c].next, Direction::Send, ConnKind::Graph, mask});
    links.add({channels[c].prev, Direction::Recv, ConnKind::Graph, mask});
  }
  return links.take();
}

std::vector<LinkRequest> treeLinks(int rank, std::span<const RankChannel> channels) {
  LinkList links(rank);
  for (std::size_t c = 0; c < channels.size(); ++c) {
    const ChannelMask mask = oneChannel(static_cast<int>(c));
    links.addBothWays(channels[c].tree.up, ConnKind::Graph, mask);
    for (const int child : channels[c].tree.down) links.addBothWays(child, ConnKind::Graph, mask);
  }
  return links.take();
}

std::vector<LinkRequest> patLinks(int rank, int nRanks, ChannelMask all) {
  LinkList links(rank);
  for (const int peer : patNeighbours(rank, nRanks)) links.addBothWays(peer, ConnKind::Graph, all);
  return links.take();
}

}  // namespace

Neighbours neighboursOf(int rank, int nRanks, std::vector<RankChannel> channels) {
  std::vector<LinkRequest> ring = ringLinks(rank, channels);
  std::vector<LinkRequest> tree = treeLinks(rank, channels);
  std::vector<LinkRequest> pat = patLinks(rank, nRanks, allChannels(static_cast<int>(channels.size())));
  return {rank, std::move(channels), std::move(ring), std::move(tree), std::move(pat)};
}

std::vector<LinkRequest> linksOf(const Plan& plan, const Neighbours& neighbours) {
  const ChannelMask all = allChannels(static_cast<int>(neighbours.channels.size()));
  LinkList links(neighbours.rank);
  if (plan.usesRing) links.add(neighbours.ring);
  if (plan.usesTree) links.add(neighbours.tree);
  if (plan.usesPat) links.add(neighbours.pat);
  for (const int peer : plan.meshPeers) links.addBothWays(peer, ConnKind::Mesh, all);
  for (const int peer : plan.sendPeers) links.add({peer, Direction::Send, ConnKind::Mesh, all});
  for (const int peer : plan.recvPeers) links.add({peer, Direction::Recv, ConnKind::Mesh, all});
  return links.take();
}

}  // namespace tutti
