#include "comm/connect/used_links.h"

#include <algorithm>

namespace tutti::comm {

namespace {

/// Rings of Broadcast and Reduce are cut at the root: nothing enters it, or nothing leaves it.
bool isCut(const LinkRequest& link, const LaunchNote& note, int rank) {
  const int receiver = link.direction == device::Direction::Send ? link.peer : rank;
  const int sender = link.direction == device::Direction::Send ? rank : link.peer;
  if (note.shape.func == device::Func::Broadcast) return receiver == note.root;
  if (note.shape.func == device::Func::Reduce) return sender == note.root;
  return false;
}

std::vector<LinkRequest> linksOfAlgorithm(const LaunchNote& note, const Neighbours& neighbours, int nRanks) {
  const int self = neighbours.rank;
  std::vector<LinkRequest> links;
  const auto addMesh = [&] {
    for (int peer = 0; peer < nRanks; ++peer) {
      addLink(links, self, {peer, device::Direction::Send, device::ConnKind::Mesh, ~ChannelMask{0}});
      addLink(links, self, {peer, device::Direction::Recv, device::ConnKind::Mesh, ~ChannelMask{0}});
    }
  };
  const auto addAll = [&](const std::vector<LinkRequest>& more) {
    for (const LinkRequest& link : more) addLink(links, self, link);
  };
  switch (note.shape.algorithm) {
    case device::Algorithm::Ring:
      for (const LinkRequest& link : neighbours.ring) {
        if (note.follows && !isCut(link, note, self)) addLink(links, self, link);
      }
      if (note.inPlace) addMesh();
      break;
    case device::Algorithm::Tree:
      addAll(neighbours.tree);
      break;
    case device::Algorithm::Pat:
      addAll(neighbours.pat);
      break;
    case device::Algorithm::OneShot:
    case device::Algorithm::Direct:
      addMesh();
      break;
    case device::Algorithm::CollNetDirect:
      addAll(neighbours.collNetDirect);
      break;
    case device::Algorithm::CollNetChain:
      addAll(neighbours.collNetChain);
      break;
    case device::Algorithm::Nvls:
    case device::Algorithm::NvlsTree:
      break;
  }
  return links;
}

ChannelMask channelsFrom(unsigned first, unsigned count) {
  return allChannels(static_cast<int>(count)) << first;
}

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
    add({work.sendPeer, device::Direction::Send, device::ConnKind::Mesh, channels}, work.sendProtocol);
    add({work.recvPeer, device::Direction::Recv, device::ConnKind::Mesh, channels}, work.recvProtocol);
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

}  // namespace tutti::comm
