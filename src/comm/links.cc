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

/// Rings of Broadcast and Reduce are cut at the root: nothing enters it, or nothing leaves it.
bool isCut(const LinkRequest& link, const LaunchNote& note, int rank) {
  const int receiver = link.direction == Direction::Send ? link.peer : rank;
  const int sender = link.direction == Direction::Send ? rank : link.peer;
  if (note.shape.func == device::Func::Broadcast) return receiver == note.root;
  if (note.shape.func == device::Func::Reduce) return sender == note.root;
  return false;
}

std::vector<LinkRequest> linksOfAlgorithm(const LaunchNote& note, const Neighbours& neighbours, int nRanks) {
  LinkList links(neighbours.rank);
  switch (note.shape.algorithm) {
    case device::Algorithm::Ring:
      for (const LinkRequest& link : neighbours.ring) {
        if (note.follows && !isCut(link, note, neighbours.rank)) links.add(link);
      }
      for (int peer = 0; note.inPlace && peer < nRanks; ++peer) {
        links.addBothWays(peer, ConnKind::Mesh, ~ChannelMask{0});
      }
      break;
    case device::Algorithm::Tree: links.add(neighbours.tree); break;
    case device::Algorithm::Pat: links.add(neighbours.pat); break;
    case device::Algorithm::OneShot:
    case device::Algorithm::Direct:
      for (int peer = 0; peer < nRanks; ++peer) links.addBothWays(peer, ConnKind::Mesh, ~ChannelMask{0});
      break;
    case device::Algorithm::CollNetDirect:
    case device::Algorithm::CollNetChain:
    case device::Algorithm::Nvls:
    case device::Algorithm::NvlsTree: break;
  }
  return links.take();
}

ChannelMask channelsFrom(unsigned first, unsigned count) { return allChannels(static_cast<int>(count)) << first; }

std::vector<UsedLink> linksOfMessages(const LaunchNote& note, int rank) {
  std::vector<UsedLink> used;
  const auto add = [&](const LinkRequest& link, device::Protocol protocol) {
    if (link.peer < 0 || link.peer == rank) return;
    const auto same = std::find_if(used.begin(), used.end(), [&](const UsedLink& other) {
      return other.link.peer == link.peer && other.link.direction == link.direction && other.protocol == protocol;
    });
    if (same == used.end()) {
      used.push_back({link, protocol});
    } else {
      same->link.channels |= link.channels;
    }
  };
  for (const device::P2pWork& work : note.messages) {
    const ChannelMask channels = channelsFrom(work.channelLo, work.channelHi - work.channelLo + 1U);
    add({work.sendPeer, Direction::Send, ConnKind::Mesh, channels}, work.sendProtocol);
    add({work.recvPeer, Direction::Recv, ConnKind::Mesh, channels}, work.recvProtocol);
  }
  return used;
}

}  // namespace

std::vector<UsedLink> linksUsedBy(const LaunchNote& note, const Neighbours& neighbours, int nRanks) {
  if (note.nChannels == 0) return {};
  if (note.shape.func == device::Func::SendRecv) return linksOfMessages(note, neighbours.rank);
  std::vector<UsedLink> used;
  for (LinkRequest link : linksOfAlgorithm(note, neighbours, nRanks)) {
    link.channels &= channelsFrom(note.firstChannel, note.nChannels);
    if (link.channels != 0) used.push_back({link, note.shape.protocol});
  }
  return used;
}

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
  for (const MessagePeer& peer : plan.sendPeers) {
    links.add({peer.rank, Direction::Send, ConnKind::Mesh, peer.channels & all});
  }
  for (const MessagePeer& peer : plan.recvPeers) {
    links.add({peer.rank, Direction::Recv, ConnKind::Mesh, peer.channels & all});
  }
  return links.take();
}

}  // namespace tutti
