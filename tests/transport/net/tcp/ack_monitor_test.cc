// How a sender tells a network that swallows what it sends from a peer that is busy.
#include "transport/net/tcp/ack_monitor.h"

#include <gtest/gtest.h>

#include "support/log_capture.h"
#include "transport/net/tcp/socket_pair.h"

namespace tutti::net::tcp {
namespace {

using namespace test;
using Verdict = TcpAckMonitor::Verdict;

constexpr milliseconds kPatience{5000};

/// A watch, and a clock that tests set.
struct Watched {
  Verdict after(milliseconds span, const AckSample& sample) { return watch.judge(sample, now += span, kPatience); }
  TcpAckMonitor watch;
  SteadyClock::time_point now{};
};

AckSample stuck(std::uint32_t heard = 10) {
  return {.acked = 1000, .unacked = 3, .window = 65536, .heard = heard, .attempts = 5, .longest = 1448};
}

TEST(TcpAckMonitor, TakesWhatIsAcknowledgedForDelivered) {
  Watched one;
  AckSample sample = stuck();
  sample.unacked = 0;
  EXPECT_EQ(one.after(0ms, sample), Verdict::Delivered);
  EXPECT_EQ(one.after(60'000ms, sample), Verdict::Delivered);
}

TEST(TcpAckMonitor, GivesAPeerWithoutRoomAnyTime) {
  Watched one;
  AckSample sample = stuck();
  sample.window = 0;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(one.after(1000ms, sample), Verdict::Delivered);
  // And begins anew when there is room again.
  EXPECT_EQ(one.after(1000ms, stuck()), Verdict::UnderWay);
  EXPECT_EQ(one.after(4000ms, stuck()), Verdict::UnderWay);
}

TEST(TcpAckMonitor, IsPatientAsLongAsAnythingIsAcknowledged) {
  Watched one;
  AckSample sample = stuck();
  for (int i = 0; i < 100; ++i, ++sample.acked) EXPECT_EQ(one.after(4000ms, sample), Verdict::UnderWay);
}

TEST(TcpAckMonitor, DoesNotBlameTheNetworkBeforeTheSystemHasTriedAgain) {
  Watched one;
  AckSample sample = stuck();
  sample.attempts = 1;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(one.after(4000ms, sample), Verdict::UnderWay);
}

TEST(TcpAckMonitor, TellsSilenceFromSwallowedPackets) {
  Watched silent, swallowed, late;
  std::uint32_t heard = 10;
  for (int i = 0; i < 25; ++i) {
    EXPECT_EQ(silent.after(200ms, stuck()), Verdict::UnderWay);
    EXPECT_EQ(swallowed.after(200ms, stuck(heard += i % 10 == 9)), Verdict::UnderWay);
    // The last words of a host that is gone: they were on their way.
    EXPECT_EQ(late.after(200ms, stuck(i < 3 ? 10 : 11)), Verdict::UnderWay);
  }
  EXPECT_EQ(silent.after(200ms, stuck()), Verdict::Silent);
  EXPECT_EQ(swallowed.after(200ms, stuck(heard)), Verdict::Swallowed);
  EXPECT_EQ(late.after(200ms, stuck(11)), Verdict::Silent);
}

TEST(SocketDelivery, IsSaidOfAllSockets) {
  for (const Params& params : {test::loopbackParams(), test::manySockets(0, 3), test::manySockets(2, 2)}) {
    test::SocketSide side(params);
    test::SocketPair pair(side);
    const auto data = test::pattern(100'000, 1);
    std::vector<unsigned char> in(data.size());
    EXPECT_TRUE(side.net->delivered(pair.sender).value());
    void* received = pair.recv(in.data(), in.size());
    ASSERT_EQ(pair.finish(pair.send(data.data(), data.size()), received), static_cast<int>(data.size()));
    EXPECT_TRUE(test::until([&] { return side.net->delivered(pair.sender).value(); }));
  }
}

TEST(SocketDelivery, DoesNotDependOnAPeerWithoutRoom) {
  test::SocketSide side;
  const auto data = test::pattern(16 << 20, 1);
  test::SocketPair pair(side);
  void* sent = pair.send(data.data(), data.size());
  EXPECT_TRUE(test::until([&] {
    EXPECT_FALSE(test::SocketPair::testOne(*side.net, sent));
    return side.net->delivered(pair.sender).value();
  }));
}

}  // namespace
}  // namespace tutti::net::tcp
