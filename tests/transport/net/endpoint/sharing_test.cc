// Network connections that connections for messages share: which do, what goes over them, how they end.
#include "transport/net/endpoint/sharing.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "support/log_capture.h"
#include "transport/common/peers.h"
#include "transport/common/up.h"
#include "transport/net/lane/fake_routing.h"
#include "transport/net/sim_kernels.h"
#include "transport/net/test_device.h"
#include "transport/net/transport.h"

namespace tutti::test {
namespace {

using device::ConnKind;

constexpr device::SlotBytes kSimpleOnly{0, 0, 2048};

net::NetTransportOptions sharing(bool joins = true) {
  net::NetTransportOptions options;
  options.sharedSlots = 4;
  options.sharedConnections = joins;
  return options;
}

/// Messages from rank 0 to rank 1 on several channels.
struct Channels {
  explicit Channels(FakeKnobs knobs = {}, net::NetTransportOptions out = sharing(),
                    net::NetTransportOptions in = sharing())
      : net(withTags(std::move(knobs))),
        here(*testDevice(), net, std::move(out)),
        there(*testDevice(), net, std::move(in)) {}
  static FakeKnobs withTags(FakeKnobs knobs) {
    if (knobs.maxRecvs == 1) knobs.maxRecvs = 8;
    return knobs;
  }
  static transport::LinkSpec linkOf(int self, int peer, int channel, device::ConnKind kind,
                                    const device::SlotBytes& slots) {
    return {peerOn(*testDevice(), self), peerOn(*testDevice(), peer), channel, slots, kind};
  }
  /// As one link of comm/connect/connect.h.
  void open(int first, int last, device::ConnKind kind = device::ConnKind::Mesh,
            const device::SlotBytes& slots = kSimpleOnly) {
    const std::size_t begin = senders.size();
    for (int c = first; c <= last; ++c) {
      senders.push_back(here.openSend(linkOf(0, 1, c, kind, slots)).value());
      receivers.push_back(there.openRecv(linkOf(1, 0, c, kind, slots)).value());
    }
    for (std::size_t i = begin; i < senders.size(); ++i) ASSERT_TRUE(senders[i]->connect(receivers[i]->handle()).ok());
    for (std::size_t i = begin; i < senders.size(); ++i) ASSERT_TRUE(receivers[i]->connect(senders[i]->handle()).ok());
    bool up = false;
    for (int round = 0; round < 500 && !up; ++round) {
      up = true;
      for (std::size_t i = begin; i < senders.size(); ++i) {
        up = comesUp(*senders[i]).value() && up;
        up = comesUp(*receivers[i]).value() && up;
      }
    }
    ASSERT_TRUE(up);
  }
  /// As kernels would: the sender's has filled a slot of channel `i` …
  void fill(std::size_t i, std::uint32_t number, std::uint32_t bytes) {
    const device::SendConn view = sendConn(*senders[i]);
    std::uint64_t& tail = *view.tailOf(device::Protocol::Simple);
    std::byte* const slot = view.slots[2] + std::size_t{number % view.shared.count} * kSimpleOnly[2];
    std::memset(slot, static_cast<int>(number + 16 * i), bytes);
    *view.words->place.of(tail) = number;
    *view.words->size[2].of(tail) = device::sizeWord(tail, bytes);
    ++tail;
  }
  /// … and the receiver's asks for one.
  void ask(std::size_t i, std::uint64_t step, std::uint32_t bytes, device::RecvOrder turn) {
    const device::RecvConn view = recvConn(*receivers[i]);
    *view.words->place.of(step) =
        device::askedPlace(static_cast<std::uint32_t>(step), device::orderWord(turn), turn.ends);
    *view.words->expected.of(step) = device::sizeWord(step, bytes);
  }
  std::uint64_t arrived(std::size_t i) { return *recvConn(*receivers[i]).tailOf(device::Protocol::Simple); }
  void advance(int rounds = 20) {
    for (int round = 0; round < rounds; ++round) {
      for (const auto& end : senders) {
        if (end != nullptr) {
          ASSERT_TRUE(end->task()->advance().ok());
        }
      }
      for (const auto& end : receivers) {
        if (end != nullptr) {
          ASSERT_TRUE(end->task()->advance().ok());
        }
      }
    }
  }
  void close() {
    senders.clear();
    receivers.clear();
    EXPECT_EQ(net.leftOpen(), 0u);
    EXPECT_EQ(net.faults, 0u);
  }

  FakeNet net;
  net::NetTransport here, there;
  std::vector<std::unique_ptr<transport::Endpoint>> senders, receivers;
};

bool saysShared(const transport::Endpoint& end) {
  return end.description().ends_with("/Shared");
}

TEST(ConnectionSharing, JoinTheChannelsOfAPairOfRanks) {
  for (const FakeKnobs& knobs : {FakeKnobs{}, FakeKnobs{.refuse = 40, .delay = 3, .polls = 4}}) {
    Channels pair(knobs);
    pair.open(0, 3);
    EXPECT_EQ(pair.net.connections(), 1u);
    EXPECT_TRUE(saysShared(*pair.senders[0]));
    EXPECT_TRUE(saysShared(*pair.receivers[3]));
    pair.close();
  }
}

TEST(ConnectionSharing, LeaveLinesTheirOwnConnections) {
  Channels pair;
  pair.open(0, 2, device::ConnKind::Mesh, kSlots);
  EXPECT_EQ(pair.net.connections(), 1u + 3);
  pair.close();
}

TEST(ConnectionSharing, AreNoMoreThanTheNetworkReceivesAtOnce) {
  Channels pair({.maxRecvs = 2});
  pair.open(0, 4);
  EXPECT_EQ(pair.net.connections(), 3u);
  pair.close();
}

TEST(ConnectionSharing, AreNotForConnectionsOfRingsAndTrees) {
  Channels pair;
  pair.open(0, 2, device::ConnKind::Graph);
  EXPECT_EQ(pair.net.connections(), 3u);
  EXPECT_FALSE(saysShared(*pair.senders[0]));
  pair.close();
}

TEST(ConnectionSharing, TakeBothEnds) {
  for (const bool sender : {false, true}) {
    Channels pair({}, sharing(sender), sharing(!sender));
    pair.open(0, 2);
    EXPECT_EQ(pair.net.connections(), 3u);
    EXPECT_FALSE(saysShared(*pair.senders[0]));
    pair.close();
  }
}

TEST(ConnectionSharing, AreBetweenTheSameDevices) {
  net::NetTransportOptions out = sharing(), in = sharing();
  out.routing =
      routingTo([](const transport::LinkSpec& link, device::Direction) { return net::EndPlace{link.channel / 2}; });
  in.routing =
      routingTo([](const transport::LinkSpec& link, device::Direction) { return net::EndPlace{link.channel % 2}; });
  Channels pair({}, out, in);
  pair.open(0, 3);
  EXPECT_EQ(pair.net.connections(), 4u);
  pair.close();
  Channels same({}, out, sharing());
  same.open(0, 3);
  EXPECT_EQ(same.net.connections(), 2u);
  same.close();
}

TEST(ConnectionSharing, TakeNoFurtherChannelsWhenTheyAreInUse) {
  Channels pair;
  pair.open(0, 1);
  pair.open(2, 3);
  EXPECT_EQ(pair.net.connections(), 2u);
  pair.close();
}

TEST(ConnectionSharing, CarryMessagesOfAllChannelsInOneReceive) {
  Channels pair;
  pair.open(0, 2);
  const unsigned before = pair.net.receives;
  for (std::size_t i = 0; i < 3; ++i) pair.ask(i, 0, 100, {0, 3, true, true});
  pair.fill(2, 0, 100);
  pair.fill(0, 0, 100);
  pair.advance();
  EXPECT_EQ(pair.arrived(0), 0u);
  pair.fill(1, 0, 100);
  pair.advance();
  EXPECT_EQ(pair.net.receives, before + 1);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(pair.arrived(i), 1u);
    EXPECT_EQ(*recvConn(*pair.receivers[i]).slots[2], static_cast<std::byte>(16 * i));
  }
  pair.close();
}

TEST(ConnectionSharing, SayWhoWaitsForItsTurn) {
  Channels pair;
  pair.open(0, 1);
  pair.ask(0, 0, 100, {0, 2, false, true});
  pair.ask(0, 1, 100, {1, 1, true, true});
  pair.fill(0, 0, 100);
  pair.advance();
  EXPECT_EQ(pair.arrived(0), 1u);
  const std::string_view waits = "waits for other channels to ask for an earlier message";
  proxy::ProgressTask& waiting = *pair.receivers[0]->task();
  EXPECT_NE(waiting.describe().find(waits), std::string::npos) << waiting.describe();
  pair.ask(1, 0, 100, {0, 2, false, true});
  std::string during;
  pair.net.onReceive = [&] { during = during.empty() ? waiting.describe() : during; };
  ASSERT_TRUE(waiting.advance().ok());
  EXPECT_NE(during.find(waits), std::string::npos) << "it says nothing else in the middle of a turn: " << during;
  pair.net.onReceive = {};
  pair.fill(1, 0, 100);
  pair.fill(0, 1, 100);
  pair.advance();
  EXPECT_EQ(pair.arrived(0), 2u);
  EXPECT_NE(waiting.describe().find("waits for a kernel"), std::string::npos) << waiting.describe();
  pair.close();
}

TEST(ConnectionSharing, StayUntilTheLastEndHasGone) {
  Channels pair;
  pair.open(0, 2);
  pair.ask(0, 0, 100, {0, 2, true, true});
  pair.ask(1, 0, 100, {0, 2, true, true});
  pair.advance();
  pair.senders[0].reset();
  pair.receivers[0].reset();
  EXPECT_EQ(pair.net.connections(), 1u);
  pair.fill(1, 0, 100);
  pair.advance();
  EXPECT_EQ(pair.arrived(1), 0u) << "half of the receive is nobody's";
  pair.close();
}

TEST(ConnectionSharing, FailAllTheirConnectionsByName) {
  Channels pair({.saysOnce = true});
  pair.open(0, 1);
  for (std::size_t i = 0; i < 2; ++i) pair.ask(i, 0, 100, {0, 2, true, true});
  pair.advance();
  pair.net.knobs().failing = "test";
  expectLog("Fake: the cable is cut");
  for (int channel = 0; channel < 2; ++channel) {
    expectLog("receive from rank 0 (host node7, device 0) by NET/Fake/0/Shared on channel " + std::to_string(channel));
    EXPECT_EQ(pair.receivers[static_cast<std::size_t>(channel)]->task()->advance().status().code(), ncclSystemError);
    EXPECT_NE(std::string(lastErrorText()).find("the cable is cut"), std::string::npos) << lastErrorText();
    EXPECT_NE(std::string(lastErrorText()).find("on channel " + std::to_string(channel)), std::string::npos);
  }
  pair.net.knobs().failing = "";
  pair.close();
}

TEST(ConnectionSharing, FailAllTheirSendersByName) {
  struct Case {
    const char* failing;
    const char* told;
  };
  for (const Case& call : {Case{"isend", "isend"}, Case{"test", "test"}, Case{"delivered", "sending"}}) {
    Channels pair({.saysOnce = true});
    pair.open(0, 2);
    for (std::size_t i = 0; i < 2; ++i) pair.ask(i, 0, 100, {0, 2, true, true});
    for (const auto& end : pair.receivers) ASSERT_TRUE(end->task()->advance().ok());
    for (std::size_t i = 0; i < 2; ++i) pair.fill(i, 0, 100);
    expectLog("Fake: the cable is cut");
    pair.net.knobs().failing = call.failing;
    EXPECT_EQ(pair.senders[2]->task()->quiet(), std::string(call.failing) != "delivered");
    for (std::size_t channel = 0; channel < 3; ++channel) {
      const std::string text = "by NET/Fake/0/Shared on channel " + std::to_string(channel);
      expectLog(text);
      restoreLastError("something else");
      EXPECT_EQ(pair.senders[channel]->task()->advance().status().code(), ncclSystemError) << call.failing;
      EXPECT_NE(std::string(lastErrorText()).find(text), std::string::npos) << lastErrorText();
      EXPECT_NE(std::string(lastErrorText()).find(std::string("in ") + call.told + ": Fake: the cable is cut"),
                std::string::npos)
          << lastErrorText();
      pair.net.knobs().failing = "";  // nobody asks it again
      EXPECT_FALSE(pair.senders[2]->task()->quiet());
    }
    pair.close();
  }
}

/// What the application reads may be there already, from another thread, with the rank that it is about.
TEST(ConnectionSharing, DoNotShowTheApplicationReasonsThatNameNoRank) {
  for (const bool sender : {false, true}) {
    Channels pair({.saysOnce = true});
    pair.open(0, 1);
    for (std::size_t i = 0; i < 2; ++i) pair.ask(i, 0, 100, {0, 2, true, true});
    if (sender) {
      for (const auto& end : pair.receivers) ASSERT_TRUE(end->task()->advance().ok());
      for (std::size_t i = 0; i < 2; ++i) pair.fill(i, 0, 100);
    } else {
      pair.advance();
    }
    restoreLastError("rank 1 has died");
    pair.net.knobs().failing = "test";
    expectLog("Fake: the cable is cut");
    for (std::size_t channel = 0; channel < 2; ++channel) {
      expectLog("by NET/Fake/0/Shared on channel " + std::to_string(channel));
      {
        const OwnLastError own;  // as the engine's thread
        proxy::ProgressTask* const task = sender ? pair.senders[channel]->task() : pair.receivers[channel]->task();
        EXPECT_EQ(task->advance().status().code(), ncclSystemError);
        EXPECT_NE(std::string(lastErrorText()).find("the cable is cut"), std::string::npos) << lastErrorText();
      }
      EXPECT_STREQ(lastErrorText(), "rank 1 has died");
    }
    pair.net.knobs().failing = "";
    pair.close();
  }
}

TEST(ConnectionSharing, AreNotAskedAgainForReceivesThatTheyHaveRefused) {
  Channels pair;
  pair.open(0, 1);
  pair.ask(0, 0, 100, {0, 1, true, true});
  pair.advance();
  pair.net.knobs().failing = "irecv";
  pair.ask(1, 0, 100, {0, 1, true, true});
  expectLog("Fake: the cable is cut");
  expectLog("by NET/Fake/0/Shared on channel 1");
  EXPECT_EQ(pair.receivers[1]->task()->advance().status().code(), ncclSystemError);
  pair.net.knobs().failing = "";
  EXPECT_TRUE(pair.receivers[0]->task()->advance().ok()) << "what is under way may still come";
  restoreLastError("something else");
  for (int turn = 0; turn < 3; ++turn) EXPECT_TRUE(pair.receivers[0]->task()->advance().ok());
  EXPECT_EQ(std::string(lastErrorText()), "something else") << "it is told once";
  pair.fill(0, 0, 100);
  ASSERT_TRUE(pair.senders[0]->task()->advance().ok());
  expectLog("by NET/Fake/0/Shared on channel 0");
  EXPECT_EQ(pair.receivers[0]->task()->advance().status().code(), ncclSystemError);
  EXPECT_EQ(pair.arrived(0), 1u);
  pair.close();
}

TEST(ConnectionSharing, TellWhichChannelsWaitForAPeerThatHasLeft) {
  bool left = false;
  net::NetTransportOptions options = sharing();
  options.farewells = farewells([&](int) { return left; });
  Channels pair({}, sharing(), options);
  pair.open(0, 1);
  for (std::size_t i = 0; i < 2; ++i) pair.ask(i, 0, 100, {0, 2, true, true});
  pair.advance();
  left = true;
  pair.net.knobs().failing = "test";
  expectLog("Fake: the cable is cut");
  for (const auto& end : pair.receivers) {
    expectLog("has left the communicator, but a kernel here waits for step 0 of 100 bytes from it");
    EXPECT_EQ(end->task()->advance().status().code(), ncclInvalidUsage);
  }
  pair.net.knobs().failing = "";
  pair.close();
}

TEST(ConnectionSharing, NoticeAPartThatWasCutShort) {
  Channels pair;
  pair.open(0, 1);
  pair.net.knobs().cutBy = 1;
  for (std::size_t i = 0; i < 2; ++i) pair.ask(i, 0, 100, {0, 2, true, true});
  pair.fill(0, 0, 100);
  pair.fill(1, 0, 100);
  for (int n = 0; n < 5; ++n) {
    for (const auto& end : pair.senders) ASSERT_TRUE(end->task()->advance().ok());
    if (n == 0) {
      ASSERT_TRUE(pair.receivers[0]->task()->advance().ok());
    }
  }
  expectLog("step 0 came with 99 bytes, but the kernel reads 100");
  EXPECT_EQ(pair.receivers[1]->task()->advance().status().code(), ncclRemoteError);
  pair.close();
}

}  // namespace
}  // namespace tutti::test
