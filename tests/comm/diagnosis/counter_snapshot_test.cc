#include "comm/diagnosis/counter_snapshot.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

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

/// An end whose counters lie in a buffer: tails first, then heads.
class BufferedEnd final : public transport::Endpoint {
 public:
  explicit BufferedEnd(const gpu::DeviceBuffer& counters) : counters_(counters) {}
  transport::ConnectHandle handle() const override { return {}; }
  Status connect(const transport::ConnectHandle&) override { return {}; }
  Status probeWrite() override { return {}; }
  Result<bool> probeCheck() override { return true; }
  transport::ConnView view() const override {
    device::SendConn view{};
    view.tail = reinterpret_cast<device::Counter*>(counters_.data());
    view.head = reinterpret_cast<device::Counter*>(counters_.data() + kApart);
    return view;
  }
  std::string_view description() const override { return "buffered"; }

  static constexpr std::size_t kApart = 1024;

 private:
  const gpu::DeviceBuffer& counters_;
};

std::unique_ptr<ChannelSet> twoRanks(const gpu::Device& device) {
  ChannelPlan plan;
  plan.nRanks = 2;
  plan.channels = topo::channelsByRank(topo::RankLayout(0, std::vector<topo::PeerInfo>(2)), 2);
  return ChannelSet::create(device, plan).value();
}

LaunchNote ringNote() {
  LaunchNote note;
  note.shape = {device::Func::AllReduce, device::Algorithm::Ring, device::Protocol::LL128};
  note.nChannels = 1;
  note.firstChannel = 1;
  return note;
}

CounterReader::State outcome(CounterReader& reader) {
  const Deadline deadline = Deadline::in(std::chrono::seconds(10));
  CounterReader::State state = reader.poll();
  for (; state == CounterReader::State::UnderWay && !deadline.expired(); state = reader.poll()) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  return state;
}

TEST(CounterReader, ReadsTheCountersThatTheLastLaunchUses) {
  const auto device = gpu::Device::create(*gpu::loadDriver().value(), 2).value();
  const auto guard = device->enter();
  const gpu::DeviceBuffer counters = gpu::DeviceBuffer::create(*device, 2 * BufferedEnd::kApart, "counters").value();
  const std::array<device::Counter, 2> tails{{{1, {}}, {17, {}}}};
  const std::array<device::Counter, 2> heads{{{2, {}}, {9, {}}}};
  ASSERT_TRUE(gpu::copyToDevice(*device, counters.address(), std::as_bytes(std::span(tails))).ok());
  ASSERT_TRUE(
      gpu::copyToDevice(*device, counters.address() + BufferedEnd::kApart, std::as_bytes(std::span(heads))).ok());
  const auto channels = twoRanks(*device);
  for (const device::Direction direction : {device::Direction::Send, device::Direction::Recv}) {
    OpenLink link{{1, direction, device::ConnKind::Graph, allChannels(2)}, {}};
    for (int i = 0; i < 2; ++i) link.endpoints.push_back(std::make_unique<BufferedEnd>(counters));
    ASSERT_TRUE(channels->add(std::move(link)).ok());
  }
  const auto reader = CounterReader::create(*device).value();
  EXPECT_EQ(reader->poll(), CounterReader::State::None);
  reader->begin(*channels, ringNote(), 2);
  ASSERT_EQ(outcome(*reader), CounterReader::State::Done);
  ASSERT_EQ(reader->ends().size(), 2U) << "one channel, both ways";
  for (const EndReading& end : reader->ends()) {
    EXPECT_EQ(end.channel, 1);
    EXPECT_EQ(end.produced, 17U);
    EXPECT_EQ(end.consumed, 9U);
    EXPECT_EQ(end.protocol, device::Protocol::LL128);
  }
  EXPECT_EQ(reader->poll(), CounterReader::State::None) << "said once";
}

/// A reader of a device that does not answer before it is told to. What it reads of is a real one's: the ends of
/// channels that have none.
struct BusyDevice {
  BusyDevice() { driver.streamState = CUDA_ERROR_NOT_READY; }
  void begin() const { reader->begin(*channels, LaunchNote(), 2); }
  void answer() { driver.streamState = CUDA_SUCCESS; }

  std::unique_ptr<gpu::Device> real = gpu::Device::create(*gpu::loadDriver().value(), 2).value();
  std::unique_ptr<ChannelSet> channels = twoRanks(*real);
  test::FakeDriver driver;
  std::unique_ptr<gpu::Device> device = gpu::Device::create(driver.driver(), 1).value();
  std::unique_ptr<CounterReader> reader = CounterReader::create(*device).value();
};

TEST(CounterReader, DoesNotWaitForADeviceThatDoesNotAnswer) {
  BusyDevice busy;
  busy.begin();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(busy.reader->poll(), CounterReader::State::UnderWay);
  busy.answer();
  EXPECT_EQ(busy.reader->poll(), CounterReader::State::Done);
}

TEST(CounterReader, SaysNothingOfAReadingThatWasForgotten) {
  BusyDevice busy;
  busy.begin();
  busy.reader->forget();
  busy.begin();  // of the next operation: its turn has not come
  EXPECT_EQ(busy.reader->poll(), CounterReader::State::UnderWay);
  busy.answer();
  EXPECT_EQ(busy.reader->poll(), CounterReader::State::None);
  busy.begin();
  EXPECT_EQ(busy.reader->poll(), CounterReader::State::Done);
  busy.reader->forget();
  busy.begin();
  EXPECT_EQ(busy.reader->poll(), CounterReader::State::Done) << "nothing was under way";
}

TEST(CounterReader, GivesUpMemoryThatTheDeviceMayStillWrite) {
  BusyDevice busy;
  busy.begin();
  busy.reader.reset();
  EXPECT_NE(busy.driver.leaks().find("cuMemHostAlloc 1"), std::string::npos) << busy.driver.leaks();
}

}  // namespace
}  // namespace tutti::comm
