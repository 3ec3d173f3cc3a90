// What a lane has given to the network, and what it has asked it for.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "support/log_capture.h"
#include "transport/net/recv/queue.h"
#include "transport/net/send/queue.h"
#include "transport/net/sim_kernels.h"

namespace tutti::test {
namespace {

using net::kMostUnderWay;
using net::RecvQueue;
using net::SendQueue;

/// Both ends of a network connection, with a queue at each.
struct Queues {
  explicit Queues(FakeKnobs knobs = {}) : network(std::move(knobs)) {}
  plugin::NetBuffer out(std::size_t bytes = 8) { return {bytesOut.data(), bytes, 0, lanes.sender.registration}; }
  plugin::NetBuffer in() { return {bytesIn.data(), bytesIn.size(), 0, lanes.receiver.registration}; }

  FakeNet network;
  std::array<std::byte, 64> bytesOut{}, bytesIn{};
  LanePair lanes = connectLanes(network, {{bytesOut.data(), bytesOut.size()}}, {{bytesIn.data(), bytesIn.size()}});
  net::Tally sent, received;
  net::SendQueue sends{lanes.sender, sent, 5};
  net::RecvQueue receives{lanes.receiver, received, 5};
};

TEST(RecvQueue, GivesWhatCameInOrder) {
  Queues queues;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(queues.receives.post(queues.in()).value());
  EXPECT_EQ(queues.receives.oldest().value(), -1) << "nothing was sent";
  ASSERT_TRUE(queues.sends.post(queues.out(8)).value());
  ASSERT_TRUE(queues.sends.post(queues.out(0)).value());
  for (const int bytes : {8, 0}) {
    ASSERT_TRUE(queues.sends.oldestEnded().value());
    queues.sends.pop();
    EXPECT_EQ(queues.receives.oldest().value(), bytes);
    queues.receives.pop();
  }
  EXPECT_TRUE(queues.receives.empty());
  EXPECT_EQ(queues.receives.done(), 7u);
  EXPECT_EQ(queues.network.faults, 0u);
}

TEST(RecvQueue, LetsWhatIsUnderWayComeIfTheNetworkTakesNoMore) {
  Queues queues;
  ASSERT_TRUE(queues.receives.post(queues.in()).value());
  ASSERT_TRUE(queues.sends.post(queues.out()).value());
  queues.network.knobs().failing = "irecv";
  expectLog("Fake: the cable is cut");
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(queues.receives.post(queues.in()).value()) << "and it is not asked again";
  EXPECT_FALSE(queues.receives.networkFailed());
  ASSERT_TRUE(queues.sends.oldestEnded().value());
  EXPECT_EQ(queues.receives.oldest().value(), 8);
  queues.receives.pop();
  expectLog("Fake: the cable is cut");
  EXPECT_FALSE(queues.receives.post(queues.in()).ok());
  EXPECT_TRUE(queues.receives.networkFailed());
}

TEST(RecvQueue, CountsAStallWhenItBegins) {
  Queues queues({.refuse = 100});
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(queues.receives.post(queues.in()).value());
  EXPECT_TRUE(queues.receives.stalled());
  EXPECT_EQ(queues.received.read().stalls, 1u);
  queues.network.knobs().refuse = 0;
  EXPECT_TRUE(queues.receives.post(queues.in()).value());
  EXPECT_FALSE(queues.receives.stalled());
}

TEST(SendQueue, SharesTheRequestsOfItsLane) {
  Queues queues;
  net::SendQueue other(queues.lanes.sender, queues.sent, 0);
  for (int i = 0; i < net::kMostUnderWay; ++i)
    ASSERT_TRUE((i % 2 == 0 ? queues.sends : other).post(queues.out()).value());
  EXPECT_FALSE(queues.sends.post(queues.out()).value());
  EXPECT_TRUE(queues.sends.stalled());
  EXPECT_EQ(queues.network.mostOpen, static_cast<unsigned>(net::kMostUnderWay));
  ASSERT_TRUE(other.oldestEnded().value());
  other.pop();
  EXPECT_TRUE(queues.sends.post(queues.out()).value());
  EXPECT_EQ(queues.sent.read().stalls, 1u);
}

TEST(SendQueue, SaysWhichCallFailed) {
  for (const char* call : {"isend", "test"}) {
    Queues queues;
    queues.network.knobs().failing = call;
    expectLog("Fake: the cable is cut");
    const auto posted = queues.sends.post(queues.out());
    const Status status = posted.ok() ? queues.sends.oldestEnded().status() : posted.status();
    EXPECT_EQ(status.code(), ncclSystemError);
    EXPECT_STREQ(queues.sends.failedIn(), call);
  }
}

TEST(SendQueue, CountsSkippedMessagesAsUnderWayUntilTheyArePopped) {
  Queues queues;
  queues.sends.skip();
  EXPECT_EQ(queues.lanes.sender.underWay, 1);
  queues.sends.pop();
  EXPECT_EQ(queues.lanes.sender.underWay, 0);
  EXPECT_EQ(queues.sends.done(), 6u);
  EXPECT_TRUE(queues.sends.empty());
}

}  // namespace
}  // namespace tutti::test
