#include "comm/links.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "topo/across.h"
#include "topo/trees.h"

namespace tutti {
namespace {

using device::ConnKind;

std::vector<RankChannel> channelsOf(int rank, int nRanks, int channels) {
  return channelsByRank(RankLayout(rank, std::vector<PeerInfo>(static_cast<std::size_t>(nRanks))), channels).channels;
}

Neighbours neighboursByRank(int rank, int nRanks, int channels) {
  return neighboursOf(rank, nRanks, channelsOf(rank, nRanks, channels));
}

TEST(Links, NothingUsedNeedsNothing) { EXPECT_TRUE(linksOf(Plan{}, neighboursByRank(1, 4, 8)).empty()); }

TEST(Links, RingSendsOneWay) {
  Plan plan;
  plan.usesRing = true;
  EXPECT_EQ(linksOf(plan, neighboursByRank(1, 4, 8)),
            (std::vector<LinkRequest>{{2, Direction::Send, ConnKind::Graph, allChannels(8)}, {0, Direction::Recv, ConnKind::Graph, allChannels(8)}}));
}

TEST(Links, RingAndTreeShareConnections) {
  Plan plan;
  plan.usesRing = true;
  plan.usesTree = true;
  EXPECT_EQ(linksOf(plan, neighboursByRank(1, 4, 2)).size(), 4U) << "0 and 2, both ways";
}

TEST(Links, MessagesAndDirectAlgorithmsUseTheMesh) {
  Plan plan;
  plan.meshPeers = {0, 2, 3};
  plan.sendPeers = {MessagePeer{0}};
  const auto links = linksOf(plan, neighboursByRank(1, 4, 1));
  EXPECT_EQ(links.size(), 6U);
  EXPECT_TRUE(std::all_of(links.begin(), links.end(), [](const LinkRequest& l) { return l.kind == ConnKind::Mesh; }));
}

TEST(Links, MessagesJoinOnTheirOwnChannelsAlone) {
  Plan plan;
  plan.sendPeers = {MessagePeer{2, 0b110000}};
  EXPECT_EQ(linksOf(plan, neighboursByRank(1, 4, 5)),
            (std::vector<LinkRequest>{{2, Direction::Send, ConnKind::Mesh, 0b10000}}));
}

TEST(Links, AloneNothingIsJoined) {
  Plan plan;
  plan.usesRing = plan.usesTree = plan.usesPat = true;
  EXPECT_TRUE(linksOf(plan, neighboursByRank(0, 1, 2)).empty());
}

TEST(Links, EveryWishHasItsMirror) {
  Plan plan;
  plan.usesRing = plan.usesTree = plan.usesPat = true;
  for (const int nRanks : {2, 3, 6, 8, 13}) {
    for (int rank = 0; rank < nRanks; ++rank) {
      for (const LinkRequest& link : linksOf(plan, neighboursByRank(rank, nRanks, 4))) {
        const auto there = linksOf(plan, neighboursByRank(link.peer, nRanks, 4));
        const Direction other = link.direction == Direction::Send ? Direction::Recv : Direction::Send;
        const LinkRequest mirror{rank, other, link.kind, link.channels};
        EXPECT_NE(std::find(there.begin(), there.end(), mirror), there.end()) << nRanks << ": " << rank << ", " << link.peer;
      }
    }
  }
}

TEST(Links, AreOnTheChannelsThatUseThem) {
  Plan plan;
  plan.usesRing = plan.usesTree = true;
  std::vector<RankChannel> channels = channelsOf(1, 4, 3);
  channels[1].next = 3;
  channels[1].tree = {3, {-1, -1, -1}};
  const auto links = linksOf(plan, neighboursOf(1, 4, channels));
  const auto maskOf = [&](int peer, Direction direction) {
    const auto link = std::find_if(links.begin(), links.end(), [&](const LinkRequest& one) {
      return one.peer == peer && one.direction == direction;
    });
    return link == links.end() ? ChannelMask{0} : link->channels;
  };
  EXPECT_EQ(maskOf(2, Direction::Send), ChannelMask{0b101});
  EXPECT_EQ(maskOf(3, Direction::Send), ChannelMask{0b010}) << "ring and tree share it";
  EXPECT_EQ(maskOf(3, Direction::Recv), ChannelMask{0b010});
  EXPECT_EQ(maskOf(0, Direction::Recv), ChannelMask{0b111}) << "the ring's on all, the tree's on two";
}

LaunchNote noteOf(device::Func func, device::Algorithm algorithm) {
  LaunchNote note;
  note.shape = {func, algorithm, device::Protocol::LL};
  note.nChannels = 2;
  note.firstChannel = 1;
  return note;
}

TEST(Links, OfALaunchAreThoseOfItsAlgorithmAndChannels) {
  const Neighbours neighbours = neighboursOf(1, 4, channelsOf(1, 4, 4));
  const auto ring = linksUsedBy(noteOf(device::Func::AllReduce, device::Algorithm::Ring), neighbours, 4);
  ASSERT_EQ(ring.size(), 2U);
  for (const UsedLink& used : ring) {
    EXPECT_EQ(used.link.channels, ChannelMask{0b0110});
    EXPECT_EQ(used.protocol, device::Protocol::LL);
  }
  const auto direct = linksUsedBy(noteOf(device::Func::AllReduce, device::Algorithm::OneShot), neighbours, 4);
  EXPECT_EQ(direct.size(), 6U) << "three peers, both ways";
  LaunchNote inPlace = noteOf(device::Func::AllReduce, device::Algorithm::Ring);
  inPlace.inPlace = true;
  const Neighbours two = neighboursOf(1, 2, channelsOf(1, 2, 4));
  EXPECT_EQ(linksUsedBy(inPlace, two, 2).size(), 4U) << "of both kinds, both ways";
  inPlace.follows = false;
  const auto mesh = linksUsedBy(inPlace, two, 2);
  ASSERT_EQ(mesh.size(), 2U);
  for (const UsedLink& used : mesh) EXPECT_EQ(used.link.kind, device::ConnKind::Mesh);
  EXPECT_TRUE(linksUsedBy(LaunchNote(), neighbours, 4).empty());
}

TEST(Links, OfABroadcastDoNotReachTheRoot) {
  LaunchNote note = noteOf(device::Func::Broadcast, device::Algorithm::Ring);
  note.root = 1;
  const auto atRoot = linksUsedBy(note, neighboursOf(1, 4, channelsOf(1, 4, 4)), 4);
  ASSERT_EQ(atRoot.size(), 1U);
  EXPECT_EQ(atRoot[0].link.direction, Direction::Send);
  const auto before = linksUsedBy(note, neighboursOf(0, 4, channelsOf(0, 4, 4)), 4);
  ASSERT_EQ(before.size(), 1U);
  EXPECT_EQ(before[0].link.direction, Direction::Recv);
}

TEST(Links, OfMessagesAreThoseOfTheirPeers) {
  LaunchNote note = noteOf(device::Func::SendRecv, device::Algorithm::Ring);
  device::P2pWork work{};
  work.sendPeer = 2;
  work.recvPeer = -1;
  work.channelLo = 1;
  work.channelHi = 2;
  work.sendProtocol = device::Protocol::Simple;
  note.messages = {work, work};
  note.messages[1].sendPeer = 1;   // to itself: no connection
  const auto links = linksUsedBy(note, neighboursOf(1, 4, channelsOf(1, 4, 4)), 4);
  ASSERT_EQ(links.size(), 1U);
  EXPECT_EQ(links[0].link.peer, 2);
  EXPECT_EQ(links[0].link.channels, ChannelMask{0b0110});
  EXPECT_EQ(links[0].protocol, device::Protocol::Simple);
}

}  // namespace
}  // namespace tutti
