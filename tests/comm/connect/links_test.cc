#include "comm/connect/links.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "topo/channels/inter_node.h"
#include "topo/channels/trees.h"
#include "topo/machine/peer_info.h"
#include "topo/machine/rank_layout.h"

namespace tutti::comm {
namespace {

using device::ConnKind;

std::vector<topo::RankChannel> channelsOf(int rank, int nRanks, int channels) {
  return topo::channelsByRank(topo::RankLayout(rank, std::vector<topo::PeerInfo>(static_cast<std::size_t>(nRanks))),
                              channels)
      .channels;
}

Neighbours neighboursByRank(int rank, int nRanks, int channels) {
  return neighboursOf(rank, nRanks, channelsOf(rank, nRanks, channels));
}

TEST(Links, NothingUsedNeedsNothing) {
  EXPECT_TRUE(linksOf(PlanNeeds{}, neighboursByRank(1, 4, 8)).empty());
}

TEST(Links, RingSendsOneWay) {
  PlanNeeds plan;
  plan.usesRing = true;
  EXPECT_EQ(linksOf(plan, neighboursByRank(1, 4, 8)),
            (std::vector<LinkRequest>{{2, device::Direction::Send, device::ConnKind::Graph, allChannels(8)},
                                      {0, device::Direction::Recv, device::ConnKind::Graph, allChannels(8)}}));
}

TEST(Links, RingAndTreeShareConnections) {
  PlanNeeds plan;
  plan.usesRing = true;
  plan.usesTree = true;
  EXPECT_EQ(linksOf(plan, neighboursByRank(1, 4, 2)).size(), 4U) << "0 and 2, both ways";
}

TEST(Links, MessagesAndDirectAlgorithmsUseTheMesh) {
  PlanNeeds plan;
  plan.meshPeers = {0, 2, 3};
  plan.sendPeers = {MessagePeer{0}};
  const auto links = linksOf(plan, neighboursByRank(1, 4, 1));
  EXPECT_EQ(links.size(), 6U);
  EXPECT_TRUE(
      std::all_of(links.begin(), links.end(), [](const LinkRequest& l) { return l.kind == device::ConnKind::Mesh; }));
}

TEST(Links, MessagesJoinOnTheirOwnChannelsAlone) {
  PlanNeeds plan;
  plan.sendPeers = {MessagePeer{2, 0b110000}};
  EXPECT_EQ(linksOf(plan, neighboursByRank(1, 4, 5)),
            (std::vector<LinkRequest>{{2, device::Direction::Send, device::ConnKind::Mesh, 0b10000}}));
}

TEST(Links, AloneNothingIsJoined) {
  PlanNeeds plan;
  plan.usesRing = plan.usesTree = plan.usesPat = true;
  EXPECT_TRUE(linksOf(plan, neighboursByRank(0, 1, 2)).empty());
}

TEST(Links, EveryWishHasItsMirror) {
  PlanNeeds plan;
  plan.usesRing = plan.usesTree = plan.usesPat = true;
  for (const int nRanks : {2, 3, 6, 8, 13}) {
    for (int rank = 0; rank < nRanks; ++rank) {
      for (const LinkRequest& link : linksOf(plan, neighboursByRank(rank, nRanks, 4))) {
        const auto there = linksOf(plan, neighboursByRank(link.peer, nRanks, 4));
        const device::Direction other =
            link.direction == device::Direction::Send ? device::Direction::Recv : device::Direction::Send;
        const LinkRequest mirror{rank, other, link.kind, link.channels};
        EXPECT_NE(std::find(there.begin(), there.end(), mirror), there.end())
            << nRanks << ": " << rank << ", " << link.peer;
      }
    }
  }
}

TEST(Links, AreOnTheChannelsThatUseThem) {
  PlanNeeds plan;
  plan.usesRing = plan.usesTree = true;
  std::vector<topo::RankChannel> channels = channelsOf(1, 4, 3);
  channels[1].next = 3;
  channels[1].tree = {3, {-1, -1, -1}};
  const auto links = linksOf(plan, neighboursOf(1, 4, channels));
  const auto maskOf = [&](int peer, device::Direction direction) {
    const auto link = std::find_if(links.begin(), links.end(), [&](const LinkRequest& one) {
      return one.peer == peer && one.direction == direction;
    });
    return link == links.end() ? ChannelMask{0} : link->channels;
  };
  EXPECT_EQ(maskOf(2, device::Direction::Send), ChannelMask{0b101});
  EXPECT_EQ(maskOf(3, device::Direction::Send), ChannelMask{0b010}) << "ring and tree share it";
  EXPECT_EQ(maskOf(3, device::Direction::Recv), ChannelMask{0b010});
  EXPECT_EQ(maskOf(0, device::Direction::Recv), ChannelMask{0b111}) << "the ring's on all, the tree's on two";
}

}  // namespace
}  // namespace tutti::comm
