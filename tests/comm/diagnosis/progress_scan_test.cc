#include "comm/diagnosis/progress_scan.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <utility>

#include "comm/connect/channels.h"
#include "comm/connect/connect.h"
#include "gpu/fake_driver.h"
#include "gpu/memory_ledger.h"
#include "proxy/task.h"
#include "topo/machine/peer_info.h"
#include "topo/machine/rank_layout.h"
#include "transport/common/transport.h"

namespace tutti::comm {
namespace {

using State = MovementSweep::State;

/// Ends more than one copy takes, each with its own counters in one buffer.
constexpr int kPeers = 100;
constexpr std::size_t kApart = 2 * device::kCountersBytes;
static_assert(2 * kPeers > CounterCopy::kMostEnds);

class NumberedEnd final : public transport::Endpoint {
 public:
  NumberedEnd(const gpu::DeviceBuffer& counters, std::size_t number) : at_(counters.data() + number * kApart) {}
  transport::ConnectHandle handle() const override { return {}; }
  Status connect(const transport::ConnectHandle&) override { return {}; }
  Status probeWrite() override { return {}; }
  Result<bool> probeCheck() override { return true; }
  transport::ConnView view() const override {
    device::SendConn view{};
    view.tail = reinterpret_cast<device::Counter*>(at_);
    view.head = reinterpret_cast<device::Counter*>(at_ + kApart / 2);
    return view;
  }
  std::string_view description() const override { return "numbered"; }

 private:
  std::byte* at_;
};

class Sweep : public testing::Test {
 protected:
  void SetUp() override {
    ChannelPlan plan;
    plan.nRanks = kPeers + 1;
    plan.channels = topo::channelsByRank(topo::RankLayout(0, std::vector<topo::PeerInfo>(kPeers + 1)), 1);
    channels_ = ChannelSet::create(*device_, plan).value();
    for (int number = 0; number < 2 * kPeers; ++number) {
      const device::Direction direction = number % 2 == 0 ? device::Direction::Send : device::Direction::Recv;
      OpenLink link{{1 + number / 2, direction, device::ConnKind::Mesh, allChannels(1)}, {}};
      link.endpoints.push_back(std::make_unique<NumberedEnd>(counters_, static_cast<std::size_t>(number)));
      ASSERT_TRUE(channels_->add(std::move(link)).ok());
    }
  }
  /// Counts one step of an end, by the head of a protocol.
  void step(std::size_t number, device::Protocol protocol) {
    const std::uint64_t value = ++value_;
    const std::size_t word = static_cast<std::size_t>(protocol) * sizeof(device::Counter);
    ASSERT_TRUE(gpu::copyToDevice(*device_, counters_.address() + number * kApart + kApart / 2 + word,
                                  std::as_bytes(std::span(&value, 1)))
                    .ok());
  }
  /// Follows for so many calls that a pass is over, but no time passes.
  State followAt(int ms) {
    State state = State::None;
    for (int i = 0; i < 200; ++i) {
      state = sweep_.follow(MovementSweep::Time(milliseconds(1'000'000 + ms)), *channels_, collNet_, hasLeft_,
                            milliseconds(1000));
      if (state != State::UnderWay) return state;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return state;
  }

  std::unique_ptr<gpu::Device> device_ = gpu::Device::create(*gpu::loadDriver().value(), 2).value();
  gpu::ContextGuard guard_ = device_->enter().value();
  gpu::DeviceBuffer counters_ = gpu::DeviceBuffer::create(*device_, 2 * kPeers * kApart, "counters").value();
  std::unique_ptr<ChannelSet> channels_;
  MovementSweep sweep_ = MovementSweep::create(*device_).value();
  MovementSweep::HasLeft hasLeft_;
  const proxy::ProgressTask* collNet_ = nullptr;
  std::uint64_t value_ = 0;
};

TEST_F(Sweep, SaysThatNothingMovesOnlyAfterALaterSecondLook) {
  EXPECT_EQ(followAt(0), State::UnderWay);
  EXPECT_EQ(followAt(900), State::UnderWay);
  EXPECT_EQ(followAt(1000), State::Still);
  EXPECT_EQ(followAt(5000), State::Still) << "until it is forgotten";
  sweep_.reset();
  EXPECT_EQ(followAt(6000), State::UnderWay);
}

TEST_F(Sweep, NoticesEachConnectionByEachProtocol) {
  using device::Protocol;
  int now = 0;
  for (const auto& [number, protocol] : {std::pair{0, device::Protocol::LL},
                                         {127, device::Protocol::LL128},
                                         {128, device::Protocol::Simple},
                                         {2 * kPeers - 1, device::Protocol::LL}}) {
    sweep_.reset();
    EXPECT_EQ(followAt(now), State::UnderWay);
    step(static_cast<std::size_t>(number), protocol);
    EXPECT_EQ(followAt(now + 1000), State::Moves) << number;
    now += 2000;
  }
}

TEST_F(Sweep, DoesNotReadMemoryOfRanksThatHaveLeft) {
  EXPECT_EQ(followAt(0), State::UnderWay);
  hasLeft_ = [](int rank) { return rank == kPeers; };
  step(2 * kPeers - 1, device::Protocol::Simple);
  EXPECT_EQ(followAt(1000), State::Still);
}

/// It has no connection whose counters could be read.
TEST_F(Sweep, NoticesWhatTheNetworkDoesForACollective) {
  struct Task final : proxy::ProgressTask {
    Result<bool> advance() override { return false; }
    bool quiet() const override { return false; }
    proxy::TaskCounters counters() const override { return work; }
    std::string describe() const override { return "CollNet"; }
    proxy::TaskCounters work{};
  } task;
  collNet_ = &task;
  EXPECT_EQ(followAt(0), State::UnderWay);
  EXPECT_EQ(followAt(1000), State::Still);
  sweep_.reset();
  EXPECT_EQ(followAt(2000), State::UnderWay);
  ++task.work.done;
  EXPECT_EQ(followAt(3000), State::Moves);
}

TEST(StuckSweep, DoesNotWaitForADeviceThatDoesNotAnswer) {
  const auto real = gpu::Device::create(*gpu::loadDriver().value(), 2).value();
  ChannelPlan plan;
  plan.nRanks = 2;
  plan.channels = topo::channelsByRank(topo::RankLayout(0, std::vector<topo::PeerInfo>(2)), 1);
  const auto channels = ChannelSet::create(*real, plan).value();
  const gpu::DeviceBuffer counters = gpu::DeviceBuffer::create(*real, kApart, "counters").value();
  OpenLink link{{1, device::Direction::Send, device::ConnKind::Mesh, allChannels(1)}, {}};
  link.endpoints.push_back(std::make_unique<NumberedEnd>(counters, 0));
  ASSERT_TRUE(channels->add(std::move(link)).ok());
  test::FakeDriver fake;
  const auto device = gpu::Device::create(fake.driver(), 1).value();
  {
    MovementSweep sweep = MovementSweep::create(*device).value();
    fake.streamState = CUDA_ERROR_NOT_READY;
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(sweep.follow(MovementSweep::Time(milliseconds(5000 * i)), *channels, nullptr, {}, milliseconds(1000)),
                State::UnderWay);
    }
  }
  EXPECT_NE(fake.leaks().find("cuMemHostAlloc 1"), std::string::npos) << "it may still write there: " << fake.leaks();
}

}  // namespace
}  // namespace tutti::comm
