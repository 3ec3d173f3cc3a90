#include "comm/connect/used_links.h"

#include <gtest/gtest.h>

#include "topo/channels/inter_node.h"
#include "topo/channels/trees.h"
#include "topo/machine/peer_info.h"
#include "topo/machine/rank_layout.h"

namespace tutti::comm {
namespace {

std::vector<topo::RankChannel> ringsOf(int rank, int nRanks, int channels) {
  return topo::channelsByRank(topo::RankLayout(rank, std::vector<topo::PeerInfo>(static_cast<std::size_t>(nRanks))),
                              channels)
      .channels;
}

LaunchNote noteOf(device::Func func, device::Algorithm algorithm) {
  LaunchNote note;
  note.shape = {func, algorithm, device::Protocol::LL};
  note.nChannels = 2;
  note.firstChannel = 1;
  return note;
}

TEST(UsedLinks, OfALaunchAreThoseOfItsAlgorithmAndChannels) {
  const Neighbours neighbours = neighboursOf(1, 4, ringsOf(1, 4, 4));
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
  const Neighbours two = neighboursOf(1, 2, ringsOf(1, 2, 4));
  EXPECT_EQ(linksUsedBy(inPlace, two, 2).size(), 4U) << "of both kinds, both ways";
  inPlace.follows = false;
  const auto mesh = linksUsedBy(inPlace, two, 2);
  ASSERT_EQ(mesh.size(), 2U);
  for (const UsedLink& used : mesh) EXPECT_EQ(used.link.kind, device::ConnKind::Mesh);
  EXPECT_TRUE(linksUsedBy(LaunchNote(), neighbours, 4).empty());
}

TEST(UsedLinks, OfABroadcastDoNotReachTheRoot) {
  LaunchNote note = noteOf(device::Func::Broadcast, device::Algorithm::Ring);
  note.root = 1;
  const auto atRoot = linksUsedBy(note, neighboursOf(1, 4, ringsOf(1, 4, 4)), 4);
  ASSERT_EQ(atRoot.size(), 1U);
  EXPECT_EQ(atRoot[0].link.direction, device::Direction::Send);
  const auto before = linksUsedBy(note, neighboursOf(0, 4, ringsOf(0, 4, 4)), 4);
  ASSERT_EQ(before.size(), 1U);
  EXPECT_EQ(before[0].link.direction, device::Direction::Recv);
}

TEST(UsedLinks, OfMessagesAreThoseOfTheirPeers) {
  LaunchNote note = noteOf(device::Func::SendRecv, device::Algorithm::Ring);
  device::P2pWork work{};
  work.sendPeer = 2;
  work.recvPeer = -1;
  work.channelLo = 1;
  work.channelHi = 2;
  work.sendProtocol = device::Protocol::Simple;
  note.messages = {work, work};
  note.messages[1].sendPeer = 1;  // to itself: no connection
  const auto links = linksUsedBy(note, neighboursOf(1, 4, ringsOf(1, 4, 4)), 4);
  ASSERT_EQ(links.size(), 1U);
  EXPECT_EQ(links[0].link.peer, 2);
  EXPECT_EQ(links[0].link.channels, ChannelMask{0b0110});
  EXPECT_EQ(links[0].protocol, device::Protocol::Simple);
}

}  // namespace
}  // namespace tutti::comm
