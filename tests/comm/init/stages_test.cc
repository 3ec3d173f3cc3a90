#include "comm/init/stages.h"

#include <gtest/gtest.h>

#include "support/fake_control_channel.h"
#include "support/log_capture.h"
#include "support/thread_ranks.h"

namespace tutti::comm {
namespace {

topo::PeerInfo plainPeer(int rank, int nRanks) {
  topo::PeerInfo peer;
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
    topo::PeerInfo self = plainPeer(rank, 3);
    if (rank == 2) self.version = 22809;
    EXPECT_EQ(gatherPeers(world.channel(rank), self).status().code(), ncclInvalidUsage);
  });
  EXPECT_NE(test::capturedText().find("2.28.9"), std::string::npos);
}

TEST(Stages, DifferentNumbersOfRanksAreRefusedByName) {
  test::allowLog(
      "Mismatched number of ranks : rank 0 (host node, pid 0) was started with 2, rank 1 (host node, pid 0) with 5");
  test::FakeWorld world(2);
  test::runRanks(2, [&](int rank) {
    EXPECT_EQ(gatherPeers(world.channel(rank), plainPeer(rank, rank == 0 ? 2 : 5)).status().code(), ncclInvalidUsage);
  });
}

TEST(Stages, SoftwareGpuAndDriverDoNotMix) {
  test::allowLog("the software GPU");
  test::FakeWorld world(2);
  test::runRanks(2, [&](int rank) {
    topo::PeerInfo self = plainPeer(rank, 2);
    self.softGpu = static_cast<std::uint32_t>(rank);
    EXPECT_EQ(gatherPeers(world.channel(rank), self).status().code(), ncclInvalidUsage);
  });
}

TEST(Stages, RanksThatShareAGpuAreBothNamedWhereThatIsForbidden) {
  std::vector<topo::PeerInfo> peers;
  for (int rank = 0; rank < 4; ++rank) {
    peers.push_back(plainPeer(rank, 4));
    peers.back().deviceUuid[3] = static_cast<std::uint8_t>(rank);
  }
  EXPECT_TRUE(refuseSharedDevices(peers).ok());
  peers[3].deviceUuid = peers[1].deviceUuid;
  peers[3].hostHash = 5;
  EXPECT_TRUE(refuseSharedDevices(peers).ok()) << "on another host it is another GPU";
  peers[3].hostHash = peers[1].hostHash;
  test::expectLog("Duplicate GPU detected : rank 1 (host node, pid 0) and rank 3 (host node, pid 0)");
  EXPECT_EQ(refuseSharedDevices(peers).code(), ncclInvalidUsage);
}

TEST(Stages, OnlyRanksOfOneProcessOnOneGpuShareADevice) {
  std::vector<topo::PeerInfo> peers;
  for (int rank = 0; rank < 3; ++rank) {
    peers.push_back(plainPeer(rank, 3));
    peers.back().processHash = 7;
    peers.back().deviceUuid[3] = static_cast<std::uint8_t>(rank);
  }
  EXPECT_FALSE(sharesDeviceInProcess(peers, 1));
  peers[2].deviceUuid = peers[1].deviceUuid;
  EXPECT_FALSE(sharesDeviceInProcess(peers, 0));
  EXPECT_TRUE(sharesDeviceInProcess(peers, 1));
  EXPECT_TRUE(sharesDeviceInProcess(peers, 2));
  peers[2].processHash = 8;
  EXPECT_FALSE(sharesDeviceInProcess(peers, 1)) << "another process has another context";
  peers[2].processHash = 7;
  peers[2].hostHash = 5;
  EXPECT_FALSE(sharesDeviceInProcess(peers, 1)) << "on another host it is another GPU";
}

CommSettings plainRuntime() {
  return commSettingsFrom(Params{});
}

Config plainConfig() {
  return parseConfig(nullptr, undefinedConfig()).value();
}

TEST(Stages, ChannelsStayWithinTheBounds) {
  const Config config = plainConfig();
  CommSettings settings = plainRuntime();
  EXPECT_EQ(wishedChannels(device::kHostPolicy, config, settings), 1);
  EXPECT_EQ(wishedChannels(device::kGpuPolicy, config, settings), 8);
  settings.minChannels = 12;
  EXPECT_EQ(wishedChannels(device::kGpuPolicy, config, settings), 12);
  settings.maxChannels = 3;
  EXPECT_EQ(wishedChannels(device::kGpuPolicy, config, settings), 3) << "the maximum wins";
  Config narrow = config;
  narrow.values.maxCTAs = 2;
  EXPECT_EQ(wishedChannels(device::kGpuPolicy, narrow, settings), 2);
}

TEST(Stages, BoundsOfGraphsChannelsAreThoseOfTheSettings) {
  const Config config = plainConfig();
  CommSettings settings = plainRuntime();
  EXPECT_EQ(channelLimits(config, settings).most, device::kMaxChannels);
  settings.minChannels = 4;
  settings.maxChannels = 6;
  EXPECT_EQ(channelLimits(config, settings).fewest, 4);
  EXPECT_EQ(channelLimits(config, settings).most, 6);
}

TEST(Stages, ChannelsOfGraphsAreAllUsed) {
  const device::Policy gpu = alongGraphs(device::kGpuPolicy, 24);
  EXPECT_EQ(gpu.maxChannels, 24U);
  EXPECT_EQ(gpu.bytesPerThread, device::kGpuPolicy.bytesPerThread);
  const device::Policy host = alongGraphs(device::kHostPolicy, 6);
  EXPECT_EQ(host.maxChannels, 6U);
  EXPECT_LT(host.bytesPerThread[2], device::kHostPolicy.bytesPerThread[2]);
  EXPECT_EQ(host.slotBytes, device::kHostPolicy.slotBytes);
}

TEST(Stages, BlocksOfRanksThatShareAGpuFitOnItTogether) {
  std::vector<topo::PeerInfo> peers;
  for (int rank = 0; rank < 8; ++rank) peers.push_back(plainPeer(rank, 8));
  for (topo::PeerInfo& peer : peers) peer.deviceUuid = {};
  EXPECT_EQ(channelsThatFit(8, 132, peers, peers[0]), 8);
  EXPECT_EQ(channelsThatFit(32, 132, peers, peers[0]), 16);
  EXPECT_EQ(channelsThatFit(32, 4, peers, peers[0]), 1) << "one at least";
  peers[0].deviceUuid[0] = 1;
  EXPECT_EQ(channelsThatFit(32, 16, peers, peers[0]), 32) << "a GPU of its own";
}

std::uint32_t slotOf(const CommSettings& settings, device::ConnKind kind, device::Protocol protocol) {
  return slotBytesFor(device::kHostPolicy,
                      settings)[static_cast<std::size_t>(kind)][static_cast<std::size_t>(protocol)];
}

TEST(Stages, SlotsAreThePolicysUnlessBuffersAreSet) {
  const CommSettings settings = plainRuntime();
  EXPECT_EQ(slotOf(settings, device::ConnKind::Graph, device::Protocol::Simple), device::kHostPolicy.slotBytes[2]);
  EXPECT_EQ(slotOf(settings, device::ConnKind::Graph, device::Protocol::LL), device::kHostPolicy.slotBytes[0]);
  EXPECT_EQ(slotOf(settings, device::ConnKind::Graph, device::Protocol::LL128), device::kHostPolicy.slotBytes[1]);
  EXPECT_EQ(slotOf(settings, device::ConnKind::Mesh, device::Protocol::LL128), 0U);
}

TEST(Stages, SlotsFollowTheBufferSizes) {
  CommSettings settings = plainRuntime();
  settings.buffers = {1 << 20, 1 << 14, 1 << 15};
  EXPECT_EQ(slotOf(settings, device::ConnKind::Graph, device::Protocol::Simple), (1U << 20) / 8);
  EXPECT_EQ(slotOf(settings, device::ConnKind::Graph, device::Protocol::LL), (1U << 14) / 8);
  EXPECT_EQ(slotOf(settings, device::ConnKind::Graph, device::Protocol::LL128), (1U << 15) / 8);
  EXPECT_EQ(slotOf(settings, device::ConnKind::Mesh, device::Protocol::LL), (1U << 14) / 8) << "no larger there";
  EXPECT_EQ(slotOf(settings, device::ConnKind::Mesh, device::Protocol::LL128), 0U);
}

TEST(Stages, OddBufferSizesBecomeWholeGrains) {
  CommSettings settings = plainRuntime();
  settings.buffers = {4096 + 8, 9000, 100'000};
  EXPECT_EQ(slotOf(settings, device::ConnKind::Graph, device::Protocol::Simple), 512U);
  EXPECT_EQ(slotOf(settings, device::ConnKind::Graph, device::Protocol::LL), 1024U);
  EXPECT_EQ(slotOf(settings, device::ConnKind::Graph, device::Protocol::LL128), 6U * 2048);
  settings.buffers = {1, 1, 1};
  EXPECT_EQ(slotOf(settings, device::ConnKind::Graph, device::Protocol::Simple), 512U);
  EXPECT_EQ(slotOf(settings, device::ConnKind::Graph, device::Protocol::LL), 1024U);
  EXPECT_EQ(slotOf(settings, device::ConnKind::Graph, device::Protocol::LL128), 2048U);
}

}  // namespace
}  // namespace tutti::comm
