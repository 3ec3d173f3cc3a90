// Senders and receivers between kernels and a network that is slow, refuses and completes late, but works.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "transport/net/sim_kernels.h"

namespace tutti::test {
namespace {

/// Bytes of the n-th step: empty ones, whole slots and what is between.
std::uint32_t bytesOf(device::Protocol protocol, std::uint64_t n) {
  const std::uint32_t room = roomOf(protocol);
  if (n % 5 == 0) return 0;
  if (n % 5 == 1) return room;
  return static_cast<std::uint32_t>(n * 97 % room);
}

/// Sends and receives `steps` steps of each protocol, kernels and tasks in turns, the receiving kernel seldom.
void exchange(NetPair& pair, const std::vector<device::Protocol>& protocols, std::uint64_t steps) {
  std::uint64_t sent[3] = {}, got[3] = {};
  std::uint64_t missing = steps * protocols.size();
  for (unsigned round = 0; missing > 0; ++round) {
    ASSERT_LT(round, 100000u) << pair.sender->describe() << "; " << pair.receiver->describe();
    for (const device::Protocol protocol : protocols) {
      auto& n = sent[static_cast<int>(protocol)];
      while (n < steps && pair.kernelOut.send(protocol, bytesOf(protocol, n))) ++n;
    }
    pair.advance();
    for (const device::Protocol protocol : protocols) {
      auto& n = got[static_cast<int>(protocol)];
      if (round % 3 != 0) continue;
      while (n < steps && pair.kernelIn.recv(protocol, bytesOf(protocol, n))) ++n, --missing;
    }
  }
  for (unsigned round = 0; round < 1000 && !pair.sender->quiet(); ++round) pair.advance();
  EXPECT_TRUE(pair.sender->quiet());
  EXPECT_EQ(pair.net.faults, 0u);
  EXPECT_LE(pair.net.mostOpen, 8u);
  const proxy::TaskCounters counters = pair.sender->counters();
  EXPECT_EQ(counters.posted, steps * protocols.size());
  EXPECT_EQ(counters.done, steps * protocols.size());
  EXPECT_EQ(pair.receiver->counters().bytes, counters.bytes);
}

class NetTasks : public testing::TestWithParam<device::Protocol> {};
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
    exchange(pair, {device::Protocol::LL, device::Protocol::LL128, device::Protocol::Simple}, 60);
  }
}

TEST_P(NetTasks, DoNotSendBeforeAllIsThere) {
  NetPair pair;
  const std::vector<std::byte> content(1000);
  if (GetParam() == device::Protocol::Simple) {
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
  constexpr std::uint64_t kMost = 2 * device::kSteps;
  pair.net.knobs().refuse = 100;
  for (std::uint64_t n = 0; n < kMost; ++n) {
    ASSERT_TRUE(pair.kernelOut.send(device::Protocol::LL128, 1000));
    ASSERT_TRUE(pair.sender->advance().ok());
  }
  pair.net.knobs().refuse = 0;
  std::uint64_t sent = 0;
  std::uint64_t got = 0;
  for (int round = 0; round < 1000 && got < kMost; ++round) {
    while (pair.kernelOut.send(device::Protocol::LL, 64)) ++sent;
    pair.advance();
    while (got < kMost && pair.kernelIn.recv(device::Protocol::LL128, 1000)) ++got;
  }
  ASSERT_EQ(got, kMost) << pair.receiver->describe();
  for (std::uint64_t n = 0; n < sent; ++n) {
    for (int i = 0; i < 5; ++i) pair.advance();
    ASSERT_TRUE(pair.kernelIn.recv(device::Protocol::LL, 64)) << n;
  }
}

TEST(NetTask, SendWhatIsOfferedFromWhereItLies) {
  NetPair pair({}, 0, true);
  std::vector<std::byte> content(kSlots[2]);
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = contentAt(device::Protocol::Simple, 0, i);
  pair.kernelOut.offer(content.data(), static_cast<std::uint32_t>(content.size()));
  ASSERT_TRUE(pair.kernelOut.send(device::Protocol::Simple, 100));
  for (int i = 0; i < 5; ++i) pair.advance();
  EXPECT_TRUE(pair.kernelIn.recv(device::Protocol::Simple, kSlots[2]));
  EXPECT_TRUE(pair.kernelIn.recv(device::Protocol::Simple, 100));
  EXPECT_EQ(pair.net.unregistered, 1u);
  EXPECT_EQ(pair.net.faults, 0u);
}

TEST(NetTask, FlushWhatWasReceivedBeforeAKernelMayLook) {
  NetPair pair({.delay = 3});
  pair.simple.receiver.flushes = true;
  exchange(pair, {device::Protocol::Simple}, 50);
  EXPECT_EQ(pair.net.flushes, 40u) << "empty ones need none";
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
