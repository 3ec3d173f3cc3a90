#include "comm/stages.h"

#include <gtest/gtest.h>

#include "support/fake_control_channel.h"
#include "support/log_capture.h"
#include "support/thread_ranks.h"

namespace tutti {
namespace {

PeerInfo plainPeer(int rank, int nRanks) {
  PeerInfo peer;
  peer.rank = rank;
  peer.nRanks = nRanks;
  peer.version = NCCL_VERSION_CODE;
  peer.hostName = {'n', 'o', 'd', 'e'};
  return peer;
}

TEST(Stages, EverybodySeesEverybody) {
  test::FakeWorld world(3);
  test::runRanks(3, [&](int rank) {
    const auto peers = gatherPeers(world.channel(rank), plainPeer(rank, 3));
    ASSERT_TRUE(peers.ok());
    for (int r = 0; r < 3; ++r) EXPECT_EQ(peers.value()[static_cast<std::size_t>(r)].rank, r);
  });
}

TEST(Stages, VersionMismatchIsRefusedByNameOnAllRanks) {
  test::allowLog("Mismatched NCCL version detected : rank 0 (host node, pid 0) has 2.30.7, rank 2");
  test::FakeWorld world(3);
  test::runRanks(3, [&](int rank) {
    PeerInfo self = plainPeer(rank, 3);
    if (rank == 2) self.version = 22809;
    EXPECT_EQ(gatherPeers(world.channel(rank), self).status().code(), ncclInvalidUsage);
  });
  EXPECT_NE(test::capturedText().find("2.28.9"), std::string::npos);
}

TEST(Stages, DifferentNumbersOfRanksAreRefusedByName) {
  test::allowLog("Mismatched number of ranks : rank 0 (host node, pid 0) was started with 2, rank 1 (host node, pid 0) with 5");
  test::FakeWorld world(2);
  test::runRanks(2, [&](int rank) {
    EXPECT_EQ(gatherPeers(world.channel(rank), plainPeer(rank, rank == 0 ? 2 : 5)).status().code(), ncclInvalidUsage);
  });
}

TEST(Stages, DifferentSettingsAreRefused) {
  test::allowLog("NCCL_BUFFSIZE");
  test::FakeWorld world(2);
  test::runRanks(2, [&](int rank) {
    PeerInfo self = plainPeer(rank, 2);
    self.configHash = static_cast<std::uint64_t>(rank);
    EXPECT_EQ(gatherPeers(world.channel(rank), self).status().code(), ncclInvalidUsage);
  });
}

TEST(Stages, SoftwareGpuAndDriverDoNotMix) {
  test::allowLog("the software GPU");
  test::FakeWorld world(2);
  test::runRanks(2, [&](int rank) {
    PeerInfo self = plainPeer(rank, 2);
    self.softGpu = static_cast<std::uint32_t>(rank);
    EXPECT_EQ(gatherPeers(world.channel(rank), self).status().code(), ncclInvalidUsage);
  });
}

TEST(Stages, SmallestChannelWishWins) {
  test::FakeWorld world(3);
  test::runRanks(3, [&](int rank) {
    const auto channels = agreeOnChannels(world.channel(rank), 4 + rank);
    ASSERT_TRUE(channels.ok());
    EXPECT_EQ(channels.value(), 4);
  });
}

Runtime plainRuntime() { return runtimeFrom(Params{}); }

Config plainConfig() { return parseConfig(nullptr, undefinedConfig()).value(); }

TEST(Stages, ChannelsStayWithinTheBounds) {
  const Config config = plainConfig();
  Runtime runtime = plainRuntime();
  EXPECT_EQ(wishedChannels(device::kHostPolicy, config, runtime), 1);
  EXPECT_EQ(wishedChannels(device::kGpuPolicy, config, runtime), 8);
  runtime.minChannels = 12;
  EXPECT_EQ(wishedChannels(device::kGpuPolicy, config, runtime), 12);
  runtime.maxChannels = 3;
  EXPECT_EQ(wishedChannels(device::kGpuPolicy, config, runtime), 3) << "the maximum wins";
  Config narrow = config;
  narrow.values.maxCTAs = 2;
  EXPECT_EQ(wishedChannels(device::kGpuPolicy, narrow, runtime), 2);
}

TEST(Stages, SlotsFollowTheBufferSize) {
  Runtime runtime = plainRuntime();
  EXPECT_EQ(slotBytesFor(device::kHostPolicy, runtime)[0][2], device::kHostPolicy.simpleSlotBytes);
  runtime.bufferBytes = 1 << 20;
  EXPECT_EQ(slotBytesFor(device::kHostPolicy, runtime)[0][2], (1U << 20) / 8);
  runtime.bufferBytes = 4096 + 8;
  EXPECT_EQ(slotBytesFor(device::kHostPolicy, runtime)[0][2], 512U);
  runtime.bufferBytes = 1;
  EXPECT_EQ(slotBytesFor(device::kHostPolicy, runtime)[0][2], 512U);
}

}  // namespace
}  // namespace tutti
