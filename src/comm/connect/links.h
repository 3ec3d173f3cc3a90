// Which connections the operations of a plan run over: plain facts -> a value. They are opened when first used.
#pragma once

#include <span>
#include <vector>

#include "comm/connect/link_types.h"
#include "comm/connect/neighbours.h"
#include "comm/plan/plan_needs.h"

namespace tutti::comm {

/// Tells `visit` of every connection that a plan uses, on the channels that use it; of some more than once. The rank at
/// the other end of each is told of the mirrored one if it was given the same collectives and the other half of each
/// message.
template <class Visit>
void forEachLink(const PlanNeeds& needs, const Neighbours& neighbours, Visit&& visit) {
  const ChannelMask all = allChannels(static_cast<int>(neighbours.channels.size()));
  const auto visitAll = [&](const std::vector<LinkRequest>& links) {
    for (const LinkRequest& link : links) visit(link);
  };
  if (needs.usesRing) visitAll(neighbours.ring);
  if (needs.usesTree) visitAll(neighbours.tree);
  if (needs.usesPat) visitAll(neighbours.pat);
  if (needs.usesCollNetDirect) visitAll(neighbours.collNetDirect);
  if (needs.usesCollNetChain) visitAll(neighbours.collNetChain);
  for (const int peer : needs.meshPeers) {
    visit(LinkRequest{peer, device::Direction::Send, device::ConnKind::Mesh, all});
    visit(LinkRequest{peer, device::Direction::Recv, device::ConnKind::Mesh, all});
  }
  for (const MessagePeer& peer : needs.sendPeers) {
    visit(LinkRequest{peer.rank, device::Direction::Send, device::ConnKind::Mesh, peer.channels & all});
  }
  for (const MessagePeer& peer : needs.recvPeers) {
    visit(LinkRequest{peer.rank, device::Direction::Recv, device::ConnKind::Mesh, peer.channels & all});
  }
}

/// The same as a list without repetition.
std::vector<LinkRequest> linksOf(const PlanNeeds& needs, const Neighbours& neighbours);

}  // namespace tutti::comm
