// Connections over a network that wants nothing to be under way when one is closed: what was posted ahead is answered.
#include "transport/net/lane/parting.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "support/log_capture.h"
#include "support/until.h"
#include "transport/common/peers.h"
#include "transport/common/up.h"
#include "transport/net/lane/fake_routing.h"
#include "transport/net/pxn/relaying_rank.h"
#include "transport/net/sim_kernels.h"
#include "transport/net/test_device.h"
#include "transport/net/transport.h"

namespace tutti::test {
namespace {

topo::PeerInfo partingRank(int rank) {
  topo::PeerInfo info = peerOn(*testDevice(), rank);
  info.hostHash = rank == 2 ? 200 : 100;
  return info;
}

FakeKnobs answering(FakeKnobs knobs = {}) {
  knobs.wantsAnswers = true;
  return knobs;
}

/// A sender on rank 0 and a receiver on rank 2, with whatever kernels do there.
struct PartingEnds {
  PartingEnds(FakeNet& network, net::NetTransportOptions sends, net::NetTransportOptions receives,
              device::ConnKind kind)
      : net(network), here(*testDevice(), net, std::move(sends)), there(*testDevice(), net, std::move(receives)) {
    receiver = there.openRecv({partingRank(2), partingRank(0), 2, kSlots, kind}).value();
    sender = here.openSend({partingRank(0), partingRank(2), 2, kSlots, kind}).value();
    EXPECT_TRUE(sender->connect(receiver->handle()).ok());
    EXPECT_TRUE(receiver->connect(sender->handle()).ok());
    EXPECT_TRUE(until([this] {
      const bool up = comesUp(*receiver).value();
      return comesUp(*sender).value() && up;
    }));
    out.emplace(sendConn(*sender));
    in.emplace(recvConn(*receiver));
  }
  void advance() {
    EXPECT_TRUE(sender->task()->advance().ok());
    EXPECT_TRUE(receiver->task()->advance().ok());
  }
  void carry(device::Protocol protocol, std::uint32_t bytes) {
    ASSERT_TRUE(out->send(protocol, bytes));
    EXPECT_TRUE(until([&] {
      advance();
      return in->recv(protocol, bytes);
    })) << bytes
        << " bytes by " << nameOf(protocol) << ": " << receiver->task()->describe();
  }
  /// Whether both ends have parted soon, in engine rounds.
  bool part() {
    sender->task()->part();
    receiver->task()->part();
    return until([this] {
      advance();
      return sender->task()->parted() && receiver->task()->parted();
    });
  }
  void close() {
    EXPECT_TRUE(sender->task()->quiet() && receiver->task()->quiet());
    sender.reset();
    receiver.reset();
    EXPECT_TRUE(until([this] { return net.leftOpen() == 0; }));
    EXPECT_EQ(net.faults, 0u);
  }

  FakeNet& net;
  net::NetTransport here, there;
  std::unique_ptr<transport::Endpoint> sender, receiver;
  std::optional<SendingKernel> out;
  std::optional<ReceivingKernel> in;
};

constexpr device::ConnKind kGraph = device::ConnKind::Graph;

TEST(Parting, AnswersAllThatWasPostedAhead) {
  for (const FakeKnobs& knobs : {FakeKnobs{}, FakeKnobs{.refuse = 50, .delay = 4, .rendezvous = true, .polls = 5},
                                 FakeKnobs{.rendezvous = true, .keepsSizes = true, .wantsOrder = true}}) {
    for (const int steps : {0, 1, 5, 3 * kSteps}) {
      FakeNet net(answering(knobs));
      PartingEnds ends(net, {}, {}, kGraph);
      for (int step = 0; step < steps; ++step) {
        for (const device::Protocol protocol : kAllProtocols) {
          ends.carry(protocol, step % 3 == 0 ? 0 : roomOf(protocol) - static_cast<std::uint32_t>(step));
        }
      }
      EXPECT_TRUE(ends.part()) << ends.sender->task()->describe();
      ends.close();
      EXPECT_EQ(net.closedBusy, 0u) << steps;
    }
  }
}

TEST(Parting, TellsKernelsNothing) {
  FakeNet net(answering());
  PartingEnds ends(net, {}, {}, kGraph);
  ends.carry(device::Protocol::Simple, 100);
  ASSERT_TRUE(ends.part());
  const device::RecvConn view = recvConn(*ends.receiver);
  EXPECT_EQ(*view.tailOf(device::Protocol::Simple), 1u) << "what came after the step is for nobody";
  EXPECT_FALSE(ends.in->recv(device::Protocol::LL, 0));
  ends.close();
}

TEST(Parting, AStepWithoutContentComesWhenItsKernelAsks) {
  FakeNet net(answering());
  PartingEnds ends(net, {}, {}, kGraph);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(ends.out->send(device::Protocol::Simple, 0));
  ASSERT_TRUE(ends.out->send(device::Protocol::Simple, 300));
  for (int i = 0; i < 10; ++i) ends.advance();
  const device::RecvConn view = recvConn(*ends.receiver);
  EXPECT_EQ(*view.tailOf(device::Protocol::Simple), 0u);
  for (const std::uint32_t bytes : {0u, 0u, 300u}) {
    EXPECT_TRUE(until([&] {
      ends.advance();
      return ends.in->recv(device::Protocol::Simple, bytes);
    }));
  }
  ASSERT_TRUE(ends.part());
  ends.close();
  EXPECT_EQ(net.closedBusy, 0u);
}

TEST(Parting, WaitsUntilTheKernelsHaveTakenWhatWasSent) {
  FakeNet net(answering({.rendezvous = true}));
  PartingEnds ends(net, {}, {}, kGraph);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(ends.out->send(device::Protocol::Simple, 100));
  for (int i = 0; i < 10; ++i) ends.advance();
  ends.sender->task()->part();
  ends.receiver->task()->part();
  for (int i = 0; i < 100; ++i) ends.advance();
  EXPECT_FALSE(ends.sender->task()->parted()) << "there is no room for all answers";
  EXPECT_FALSE(ends.sender->task()->quiet() || ends.receiver->task()->quiet());
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(until([&] {
      ends.advance();
      return ends.in->recv(device::Protocol::Simple, 100);
    }));
  }
  ASSERT_TRUE(ends.part());
  ends.close();
  EXPECT_EQ(net.closedBusy, 0u);
}

TEST(Parting, NothingIsAnsweredWhereKernelsAskBeforeAReceiveIsPosted) {
  for (const std::uint32_t slots : {0u, 4u}) {  // the sender's need not be shared
    net::NetTransportOptions sends, receives;
    sends.sharedSlots = slots;
    receives.sharedSlots = 4;
    FakeNet net(answering({.rendezvous = true}));
    PartingEnds ends(net, sends, receives, device::ConnKind::Mesh);
    ends.carry(device::Protocol::LL, 100);
    ASSERT_TRUE(ends.part());
    EXPECT_EQ(net.sendsMade, 2u + 1u + kSteps) << "probes, a step, and answers on the connection of LL";
    ends.close();
    EXPECT_EQ(net.closedBusy, 0u);
  }
}

TEST(Parting, ANetworkThatClosesWhatIsPostedIsToldNothing) {
  FakeNet net;
  PartingEnds ends(net, {}, {}, kGraph);
  ends.carry(device::Protocol::Simple, 100);
  const unsigned before = net.sendsMade;
  EXPECT_TRUE(ends.sender->task()->parted() && ends.receiver->task()->parted());
  ends.sender->task()->part();
  ends.receiver->task()->part();
  EXPECT_TRUE(ends.sender->task()->parted() && ends.receiver->task()->parted());
  for (int i = 0; i < 10; ++i) ends.advance();
  EXPECT_EQ(net.sendsMade, before);
  ends.close();
}

TEST(Parting, APeerThatTakesNoPartIsWaitedForForAWhile) {
  FakeNet net(answering({.rendezvous = true}));
  PartingEnds ends(net, {}, {}, kGraph);
  ends.receiver->task()->part();
  ends.sender->task()->part();
  const auto begin = SteadyClock::now();
  EXPECT_TRUE(until([&] { return ends.sender->task()->advance().ok() && ends.sender->task()->parted(); }));
  EXPECT_GE(SteadyClock::now() - begin, net::Parting::kBound);
  EXPECT_TRUE(ends.sender->task()->quiet());
}

TEST(Parting, ANetworkThatFailsHasNothingToBeAnswered) {
  FakeNet net(answering());
  PartingEnds ends(net, {}, {}, kGraph);
  net.knobs().failing = "isend";
  ends.sender->task()->part();
  EXPECT_TRUE(until([&] { return ends.sender->task()->advance().ok() && ends.sender->task()->parted(); }));
}

struct Farewells final : net::PeerFarewells {
  bool hasLeft(int) const override { return left; }
  bool left = false;
};

TEST(Parting, AKernelThatWaitsForAPeerThatHasPartedIsToldSo) {
  for (const bool wordComesFirst : {true, false}) {
    const auto farewells = std::make_shared<Farewells>();
    net::NetTransportOptions receives;
    receives.farewells = farewells;
    FakeNet net(answering());
    PartingEnds ends(net, {}, receives, kGraph);
    ends.carry(device::Protocol::Simple, 100);
    farewells->left = wordComesFirst;
    ASSERT_TRUE(ends.part());
    EXPECT_FALSE(ends.in->recv(device::Protocol::Simple, 40));
    if (!wordComesFirst) {
      EXPECT_TRUE(ends.receiver->task()->advance().ok()) << "its farewell comes another way";
    }
    farewells->left = true;
    expectLog("but a kernel here waits for step 1 of 40 bytes from it");
    EXPECT_EQ(ends.receiver->task()->advance().status().code(), ncclInvalidUsage);
    EXPECT_FALSE(ends.in->recv(device::Protocol::Simple, 40)) << "it must not see the slot";
  }
}

TEST(Parting, WhatComesWithoutContentThoughAKernelReadsItIsCutShort) {
  FakeNet net(answering());
  PartingEnds ends(net, {}, {}, kGraph);
  ASSERT_TRUE(ends.out->send(device::Protocol::Simple, 0));
  ends.in->expect(40);
  expectLog("step 0 came with 0 bytes, but the kernel reads 40");
  Status told;
  EXPECT_TRUE(until([&] {
    EXPECT_TRUE(ends.sender->task()->advance().ok());
    told = ends.receiver->task()->advance().status();
    return !told.ok();
  }));
  EXPECT_EQ(told.code(), ncclRemoteError);
}

TEST(Parting, ARelayAnswersInItsSendersStead) {
  for (const bool takesPart : {true, false}) {
    RelayingRank relay(answering({.refuse = 30, .delay = 3, .rendezvous = true}),
                       {partingRank(0), partingRank(1), partingRank(2)});
    relay.routing->nic = {1, 7};
    {
      PartingEnds ends(relay.net, relay.options(), relay.options(), kGraph);
      ASSERT_EQ(ends.sender->description(), "NET/Fake/1(1)");
      for (const device::Protocol protocol : kAllProtocols) ends.carry(protocol, 100);
      if (takesPart) {
        EXPECT_TRUE(ends.part());
      }
      EXPECT_TRUE(until([&] { return ends.sender->task()->advance().ok() && ends.sender->task()->quiet(); }));
      ends.close();
    }
    EXPECT_EQ(relay.net.closedBusy == 0, takesPart);
  }
}

}  // namespace
}  // namespace tutti::test
