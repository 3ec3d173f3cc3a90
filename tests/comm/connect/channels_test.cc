#include "comm/connect/channels.h"

#include <gtest/gtest.h>

#include <array>

#include "comm/connect/connect.h"
#include "comm/connect/driven_end.h"
#include "gpu/memory.h"
#include "gpu/memory_ledger.h"
#include "proxy/engine.h"
#include "proxy/group.h"
#include "proxy/task.h"
#include "support/log_capture.h"
#include "topo/machine/rank_layout.h"
#include "transport/common/transport.h"

namespace tutti::comm {
namespace {

/// An end whose counters a test sets: what was sent, and what the peer has consumed of it.
class CountedEnd final : public transport::Endpoint {
 public:
  CountedEnd(const gpu::DeviceBuffer& counters, bool& settled, int channel = 0)
      : counters_(counters), settled_(settled), description_("counted on channel " + std::to_string(channel)) {}
  transport::ConnectHandle handle() const override { return {}; }
  Status connect(const transport::ConnectHandle&) override { return {}; }
  Status probeWrite() override { return {}; }
  Result<bool> probeCheck() override { return true; }
  transport::ConnView view() const override {
    device::SendConn view{};
    view.step = reinterpret_cast<device::Counter*>(counters_.data());
    view.head = reinterpret_cast<device::Counter*>(counters_.data() + kApart);
    return view;
  }
  void settle() override { settled_ = true; }
  std::string_view description() const override { return description_; }

  static constexpr std::size_t kApart = 1024;

 private:
  const gpu::DeviceBuffer& counters_;
  bool& settled_;
  std::string description_;
};

TEST(Channels, WhatIsClosedIsStillKnown) {
  const auto device = gpu::Device::create(*gpu::loadDriver().value(), 2).value();
  const auto guard = device->enter();
  const gpu::DeviceBuffer counters = gpu::DeviceBuffer::create(*device, 2 * CountedEnd::kApart, "counters").value();
  ChannelPlan plan;
  plan.nRanks = 2;
  plan.channels = topo::channelsByRank(topo::RankLayout(0, std::vector<topo::PeerInfo>(2)), 4);
  const auto ledger = std::make_shared<gpu::MemoryLedger>();
  const auto channels = ChannelSet::create(*device, plan, ledger).value();
  EXPECT_GT(ledger->bytes(gpu::MemoryClass::Persistent), 0U);
  EXPECT_EQ(ledger->bytes(gpu::MemoryClass::Releasable), 0U);
  bool settled = false;
  const auto add = [&](device::Direction direction, int channel, std::size_t transport) {
    OpenLink link{{1, direction, device::ConnKind::Mesh, oneChannel(channel)}, {}};
    link.transport = transport;
    link.endpoints.push_back(std::make_unique<CountedEnd>(counters, settled, channel));
    ASSERT_TRUE(channels->add(std::move(link)).ok());
  };
  add(device::Direction::Send, 0, 0);
  add(device::Direction::Send, 2, 0);
  add(device::Direction::Send, 3, 1);
  add(device::Direction::Recv, 0, 0);
  ASSERT_TRUE(channels->detach().ok());
  channels->close(device::Direction::Send);
  EXPECT_EQ(channels->connected(1, device::ConnKind::Mesh, device::Direction::Send), 0U);
  EXPECT_EQ(channels->connected(1, device::ConnKind::Mesh, device::Direction::Recv), 1U);
  channels->close(device::Direction::Recv);
  EXPECT_TRUE(channels->allEnds().empty());
  ASSERT_EQ(channels->known().size(), 3U) << "one for each transport that a link had";
  EXPECT_EQ(channels->known()[0].request.channels, 0b101U);
  EXPECT_EQ(channels->known()[1].request.channels, 0b1000U);
  EXPECT_EQ(channels->known()[1].transport, 1U);
  EXPECT_EQ(channels->known()[2].request.direction, device::Direction::Recv);
}

TEST(Channels, WhoDoesNotTakeWhatWasSentIsNamed) {
  test::expectLog("waited in vain for rank 1 to take what was sent to it");
  const auto device = gpu::Device::create(*gpu::loadDriver().value(), 2).value();
  const auto guard = device->enter();
  const gpu::DeviceBuffer counters = gpu::DeviceBuffer::create(*device, 2 * CountedEnd::kApart, "counters").value();
  ChannelPlan plan;
  plan.nRanks = 2;
  plan.channels = topo::channelsByRank(topo::RankLayout(0, std::vector<topo::PeerInfo>(2)), 1);
  const auto channels = ChannelSet::create(*device, plan).value();
  bool settled = false;
  OpenLink link{{1, device::Direction::Send, device::ConnKind::Mesh, oneChannel(0)}, {}};
  link.endpoints.push_back(std::make_unique<CountedEnd>(counters, settled));
  ASSERT_TRUE(channels->add(std::move(link)).ok());
  const Abort abort;
  const std::uint64_t sent = 3;
  ASSERT_TRUE(gpu::copyToDevice(*device, counters.address(), std::as_bytes(std::span(&sent, 1))).ok());
  EXPECT_EQ(channels->awaitConsumed(abort, Deadline::in(milliseconds(30))).code(), ncclRemoteError);
  EXPECT_NE(test::capturedText().find("device 2"), std::string::npos) << test::capturedText();
  EXPECT_FALSE(settled) << "the peer may still write";
  ASSERT_TRUE(
      gpu::copyToDevice(*device, counters.address() + CountedEnd::kApart, std::as_bytes(std::span(&sent, 1))).ok());
  EXPECT_TRUE(channels->awaitConsumed(abort, Deadline::in(milliseconds(30))).ok());
  EXPECT_TRUE(settled);
}

/// A link on some channels, with an end for each.
OpenLink linkOn(ChannelMask channels, const gpu::DeviceBuffer& counters, bool& settled) {
  OpenLink link{{1, device::Direction::Send, device::ConnKind::Graph, channels}, {}};
  for (const int channel : channelsIn(channels)) {
    link.endpoints.push_back(std::make_unique<CountedEnd>(counters, settled, channel));
  }
  return link;
}

TEST(Channels, APeerMayBeConnectedOnOneChannelAfterAnother) {
  const auto device = gpu::Device::create(*gpu::loadDriver().value(), 2).value();
  const auto guard = device->enter();
  const gpu::DeviceBuffer counters = gpu::DeviceBuffer::create(*device, 2 * CountedEnd::kApart, "counters").value();
  ChannelPlan plan;
  plan.nRanks = 2;
  plan.channels = topo::channelsByRank(topo::RankLayout(0, std::vector<topo::PeerInfo>(2)), 4);
  const auto channels = ChannelSet::create(*device, plan).value();
  bool settled = false;
  const LinkRequest all{1, device::Direction::Send, device::ConnKind::Graph, allChannels(4)};
  EXPECT_EQ(channels->missing(std::span(&all, 1)).front().channels, ChannelMask{0b1111});
  ASSERT_TRUE(channels->add(linkOn(0b0101, counters, settled)).ok());
  EXPECT_EQ(channels->connected(1, device::ConnKind::Graph, device::Direction::Send), ChannelMask{0b0101});
  EXPECT_EQ(channels->missing(std::span(&all, 1)).front().channels, ChannelMask{0b1010});
  ASSERT_TRUE(channels->add(linkOn(0b1010, counters, settled)).ok());
  EXPECT_TRUE(channels->missing(std::span(&all, 1)).empty());
  EXPECT_EQ(channels->connected(1, device::ConnKind::Mesh, device::Direction::Send), ChannelMask{0});
  LinkRequest some = all;
  some.channels = 0b0110;
  const std::vector<ConnectedEnd> ends = channels->endsOf(some);
  ASSERT_EQ(ends.size(), 2U);
  EXPECT_EQ(ends[0].channel, 1);
  EXPECT_EQ(ends[0].transport, "counted on channel 1") << "whatever the order in which they were added";
  EXPECT_EQ(ends[1].transport, "counted on channel 2");
}

/// What becomes of an operation over Mesh connections where the network carries one of them, for that reason.
Status checkedWith(Fallback fallback) {
  const auto device = gpu::Device::create(*gpu::loadDriver().value(), 2).value();
  const auto guard = device->enter();
  ChannelPlan plan;
  plan.nRanks = 2;
  plan.channels = topo::channelsByRank(topo::RankLayout(0, std::vector<topo::PeerInfo>(2)), 1);
  const auto channels = ChannelSet::create(*device, plan).value();
  const auto engine = proxy::ProgressEngine::create("NCCL Progress 0").value();
  auto group = engine->group({.busy = [] { return false; }, .aborted = {}, .failed = {}}).value();
  channels->driveBy(*group);
  EXPECT_TRUE(channels->checkMesh("AllReduce", "OneShot").ok()) << "nothing is connected yet";
  OpenLink link{{1, device::Direction::Send, device::ConnKind::Mesh, oneChannel(0)}, {}, std::move(fallback)};
  link.endpoints.push_back(std::make_unique<test::DrivenEnd>());
  EXPECT_TRUE(channels->add(std::move(link)).ok());
  const Status checked = channels->checkMesh("AllReduce", "OneShot");
  group.reset();
  return checked;
}

TEST(Channels, PartFromOnePeerOrFromAll) {
  const auto device = gpu::Device::create(*gpu::loadDriver().value(), 2).value();
  const auto guard = device->enter();
  ChannelPlan plan;
  plan.nRanks = 3;
  plan.channels = topo::channelsByRank(topo::RankLayout(0, std::vector<topo::PeerInfo>(3)), 1);
  const auto channels = ChannelSet::create(*device, plan).value();
  const auto engine = proxy::ProgressEngine::create("NCCL Progress 0").value();
  auto group = engine->group({.busy = [] { return false; }, .aborted = {}, .failed = {}}).value();
  channels->driveBy(*group);
  std::array<test::FakeTask*, 2> tasks{};
  for (const int peer : {1, 2}) {
    auto end = std::make_unique<test::DrivenEnd>();
    tasks[static_cast<std::size_t>(peer - 1)] = &end->work;
    OpenLink link{{peer, device::Direction::Send, device::ConnKind::Graph, oneChannel(0)}, {}, {}};
    link.endpoints.push_back(std::move(end));
    ASSERT_TRUE(channels->add(std::move(link)).ok());
  }
  EXPECT_TRUE(channels->parted());
  channels->part(2);
  EXPECT_TRUE(!tasks[0]->isParting && tasks[1]->isParting);
  EXPECT_FALSE(channels->parted());
  channels->part();
  tasks[1]->isParting = false;
  EXPECT_FALSE(channels->parted());
  tasks[0]->isParting = false;
  EXPECT_TRUE(channels->parted());
  group.reset();
}

TEST(Channels, MemoryThatThePeerCannotShareIsThePeersFailure) {
  test::expectLog("rank 1 (host b, pid 7) has no memory in common with rank 0 of 2 on host");
  const Status checked = checkedWith({Fallback::Side::Peer, "rank 1 (host b, pid 7)", "SHM: no space left"});
  EXPECT_EQ(checked.code(), ncclRemoteError);
  EXPECT_NE(test::capturedText().find("on that rank or between the two: SHM: no space left"), std::string::npos);
}

TEST(Channels, MemoryThatThisRankCannotShareIsItsOwnFailure) {
  test::expectLog("rank 0 of 2 on host");
  const Status checked = checkedWith({Fallback::Side::Here, "rank 1 (host b, pid 7)", "SHM: no space left"});
  EXPECT_EQ(checked.code(), ncclSystemError);
  EXPECT_NE(test::capturedText().find("for the others failed here: SHM: no space left"), std::string::npos);
}

}  // namespace
}  // namespace tutti::comm
