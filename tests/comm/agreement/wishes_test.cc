#include "comm/agreement/wishes.h"

#include <gtest/gtest.h>

#include "base/settings/params.h"
#include "comm/agreement/plain_peer.h"
#include "comm/settings/comm_settings.h"
#include "comm/settings/config.h"
#include "device/policy.h"
#include "support/log_capture.h"
#include "topo/channels/channel_limits.h"
#include "topo/machine/peer_info.h"

namespace tutti::comm {
namespace {

CommSettings plainRuntime() {
  return commSettingsFrom(Params{});
}

Config plainConfig() {
  return parseConfig(nullptr, undefinedConfig()).value();
}

TEST(Wishes, ChannelsStayWithinTheBounds) {
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

TEST(Wishes, BoundsOfGraphsChannelsAreThoseOfTheSettings) {
  const Config config = plainConfig();
  CommSettings settings = plainRuntime();
  EXPECT_EQ(channelLimits(config, settings).most, device::kMaxChannels);
  settings.minChannels = 4;
  settings.maxChannels = 6;
  EXPECT_EQ(channelLimits(config, settings).fewest, 4);
  EXPECT_EQ(channelLimits(config, settings).most, 6);
}

TEST(Wishes, ChannelsOfGraphsAreAllUsed) {
  const device::Policy gpu = alongGraphs(device::kGpuPolicy, 24);
  EXPECT_EQ(gpu.maxChannels, 24U);
  EXPECT_EQ(gpu.bytesPerThread, device::kGpuPolicy.bytesPerThread);
  const device::Policy host = alongGraphs(device::kHostPolicy, 6);
  EXPECT_EQ(host.maxChannels, 6U);
  EXPECT_LT(host.bytesPerThread[2], device::kHostPolicy.bytesPerThread[2]);
  EXPECT_EQ(host.slotBytes, device::kHostPolicy.slotBytes);
}

TEST(Wishes, BlocksOfRanksThatShareAGpuFitOnItTogether) {
  std::vector<topo::PeerInfo> peers;
  for (int rank = 0; rank < 8; ++rank) peers.push_back(test::plainPeer(rank, 8));
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

TEST(Wishes, SlotsAreThePolicysUnlessBuffersAreSet) {
  const CommSettings settings = plainRuntime();
  EXPECT_EQ(slotOf(settings, device::ConnKind::Graph, device::Protocol::Simple), device::kHostPolicy.slotBytes[2]);
  EXPECT_EQ(slotOf(settings, device::ConnKind::Graph, device::Protocol::LL), device::kHostPolicy.slotBytes[0]);
  EXPECT_EQ(slotOf(settings, device::ConnKind::Graph, device::Protocol::LL128), device::kHostPolicy.slotBytes[1]);
  EXPECT_EQ(slotOf(settings, device::ConnKind::Mesh, device::Protocol::LL128), 0U);
}

TEST(Wishes, SlotsFollowTheBufferSizes) {
  CommSettings settings = plainRuntime();
  settings.buffers = {1 << 20, 1 << 14, 1 << 15};
  EXPECT_EQ(slotOf(settings, device::ConnKind::Graph, device::Protocol::Simple), (1U << 20) / 8);
  EXPECT_EQ(slotOf(settings, device::ConnKind::Graph, device::Protocol::LL), (1U << 14) / 8);
  EXPECT_EQ(slotOf(settings, device::ConnKind::Graph, device::Protocol::LL128), (1U << 15) / 8);
  EXPECT_EQ(slotOf(settings, device::ConnKind::Mesh, device::Protocol::LL), (1U << 14) / 8) << "no larger there";
  EXPECT_EQ(slotOf(settings, device::ConnKind::Mesh, device::Protocol::LL128), 0U);
}

TEST(Wishes, OddBufferSizesBecomeWholeGrains) {
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
