#include "comm/links.h"

#include <algorithm>
#include <span>

namespace tutti {

namespace {

using device::ConnKind;

class LinkList {
 public:
  LinkList(int self, int channels) : self_(self), all_(allChannels(channels)) {}

  void add(int peer, Direction direction, ConnKind kind, ChannelMask channels) {
    if (peer == self_ || peer < 0) return;
    const auto same = std::find_if(links_.begin(), links_.end(), [&](const LinkRequest& link) {
      return link.peer == peer && link.direction == direction && link.kind == kind;
    });
    if (same == links_.end()) {
      links_.push_back({peer, direction, kind, channels});
    } else {
      same->channels |= channels;
    }
  }
  void addBothWays(int peer, ConnKind kind, ChannelMask channels) {
    add(peer, Direction::Send, kind, channels);
    add(peer, Direction::Recv, kind, channels);
  }
  /// On all channels.
  void addBothWays(std::span<const int> peers, ConnKind kind) {
    for (const int peer : peers) addBothWays(peer, kind, all_);
  }
  void addMessages(std::span<const int> peers, Direction direction) {
    for (const int peer : peers) add(peer, direction, ConnKind::Mesh, all_);
  }
  std::vector<LinkRequest> take() { return std::move(links_); }

 private:
  int self_;
  ChannelMask all_;
  std::vector<LinkRequest> links_;
};

void addTree(LinkList& links, const RankPlace& place, ChannelMask channel) {
  links.addBothWays(place.up, ConnKind::Graph, channel);
  for (const int child : place.down) links.addBothWays(child, ConnKind::Graph, channel);
}

}  // namespace

std::vector<LinkRequest> linksOf(const Plan& plan, const Neighbours& neighbours) {
  const int nChannels = static_cast<int>(neighbours.channels.size());
  LinkList links(neighbours.rank, nChannels);
  for (int c = 0; c < nChannels; ++c) {
    const RankChannel& channel = neighbours.channels[static_cast<std::size_t>(c)];
    if (plan.usesRing) {
      links.add(channel.next, Direction::Send, ConnKind::Graph, oneChannel(c));
      links.add(channel.prev, Direction::Recv, ConnKind::Graph, oneChannel(c));
    }
    if (plan.usesTree) addTree(links, channel.tree, oneChannel(c));
  }
  if (plan.usesPat) links.addBothWays(neighbours.pat, ConnKind::Graph);
  links.addBothWays(plan.meshPeers, ConnKind::Mesh);
  links.addMessages(plan.sendPeers, Direction::Send);
  links.addMessages(plan.recvPeers, Direction::Recv);
  return links.take();
}

}  // namespace tutti
