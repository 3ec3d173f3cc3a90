// Senders and receivers between kernels and a network of many faults.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "support/log_capture.h"
#include "transport/net/sim_kernels.h"

namespace tutti::test {
namespace {

std::string nameOf(Protocol protocol) {
  return protocol == Protocol::LL ? "LL" : protocol == Protocol::LL128 ? "LL128" : "Simple";
}

/// Bytes of the n-th step: empty ones, whole slots and what is between.
std::uint32_t bytesOf(Protocol protocol, std::uint64_t n) {
  const std::uint32_t room = roomOf(protocol);
  if (n % 5 == 0) return 0;
  if (n % 5 == 1) return room;
  return static_cast<std::uint32_t>(n * 97 % room);
}

/// Sends and receives `steps` steps of each protocol, kernels and tasks in turns, the receiving kernel seldom.
void exchange(NetPair& pair, const std::vector<Protocol>& protocols, std::uint64_t steps) {
  std::uint64_t sent[3] = {}, got[3] = {};
  std::uint64_t missing = steps * protocols.size();
  for (unsigned round = 0; missing > 0; ++round) {
    ASSERT_LT(round, 100000u) << pair.sender->describe() << "; " << pair.receiver->describe();
    for (const Protocol protocol : protocols) {
      auto& n = sent[static_cast<int>(protocol)];
      while (n < steps && pair.kernelOut.send(protocol, bytesOf(protocol, n))) ++n;
    }
    pair.advance();
    for (const Protocol protocol : protocols) {
      auto& n = got[static_cast<int>(protocol)];
      if (round % 3 != 0) continue;
      while (n < steps && pair.kernelIn.recv(protocol, bytesOf(protocol, n))) ++n, --missing;
    }
  }
  for (unsigned round = 0; round < 1000 && !pair.sender->quiet(); ++round) pair.advance();
  EXPECT_TRUE(pair.sender->quiet());
  EXPECT_EQ(pair.net.faults, 0u);
  EXPECT_LE(pair.net.mostOpen, 8u);
  const TaskCounters counters = pair.sender->counters();
  EXPECT_EQ(counters.posted, steps * protocols.size());
  EXPECT_EQ(counters.done, steps * protocols.size());
  EXPECT_EQ(pair.receiver->counters().bytes, counters.bytes);
}

class NetTasks : public testing::TestWithParam<Protocol> {};
INSTANTIATE_TEST_SUITE_P(Protocols, NetTasks, testing::ValuesIn(kAllProtocols),
                         [](const auto& p) { return nameOf(p.param); });

TEST_P(NetTasks, CarryStepsOfAllSizesInOrder) {
  NetPair pair;
  exchange(pair, {GetParam()}, 200);
}

TEST_P(NetTasks, CarryOnWhenCountersComeRound) {
  for (const std::uint64_t first :
       {(std::uint64_t{1} << 30) - 5, (std::uint64_t{1} << 32) - 5, ~std::uint64_t{0} - 4}) {
    NetPair pair({}, first);
    exchange(pair, {GetParam()}, 20);
  }
}

TEST_P(NetTasks, BearANetworkThatIsSlowAndRefuses) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    for (const bool rendezvous : {false, true}) {
      NetPair pair({.seed = seed, .refuse = 40, .delay = 5, .rendezvous = rendezvous});
      exchange(pair, {GetParam()}, 100);
      EXPECT_GT(pair.sender->counters().stalls + pair.receiver->counters().stalls, 0u);
    }
  }
}

TEST(NetTask, CarryAllProtocolsAtOnce) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    NetPair pair({.seed = seed, .refuse = 20, .delay = 3, .rendezvous = seed % 2 == 0});
    exchange(pair, {Protocol::LL, Protocol::LL128, Protocol::Simple}, 60);
  }
}

TEST_P(NetTasks, DoNotSendBeforeAllIsThere) {
  NetPair pair;
  const std::vector<std::byte> content(1000);
  if (GetParam() == Protocol::Simple) {
    pair.kernelOut.tell(GetParam(), 1000);  // and no tail
  } else {
    pair.kernelOut.writeLines(GetParam(), content.data(), 500);
    pair.kernelOut.tell(GetParam(), 1000);
  }
  for (int i = 0; i < 10; ++i) pair.advance();
  EXPECT_EQ(pair.sender->counters().posted, 0u);
  EXPECT_EQ(*pair.out.view.headOf(GetParam()), 0u);
}

TEST_P(NetTasks, AreNotQuietUntilTheNetworkHasLetGo) {
  NetPair pair({.rendezvous = true});
  EXPECT_TRUE(pair.sender->quiet());
  ASSERT_TRUE(pair.kernelOut.send(GetParam(), 100));
  EXPECT_FALSE(pair.sender->quiet());
  EXPECT_TRUE(pair.sender->presses());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(pair.sender->advance().ok());
  EXPECT_FALSE(pair.sender->quiet());
  for (int i = 0; i < 5; ++i) pair.advance();
  EXPECT_TRUE(pair.sender->quiet());
  EXPECT_TRUE(pair.receiver->quiet());
}

TEST_P(NetTasks, SayWhetherTheyDidAnything) {
  NetPair pair;
  for (int i = 0; i < 3; ++i) pair.advance();
  EXPECT_FALSE(pair.sender->advance().value());
  EXPECT_FALSE(pair.receiver->advance().value());
  ASSERT_TRUE(pair.kernelOut.send(GetParam(), 100));
  EXPECT_TRUE(pair.sender->advance().value());
  EXPECT_TRUE(pair.receiver->advance().value());
}

TEST_P(NetTasks, KeepNoMoreThanTheSlotsOfAKernelThatDoesNotReceive) {
  NetPair pair({.rendezvous = true});
  unsigned sent = 0;
  for (int round = 0; round < 200; ++round) {
    while (pair.kernelOut.send(GetParam(), 64)) ++sent;
    pair.advance();
  }
  EXPECT_LE(sent, 40u);
  for (unsigned n = 0; n < sent; ++n) {
    for (int i = 0; i < 5; ++i) pair.advance();
    ASSERT_TRUE(pair.kernelIn.recv(GetParam(), 64)) << n;
  }
}

TEST(NetTask, LetNoProtocolKeepAnotherWaiting) {
  NetPair pair({.rendezvous = true});
  // A kernel has sent by LL128 and the next one sends by LL without end; the receiver wants LL128 first.
  // As many steps as can be on their way: messages of eight wait for the network, eight lie in slots.
  constexpr std::uint64_t kMost = 2 * kSteps;
  pair.net.knobs().refuse = 100;
  for (std::uint64_t n = 0; n < kMost; ++n) {
    ASSERT_TRUE(pair.kernelOut.send(Protocol::LL128, 1000));
    ASSERT_TRUE(pair.sender->advance().ok());
  }
  pair.net.knobs().refuse = 0;
  std::uint64_t sent = 0;
  std::uint64_t got = 0;
  for (int round = 0; round < 1000 && got < kMost; ++round) {
    while (pair.kernelOut.send(Protocol::LL, 64)) ++sent;
    pair.advance();
    while (got < kMost && pair.kernelIn.recv(Protocol::LL128, 1000)) ++got;
  }
  ASSERT_EQ(got, kMost) << pair.receiver->describe();
  for (std::uint64_t n = 0; n < sent; ++n) {
    for (int i = 0; i < 5; ++i) pair.advance();
    ASSERT_TRUE(pair.kernelIn.recv(Protocol::LL, 64)) << n;
  }
}

TEST(NetTask, SendWhatIsOfferedFromWhereItLies) {
  NetPair pair({}, 0, true);
  std::vector<std::byte> content(kSlots[2]);
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = contentAt(Protocol::Simple, 0, i);
  pair.kernelOut.offer(content.data(), static_cast<std::uint32_t>(content.size()));
  ASSERT_TRUE(pair.kernelOut.send(Protocol::Simple, 100));
  for (int i = 0; i < 5; ++i) pair.advance();
  EXPECT_TRUE(pair.kernelIn.recv(Protocol::Simple, kSlots[2]));
  EXPECT_TRUE(pair.kernelIn.recv(Protocol::Simple, 100));
  EXPECT_EQ(pair.net.unregistered, 1u);
  EXPECT_EQ(pair.net.faults, 0u);
}

TEST(NetTask, FlushWhatWasReceivedBeforeAKernelMayLook) {
  NetPair pair({.delay = 3});
  pair.simple.receiver.flushes = true;
  exchange(pair, {Protocol::Simple}, 50);
  EXPECT_EQ(pair.net.flushes, 40u) << "empty ones need none";
}

TEST_P(NetTasks, NameWhatFailed) {
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

TEST(NetTask, TakeTheEndOfAConnectionForNoFailureOnceThePeerHasLeft) {
  bool left = false;
  NetPair pair({}, 0, false, [&](int peer) { return peer == 0 && left; });
  ASSERT_TRUE(pair.kernelOut.send(Protocol::Simple, 100));
  for (int i = 0; i < 3; ++i) pair.advance();
  EXPECT_TRUE(pair.kernelIn.recv(Protocol::Simple, 100));
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

TEST(NetTask, WaitForAFarewellBeforeTheyCallTheEndOfAConnectionAFailure) {
  bool left = false;
  NetPair pair({}, 0, false, [&](int) { return left; });
  pair.advance();
  pair.net.knobs().failing = "test";
  expectLog("Fake: the cable is cut");
  expectLog("Fake: the cable is cut");
  EXPECT_TRUE(pair.receiver->advance().ok()) << "its word may be on the way";
  left = true;
  EXPECT_TRUE(pair.receiver->advance().ok());

  NetPair hasty({}, 0, false, [](int) { return false; }, milliseconds(0));
  hasty.advance();
  hasty.net.knobs().failing = "test";
  expectLog("Fake: the cable is cut");
  expectLog("of rank 3 (host hosta, device 0) failed in receiving: Fake: the cable is cut");
  EXPECT_FALSE(hasty.receiver->advance().ok());
}

TEST_P(NetTasks, TakeSendsThatFailForDoneOnceThePeerHasLeft) {
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

TEST_P(NetTasks, AreNotQuietUntilThePeersHostHasAll) {
  NetPair pair({.undelivered = true});
  ASSERT_TRUE(pair.kernelOut.send(GetParam(), 100));
  for (int i = 0; i < 5; ++i) pair.advance();
  EXPECT_EQ(pair.sender->counters().done, 1u);
  EXPECT_FALSE(pair.sender->quiet());
  EXPECT_FALSE(pair.sender->presses()) << "the network has it";
  pair.net.knobs().undelivered = false;
  EXPECT_TRUE(pair.sender->quiet());
}

TEST_P(NetTasks, NoticeThatWhatWasSentDoesNotComeThrough) {
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

TEST_P(NetTasks, AreNotQuietUntilItIsToldThatWhatWasSentDoesNotComeThrough) {
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

TEST_P(NetTasks, TellWhatTheNetworkSaidAlsoWhereItWasAskedInPassing) {
  NetPair pair({}, 0, false, [](int) { return false; }, milliseconds(0));
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

TEST_P(NetTasks, CallSendsThatFailAFailureIfNoFarewellComes) {
  NetPair pair({.delay = 1000}, 0, false, [](int) { return false; }, milliseconds(0));
  ASSERT_TRUE(pair.kernelOut.send(GetParam(), 100));
  pair.net.knobs().failing = "test";
  expectLog("Fake: the cable is cut");
  expectLog("of rank 0 (host hosta, device 0) failed in test: Fake: the cable is cut");
  EXPECT_EQ(pair.sender->advance().status().code(), ncclSystemError);
}

TEST(NetTask, RefuseSimpleMessagesThatAreShorterThanAKernelExpects) {
  // Whether the kernel comes before the message or after it, and how much is missing.
  for (const bool early : {true, false}) {
    for (const unsigned cutBy : {1u, 50u, 1000u}) {
      NetPair pair({.cutBy = cutBy});
      if (early) pair.kernelIn.expect(100);
      ASSERT_TRUE(pair.receiver->advance().ok());
      ASSERT_TRUE(pair.kernelOut.send(Protocol::Simple, 100));
      ASSERT_TRUE(pair.sender->advance().ok());
      expectLog("receive from rank 0 (host hostb, device 0) by NET/Fake/0 on channel 1 of rank 3 (host hosta, device 0): "
                "step 0 came with " + std::to_string(100 - std::min(100u, cutBy)) + " bytes, but the kernel reads 100: "
                "the network Fake cut the message short");
      if (!early) {
        ASSERT_TRUE(pair.receiver->advance().ok());
        pair.kernelIn.expect(100);
        *pair.in.view.headOf(Protocol::Simple) = 1;
      }
      EXPECT_EQ(pair.receiver->advance().status().code(), ncclRemoteError);
      EXPECT_EQ(*pair.in.view.tailOf(Protocol::Simple), early ? 0u : 1u) << "an early kernel never sees it";
    }
  }
}

TEST(NetTask, NoticeAShortMessageHoweverFarTheKernelIsAhead) {
  for (std::uint64_t wrong = 0; wrong < 20; ++wrong) {
    NetPair pair;
    Status status;
    for (std::uint64_t n = 0; n < 40 && status.ok(); ++n) {
      ASSERT_TRUE(pair.kernelOut.send(Protocol::Simple, 100));
      for (int i = 0; i < 3 && n % 7 != 3; ++i) pair.advance();
      const std::uint64_t behind = *pair.in.view.tailOf(Protocol::Simple) - *pair.in.view.headOf(Protocol::Simple);
      for (std::uint64_t i = 0; i < behind && n % 5 == 4; ++i) {
        const std::uint64_t step = pair.kernelIn.step(Protocol::Simple);
        pair.kernelIn.recv(Protocol::Simple, 100);
        if (step == wrong) *pair.in.view.expectedOf(step) = device::sizeWord(step, 101);
      }
      if (*pair.in.view.headOf(Protocol::Simple) > wrong) {
        expectLog("but the kernel reads 101");
        status = pair.receiver->advance().status();
        EXPECT_EQ(status.code(), ncclRemoteError) << wrong;
      }
    }
    EXPECT_FALSE(status.ok()) << wrong;
  }
}

TEST(NetTask, DeliverWhatHasComeThoughNothingMoreCanBeReceived) {
  for (const Protocol protocol : {Protocol::LL, Protocol::Simple}) {
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

TEST(NetTask, RefuseMessagesThatAreNotWhatComesNext) {
  for (const FakeKnobs& knobs : {FakeKnobs{.cutBy = 1}, FakeKnobs{.cutBy = 100000}, FakeKnobs{.spoilAt = 1},
                                 FakeKnobs{.spoilAt = 5}, FakeKnobs{.spoilAt = 9}}) {
    NetPair pair(knobs);
    ASSERT_TRUE(pair.kernelOut.send(Protocol::LL, 100));
    ASSERT_TRUE(pair.receiver->advance().ok());
    ASSERT_TRUE(pair.sender->advance().ok());
    expectLog("is not what comes next");
    EXPECT_EQ(pair.receiver->advance().status().code(), ncclRemoteError);
  }
}

TEST_P(NetTasks, RefuseSizesThatNoKernelSays) {
  NetPair pair;
  pair.kernelOut.tell(GetParam(), 1 << 20);
  *pair.out.view.tailOf(GetParam()) = 1;
  expectLog("which is none");
  EXPECT_EQ(pair.sender->advance().status().code(), ncclInternalError);
}

TEST_P(NetTasks, SayWhatTheyWaitFor) {
  NetPair pair({.rendezvous = true});
  const std::string name = nameOf(GetParam());
  ASSERT_TRUE(pair.kernelOut.send(GetParam(), 100));
  ASSERT_TRUE(pair.sender->advance().ok());
  EXPECT_EQ(pair.sender->describe(), "send to rank 3 (host hostb, device 0) by NET/Fake/0 on channel 1: " + name +
                                         " step 0, waits for the network to finish 100 bytes");
  pair.net.knobs().refuse = 100;
  ASSERT_TRUE(pair.kernelOut.send(GetParam(), 200));
  ASSERT_TRUE(pair.sender->advance().ok());
  EXPECT_NE(pair.sender->describe().find(name + " step 1, waits for the network to take 200 bytes"), std::string::npos)
      << pair.sender->describe();
  pair.net.knobs().refuse = 0;
  for (int i = 0; i < 5; ++i) pair.advance();
  EXPECT_NE(pair.sender->describe().find(name + " step 2, waits for a kernel"), std::string::npos)
      << pair.sender->describe();
  EXPECT_NE(pair.receiver->describe().find(name + " step 2, waits for a message"), std::string::npos)
      << pair.receiver->describe();
}

TEST_P(NetTasks, WorkBesideKernelsInThreadsOfTheirOwn) {
  NetPair pair({.refuse = 5, .delay = 1});
  constexpr std::uint64_t kMany = 500;
  std::atomic<bool> over{false};
  const auto until = [&](const std::function<bool()>& step) {
    while (!over.load() && !step()) std::this_thread::yield();
  };
  std::thread sends([&] {
    for (std::uint64_t n = 0; n < kMany; ++n)
      until([&] { return pair.kernelOut.send(GetParam(), bytesOf(GetParam(), n)); });
  });
  std::thread receives([&] {
    for (std::uint64_t n = 0; n < kMany; ++n)
      until([&] { return pair.kernelIn.recv(GetParam(), bytesOf(GetParam(), n)); });
    over.store(true);
  });
  std::thread moves([&] { until([&] { return !pair.sender->advance().ok(); }); });
  std::thread watches(
      [&] { until([&] { return pair.sender->describe().empty() || pair.receiver->counters().posted > kMany; }); });
  until([&] { return !pair.receiver->advance().ok(); });
  for (std::thread* thread : {&sends, &receives, &moves, &watches}) thread->join();
  EXPECT_EQ(pair.kernelIn.step(GetParam()), kMany);
  EXPECT_EQ(pair.net.faults, 0u);
}

}  // namespace
}  // namespace tutti::test
