#include "comm/plan/message_channels.h"

#include <gtest/gtest.h>

#include <set>

#include "comm/settings/network_settings.h"
#include "support/log_capture.h"

namespace tutti::comm {
namespace {

TEST(MessageChannels, AreThoseOfCollectivesWithinTheLimits) {
  EXPECT_EQ(channelsForMessages({}, 8, 8), 8u);
  EXPECT_EQ(channelsForMessages({.most = 3}, 8, 8), 3u);
  EXPECT_EQ(channelsForMessages({.fewest = 4}, 1, 8), 4u) << "although collectives gain nothing from more than one";
  EXPECT_EQ(channelsForMessages({.fewest = 16}, 1, 8), 8u) << "the communicator has no more";
  EXPECT_EQ(channelsForMessages({.fewest = 8, .most = 2}, 8, 8), 2u);
}

TEST(MessageChannels, OnlyTowardsOtherNodesThereAreFewer) {
  EXPECT_EQ(channelsPerPeer({.perNetPeer = 2}, 8, false), 2u);
  EXPECT_EQ(channelsPerPeer({.perNetPeer = 2}, 8, true), 8u);
  EXPECT_EQ(channelsPerPeer({.perNetPeer = 16}, 8, false), 8u);
}

TEST(MessageChannels, APeerTakesTwoOrWhatItsNicsCarry) {
  EXPECT_EQ(wishedPerNetPeer(0, 1, 1.25), 2);
  EXPECT_EQ(wishedPerNetPeer(0, 1, 50), 4) << "14 GB/s each";
  EXPECT_EQ(wishedPerNetPeer(0, 3, 25), 4) << "a power of 2";
  EXPECT_EQ(wishedPerNetPeer(0, 1, 1e9), 64);
  EXPECT_EQ(wishedPerNetPeer(1, 8, 400), 1) << "asked for";
  EXPECT_EQ(wishedPerNetPeer(5, 1, 1), 8);
}

TEST(MessageChannels, ARankHasAllOthersAsPeersUnlessFewerAreAskedFor) {
  EXPECT_EQ(wishedPeers(0, 8), 7);
  EXPECT_EQ(wishedPeers(3, 8), 3);
  EXPECT_EQ(wishedPeers(100, 8), 7);
  EXPECT_EQ(wishedPeers(0, 1), 0);
  EXPECT_EQ(wishedPeers(5, 1), 0);
}

TEST(MessageChannels, AMessageStaysOnTheChannelsOfItsPeer) {
  for (const unsigned perPeer : {1u, 2u, 3u, 4u, 8u}) {
    std::set<unsigned> used;
    for (int round = 0; round < 64; ++round) {
      const ChannelRange peer = peerChannels(8, perPeer, round);
      EXPECT_EQ(peer.hi - peer.lo + 1, perPeer);
      EXPECT_LT(peer.hi, 8u);
      for (unsigned wanted = 1; wanted <= perPeer; ++wanted) {
        const ChannelRange message = messageChannels(8, perPeer, round, wanted);
        EXPECT_EQ(message.hi - message.lo + 1, wanted);
        EXPECT_GE(message.lo, peer.lo);
        EXPECT_LE(message.hi, peer.hi);
        if (wanted == 1) used.insert(message.lo);
      }
    }
    EXPECT_EQ(used.size(), 8 / perPeer * perPeer) << "short messages use them all in turn, " << perPeer << " per peer";
  }
}

TEST(MessageChannels, NeighbouringRoundsGoBesideEachOther) {
  EXPECT_EQ(peerChannels(8, 2, 1), (ChannelRange{2, 3}));
  EXPECT_EQ(peerChannels(8, 2, 2), (ChannelRange{4, 5}));
  EXPECT_EQ(messageChannels(8, 8, 3, 2), (ChannelRange{6, 7})) << "where a peer has all of them";
}

TEST(MessageChannels, ChunksAreWholeGrainsAndNoLargerThanTheBufferAllows) {
  MessageSlots slots = messageSlots({}, 512 << 10, 128 << 10);
  EXPECT_EQ(slots.nvl, 128u << 10);
  EXPECT_EQ(slots.net, 128u << 10);
  slots = messageSlots({.nvlChunk = 512 << 10, .pciChunk = 1000, .netChunk = 8 << 20}, 512 << 10, 128 << 10);
  EXPECT_EQ(slots.nvl, 512u << 10) << "more than usual";
  EXPECT_EQ(slots.pci, 512u);
  EXPECT_EQ(slots.net, 512u << 10);
  EXPECT_EQ(messageSlots({}, 64 << 10, 128 << 10).pci, 64u << 10) << "NCCL_BUFFSIZE is small";
}

}  // namespace
}  // namespace tutti::comm
