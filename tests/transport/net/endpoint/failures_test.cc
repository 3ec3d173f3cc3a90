// Senders and receivers whose network fails, whose peer has left, or who are told what cannot be.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "support/log_capture.h"
#include "transport/net/sim_kernels.h"

namespace tutti::test {
namespace {

class FailingNetTasks : public testing::TestWithParam<device::Protocol> {};
INSTANTIATE_TEST_SUITE_P(Protocols, FailingNetTasks, testing::ValuesIn(kAllProtocols),
                         [](const auto& p) { return nameOf(p.param); });

TEST_P(FailingNetTasks, NameWhatFailed) {
  for (const char* call : {"isend", "test"}) {
    NetPair pair;
    pair.net.knobs().failing = call;
    ASSERT_TRUE(pair.kernelOut.send(GetParam(), 100));
    expectLog("Fake: the cable is cut");
    expectLog(
        "send to rank 3 (host hostb, device 0) by NET/Fake/0 on channel 1 of rank 0 (host hosta, device 0) failed in " +
        std::string(call) + ": ");
    EXPECT_EQ(pair.sender->advance().status().code(), ncclSystemError);
  }
  NetPair pair;
  pair.net.knobs().failing = "irecv";
  expectLog("Fake: the cable is cut");
  expectLog(
      "receive from rank 0 (host hostb, device 0) by NET/Fake/0 on channel 1 of rank 3 (host hosta, device 0) failed");
  EXPECT_FALSE(pair.receiver->advance().ok());
}

TEST(FailingNetTask, TakeTheEndOfAConnectionForNoFailureOnceThePeerHasLeft) {
  bool left = false;
  NetPair pair({}, 0, false, [&](int peer) { return peer == 0 && left; });
  ASSERT_TRUE(pair.kernelOut.send(device::Protocol::Simple, 100));
  for (int i = 0; i < 3; ++i) pair.advance();
  EXPECT_TRUE(pair.kernelIn.recv(device::Protocol::Simple, 100));
  left = true;
  pair.net.knobs().failing = "test";
  pair.net.knobs().failAfter = 0;
  expectLog("Fake: the cable is cut");
  expectLog("Fake: the cable is cut");
  const auto closing = pair.receiver->advance();
  ASSERT_TRUE(closing.ok());
  EXPECT_FALSE(closing.value());
  EXPECT_TRUE(pair.receiver->advance().ok()) << "and it is not asked again";
  EXPECT_TRUE(pair.receiver->quiet());
}

TEST(FailingNetTask, TellOfAKernelThatWaitsForAPeerThatHasLeft) {
  for (const bool early : {true, false}) {
    NetPair pair({}, 0, false, [](int) { return true; });
    ASSERT_TRUE(pair.receiver->advance().ok());
    if (early) pair.kernelIn.expect(100);
    pair.net.knobs().failing = "test";
    allowLog("Fake: the cable is cut");
    if (early) expectLog("rank 0 has left the communicator, but a kernel here waits for step 0 of 100 bytes from it");
    EXPECT_EQ(pair.receiver->advance().status().code(), early ? ncclInvalidUsage : ncclSuccess);
    if (early) continue;
    pair.kernelIn.expect(60);
    expectLog("a kernel here waits for step 0 of 60 bytes from it");
    EXPECT_EQ(pair.receiver->advance().status().code(), ncclInvalidUsage);
  }
}

TEST(FailingNetTask, BlameNoKernelUntilThePeerIsKnownToHaveLeft) {
  bool left = false;
  NetPair pair({}, 0, false, [&](int) { return left; });
  ASSERT_TRUE(pair.receiver->advance().ok());
  pair.kernelIn.expect(100);
  pair.net.knobs().failing = "test";
  allowLog("Fake: the cable is cut");
  for (int turn = 0; turn < 3; ++turn) EXPECT_TRUE(pair.receiver->advance().ok()) << "it may have died";
  left = true;
  expectLog("has left the communicator, but a kernel here waits");
  EXPECT_EQ(pair.receiver->advance().status().code(), ncclInvalidUsage);
}

TEST(FailingNetTask, WaitForAFarewellBeforeTheyCallTheEndOfAConnectionAFailure) {
  bool left = false;
  NetPair pair({}, 0, false, [&](int) { return left; });
  pair.advance();
  pair.net.knobs().failing = "test";
  expectLog("Fake: the cable is cut");
  expectLog("Fake: the cable is cut");
  EXPECT_TRUE(pair.receiver->advance().ok()) << "its word may be on the way";
  left = true;
  EXPECT_TRUE(pair.receiver->advance().ok());

  NetPair hasty(
      {}, 0, false, [](int) { return false; }, milliseconds(0));
  hasty.advance();
  hasty.net.knobs().failing = "test";
  expectLog("Fake: the cable is cut");
  expectLog("of rank 3 (host hosta, device 0) failed in receiving: Fake: the cable is cut");
  EXPECT_FALSE(hasty.receiver->advance().ok());
}

TEST_P(FailingNetTasks, TakeSendsThatFailForDoneOnceThePeerHasLeft) {
  for (const bool leftBefore : {false, true}) {
    bool left = leftBefore;
    NetPair pair({.delay = 1000}, 0, false, [&](int) { return left; });
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(pair.kernelOut.send(GetParam(), 100));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(pair.sender->advance().ok());
    pair.net.knobs().failing = "test";
    expectLog("Fake: the cable is cut");
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(pair.sender->advance().ok()) << "its word may be on the way";
      EXPECT_EQ(pair.sender->quiet(), left);
    }
    left = true;
    ASSERT_TRUE(pair.sender->advance().ok());
    EXPECT_TRUE(pair.sender->quiet());
    EXPECT_EQ(*pair.out.view.headOf(GetParam()), 3u) << "the kernel goes on";
    EXPECT_EQ(pair.sender->counters().done, 3u);
    // A receiver of nothing may not have waited for it.
    ASSERT_TRUE(pair.kernelOut.send(GetParam(), 0));
    EXPECT_TRUE(pair.sender->advance().ok());
    EXPECT_TRUE(pair.sender->quiet());
    ASSERT_TRUE(pair.kernelOut.send(GetParam(), 60));
    expectLog("rank 3 has left the communicator, but a kernel here sends it step 4 of 60 bytes");
    EXPECT_EQ(pair.sender->advance().status().code(), ncclInvalidUsage);
  }
}

TEST_P(FailingNetTasks, NoticeThatWhatWasSentDoesNotComeThrough) {
  NetPair pair;
  ASSERT_TRUE(pair.kernelOut.send(GetParam(), 100));
  for (int i = 0; i < 5; ++i) pair.advance();
  EXPECT_EQ(pair.sender->counters().done, 1u);
  pair.net.knobs().failing = "delivered";
  allowLog("Fake: the cable is cut");
  expectLog("of rank 0 (host hosta, device 0) failed in sending: Fake: the cable is cut");
  Status status;
  for (const Deadline soon = Deadline::in(std::chrono::seconds(20)); status.ok() && !soon.expired();) {
    status = pair.sender->advance().status();
  }
  EXPECT_EQ(status.code(), ncclSystemError);
}

TEST_P(FailingNetTasks, AreNotQuietUntilItIsToldThatWhatWasSentDoesNotComeThrough) {
  bool left = false;
  NetPair pair({}, 0, false, [&](int) { return left; });
  ASSERT_TRUE(pair.kernelOut.send(GetParam(), 100));
  for (int i = 0; i < 5; ++i) pair.advance();
  EXPECT_EQ(pair.sender->counters().done, 1u);
  pair.net.knobs().failing = "delivered";
  allowLog("Fake: the cable is cut");
  for (int turn = 0; turn < 100; ++turn) {  // the network is asked in some of them only
    ASSERT_TRUE(pair.sender->advance().ok());
    ASSERT_FALSE(pair.sender->quiet()) << "the engine would sleep over the failure";
  }
  left = true;
  EXPECT_TRUE(pair.sender->advance().ok());
  EXPECT_TRUE(pair.sender->quiet());
}

TEST_P(FailingNetTasks, TellWhatTheNetworkSaidAlsoWhereItWasAskedInPassing) {
  NetPair pair(
      {}, 0, false, [](int) { return false; }, milliseconds(0));
  ASSERT_TRUE(pair.kernelOut.send(GetParam(), 100));
  for (int i = 0; i < 5; ++i) pair.advance();
  pair.net.knobs().failing = "delivered";
  pair.net.knobs().saysOnce = true;
  expectLog("Fake: the cable is cut");
  EXPECT_FALSE(pair.sender->quiet());
  expectLog("of something else");
  fail(ncclSystemError, "another connection has died of something else").ignore();
  expectLog("failed in sending: Fake: the cable is cut");
  Status status;
  for (int turn = 0; turn < 100 && status.ok(); ++turn) status = pair.sender->advance().status();
  EXPECT_EQ(status.code(), ncclSystemError);
}

TEST_P(FailingNetTasks, CallSendsThatFailAFailureIfNoFarewellComes) {
  NetPair pair(
      {.delay = 1000}, 0, false, [](int) { return false; }, milliseconds(0));
  ASSERT_TRUE(pair.kernelOut.send(GetParam(), 100));
  pair.net.knobs().failing = "test";
  expectLog("Fake: the cable is cut");
  expectLog("of rank 0 (host hosta, device 0) failed in test: Fake: the cable is cut");
  EXPECT_EQ(pair.sender->advance().status().code(), ncclSystemError);
}

TEST(FailingNetTask, RefuseSimpleMessagesThatAreShorterThanAKernelExpects) {
  // Whether the kernel comes before the message or after it, and how much is missing.
  for (const bool early : {true, false}) {
    for (const unsigned cutBy : {1u, 50u, 1000u}) {
      NetPair pair({.cutBy = cutBy});
      if (early) pair.kernelIn.expect(100);
      ASSERT_TRUE(pair.receiver->advance().ok());
      ASSERT_TRUE(pair.kernelOut.send(device::Protocol::Simple, 100));
      ASSERT_TRUE(pair.sender->advance().ok());
      expectLog(
          "receive from rank 0 (host hostb, device 0) by NET/Fake/0 on channel 1 of rank 3 (host hosta, device 0): "
          "step 0 came with " +
          std::to_string(100 - std::min(100u, cutBy)) +
          " bytes, but the kernel reads 100: "
          "the network Fake cut the message short");
      if (!early) {
        ASSERT_TRUE(pair.receiver->advance().ok());
        pair.kernelIn.expect(100);
        *pair.in.view.headOf(device::Protocol::Simple) = 1;
      }
      EXPECT_EQ(pair.receiver->advance().status().code(), ncclRemoteError);
      EXPECT_EQ(*pair.in.view.tailOf(device::Protocol::Simple), early ? 0u : 1u) << "an early kernel never sees it";
    }
  }
}

TEST(FailingNetTask, NoticeAShortMessageHoweverFarTheKernelIsAhead) {
  for (std::uint64_t wrong = 0; wrong < 20; ++wrong) {
    NetPair pair;
    Status status;
    for (std::uint64_t n = 0; n < 40 && status.ok(); ++n) {
      ASSERT_TRUE(pair.kernelOut.send(device::Protocol::Simple, 100));
      for (int i = 0; i < 3 && n % 7 != 3; ++i) pair.advance();
      const std::uint64_t behind =
          *pair.in.view.tailOf(device::Protocol::Simple) - *pair.in.view.headOf(device::Protocol::Simple);
      for (std::uint64_t i = 0; i < behind && n % 5 == 4; ++i) {
        const std::uint64_t step = pair.kernelIn.step(device::Protocol::Simple);
        pair.kernelIn.recv(device::Protocol::Simple, 100);
        if (step == wrong) *pair.in.view.words->expected.of(step) = device::sizeWord(step, 101);
      }
      if (*pair.in.view.headOf(device::Protocol::Simple) > wrong) {
        expectLog("but the kernel reads 101");
        status = pair.receiver->advance().status();
        EXPECT_EQ(status.code(), ncclRemoteError) << wrong;
      }
    }
    EXPECT_FALSE(status.ok()) << wrong;
  }
}

TEST(FailingNetTask, DeliverWhatHasComeThoughNothingMoreCanBeReceived) {
  for (const device::Protocol protocol : {device::Protocol::LL, device::Protocol::Simple}) {
    NetPair pair;
    pair.advance();
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(pair.kernelOut.send(protocol, 100));
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(pair.sender->advance().ok());
    pair.net.knobs().failing = "irecv";
    expectLog("Fake: the cable is cut");
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(pair.receiver->advance().ok()) << i;
      EXPECT_TRUE(pair.kernelIn.recv(protocol, 100)) << i;
    }
  }
}

TEST(FailingNetTask, RefuseMessagesThatAreNotWhatComesNext) {
  for (const FakeKnobs& knobs : {FakeKnobs{.cutBy = 1}, FakeKnobs{.cutBy = 100000}, FakeKnobs{.spoilAt = 1},
                                 FakeKnobs{.spoilAt = 5}, FakeKnobs{.spoilAt = 9}}) {
    NetPair pair(knobs);
    ASSERT_TRUE(pair.kernelOut.send(device::Protocol::LL, 100));
    ASSERT_TRUE(pair.receiver->advance().ok());
    ASSERT_TRUE(pair.sender->advance().ok());
    expectLog("is not what comes next");
    EXPECT_EQ(pair.receiver->advance().status().code(), ncclRemoteError);
  }
}

TEST_P(FailingNetTasks, RefuseSizesThatNoKernelSays) {
  NetPair pair;
  pair.kernelOut.tell(GetParam(), 1 << 20);
  *pair.out.view.tailOf(GetParam()) = 1;
  expectLog("which is none");
  EXPECT_EQ(pair.sender->advance().status().code(), ncclInternalError);
}

}  // namespace
}  // namespace tutti::test
