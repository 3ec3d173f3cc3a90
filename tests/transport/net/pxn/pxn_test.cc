// A rank that sends in another's stead: it knows whom it serves, carries what that one's kernels write, says what
// fails, rests with it, and outlives its own communicator if it has to.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "support/log_capture.h"
#include "support/until.h"
#include "transport/common/ends.h"
#include "transport/common/local_strangers.h"
#include "transport/common/peers.h"
#include "transport/common/up.h"
#include "transport/net/lane/counters.h"
#include "transport/net/pxn/relaying_rank.h"
#include "transport/net/pxn/service.h"
#include "transport/net/pxn/task.h"
#include "transport/net/pxn/wire.h"
#include "transport/net/sim_kernels.h"
#include "transport/net/transport.h"

namespace tutti::test {
namespace {

using net::pxn::RelayService;

/// Ranks 0 and 1 are on one host, rank 2 is elsewhere.
topo::PeerInfo rankOn(int rank) {
  topo::PeerInfo info = peerOn(*testDevice(), rank);
  info.hostHash = rank == 2 ? 200 : 100;
  std::snprintf(info.hostName.data(), info.hostName.size(), rank == 2 ? "far" : "near");
  return info;
}

transport::LinkSpec linkOf(int self, int peer) {
  return transport::LinkSpec{rankOn(self), rankOn(peer), 2, kSlots, device::ConnKind::Graph};
}

/// Rank 0 sends to rank 2 through rank 1.
struct Relayed : RelayingRank {
  explicit Relayed(FakeKnobs knobs = {}) : RelayingRank(std::move(knobs), {rankOn(0), rankOn(1), rankOn(2)}) {
    routing->nic = {1, 7};
    transport = std::make_unique<net::NetTransport>(*testDevice(), net, options());
    receiver = transport->openRecv(linkOf(2, 0)).value();
    sender = transport->openSend(linkOf(0, 2)).value();
  }
  bool comeUp() {
    if (!sender->connect(receiver->handle()).ok() || !receiver->connect(sender->handle()).ok()) return false;
    return until([this] {
             const auto in = comesUp(*receiver);
             const auto out = comesUp(*sender);
             if (!in.ok() || !out.ok()) failed = true;
             return failed || (in.value() && out.value());
           }) &&
           !failed;
  }
  /// A step from kernel to kernel.
  bool carry(SendingKernel& out, ReceivingKernel& in, device::Protocol protocol, std::uint32_t bytes) {
    if (!out.send(protocol, bytes)) return false;
    return until([&] {
      if (!sender->task()->advance().ok() || !receiver->task()->advance().ok()) return true;
      return in.recv(protocol, bytes);
    });
  }
  bool settles() {
    return until([this] { return sender->task()->advance().ok() && sender->task()->quiet(); });
  }

  std::unique_ptr<net::NetTransport> transport;
  bool failed = false;
  std::unique_ptr<transport::Endpoint> receiver;
  std::unique_ptr<transport::Endpoint> sender;
};

TEST(Relay, CarriesStepsOfAllProtocols) {
  for (const FakeKnobs& knobs : {FakeKnobs{}, FakeKnobs{.refuse = 50, .delay = 4, .rendezvous = true, .polls = 5}}) {
    Relayed ends(knobs);
    ASSERT_TRUE(ends.comeUp());
    ASSERT_TRUE(ends.routing->asked.has_value());
    EXPECT_EQ(ends.routing->asked->rail, 7) << "the receiver has said where it is";
    EXPECT_EQ(ends.sender->description(), "NET/Fake/1(1)");
    SendingKernel out(sendConn(*ends.sender));
    ReceivingKernel in(recvConn(*ends.receiver));
    std::uint64_t steps = 0;
    for (const device::Protocol protocol : kAllProtocols) {
      for (int round = 0; round < 3 * device::kSteps; ++round, ++steps) {
        const std::uint32_t bytes = round % 3 == 0 ? 0 : round % 3 == 1 ? 500 : roomOf(protocol);
        ASSERT_TRUE(ends.carry(out, in, protocol, bytes)) << ends.sender->task()->describe();
      }
    }
    ASSERT_TRUE(ends.settles());
    const proxy::TaskCounters counters = ends.sender->task()->counters();
    EXPECT_EQ(counters.posted, steps);
    EXPECT_EQ(counters.done, steps);
    EXPECT_NE(ends.sender->task()->describe().find("waits for a kernel; rank 1 (host near"), std::string::npos);
    ends.sender.reset();
    ends.receiver.reset();
    EXPECT_TRUE(until([&] { return ends.net.leftOpen() == 0; })) << "the relay gives its connection back";
    EXPECT_EQ(ends.net.faults, 0u);
  }
}

TEST(Relay, TalksToTheReceiverOnlyWhenItsSenderIsToMeetIt) {
  Relayed ends;
  ASSERT_TRUE(ends.sender->connect(ends.receiver->handle()).ok());
  ASSERT_TRUE(ends.receiver->connect(ends.sender->handle()).ok());
  EXPECT_FALSE(ends.sender->calls());
  ASSERT_TRUE(until([&] { return ends.sender->ready().value(); })) << "no answer of the receiver's is needed here";
  EXPECT_TRUE(ends.sender->calls());
  ASSERT_TRUE(until([&] { return ends.receiver->ready().value(); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(ends.net.sendsMade, 0u);
  ASSERT_TRUE(until([&] {
    const bool met = ends.receiver->meet().value();
    return ends.sender->meet().value() && met;
  }));
  EXPECT_EQ(ends.net.sendsMade, 2u);
}

TEST(Relay, RestsWithItsSenderAndWakesWithIt) {
  Relayed ends;
  ASSERT_TRUE(ends.comeUp());
  SendingKernel out(sendConn(*ends.sender));
  ReceivingKernel in(recvConn(*ends.receiver));
  for (unsigned round = 1; round <= 3; ++round) {
    ASSERT_TRUE(ends.carry(out, in, device::Protocol::Simple, 500));
    ASSERT_TRUE(ends.settles());
    EXPECT_TRUE(until([&] {
      const std::uint64_t rounds = ends.engine->counters().rounds;
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      return ends.engine->counters().rounds == rounds;
    })) << "it goes on in round "
        << round;
  }
}

TEST(Relay, WaitsUntilTheNetworkHasDelivered) {
  Relayed ends({.neverEnds = false, .undelivered = true});
  ASSERT_TRUE(ends.comeUp());
  SendingKernel out(sendConn(*ends.sender));
  ReceivingKernel in(recvConn(*ends.receiver));
  ASSERT_TRUE(ends.carry(out, in, device::Protocol::LL, 500));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(ends.sender->task()->quiet());
  EXPECT_NE(ends.sender->task()->counters().posted, ends.sender->task()->counters().done);
}

/// What the sender's task fails with, soon; success: it does not.
Status failureOf(Relayed& ends) {
  Status told;
  EXPECT_TRUE(until([&] {
    told = ends.sender->task()->advance().status();
    return !told.ok();
  }));
  return told;
}

/// Waits until the sender's task says so of itself.
bool says(const Relayed& ends, proxy::BlockedBy blockedBy, std::string_view text) {
  return until([&] {
    const proxy::ProgressTask& task = *ends.sender->task();
    EXPECT_TRUE(ends.sender->task()->advance().ok());
    return task.hold().blockedBy == blockedBy && task.describe().find(text) != std::string::npos;
  });
}

TEST(Relay, SaysWhatItsConnectionWaitsFor) {
  Relayed ends;
  ASSERT_TRUE(ends.comeUp());
  SendingKernel out(sendConn(*ends.sender));
  ReceivingKernel in(recvConn(*ends.receiver));
  EXPECT_EQ(ends.sender->task()->hold().blockedBy, proxy::BlockedBy::Nobody);
  ends.net.troubles.full = true;
  ASSERT_TRUE(out.send(device::Protocol::Simple, 500));
  EXPECT_TRUE(says(ends, proxy::BlockedBy::Network,
                   "Simple step 0; rank 1 (host near, device 0), which sends in its stead, waits for the network "
                   "to take 500 bytes"))
      << ends.sender->task()->describe();
  EXPECT_EQ(ends.sender->task()->hold().relay, 1);
  const std::vector<std::string> lines = ends.service->underWay();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines.front(),
            "in the stead of rank 0 (host near, device 0): send to rank 2 (host far, device 0) by NET/Fake/1(1) on "
            "channel 2: Simple step 0, waits for the network to take 500 bytes");
  for (int turn = 0; turn < 2; ++turn) ASSERT_TRUE(ends.receiver->task()->advance().ok());
  EXPECT_TRUE(ends.receiver->task()->starves(static_cast<std::size_t>(device::Protocol::Simple)));
  EXPECT_TRUE(ends.receiver->task()->starves(static_cast<std::size_t>(device::Protocol::LL))) << "from the beginning";
  ends.net.troubles.full = false;
  EXPECT_TRUE(until([&] { return ends.receiver->task()->advance().ok() && in.recv(device::Protocol::Simple, 500); }));
  EXPECT_TRUE(says(ends, proxy::BlockedBy::Nobody, "waits for a kernel"));
  EXPECT_TRUE(ends.service->underWay().empty());
}

TEST(Relay, SaysThatTheNetworkDoesNotDeliver) {
  Relayed ends({.undelivered = true});
  ASSERT_TRUE(ends.comeUp());
  SendingKernel out(sendConn(*ends.sender));
  ReceivingKernel in(recvConn(*ends.receiver));
  ASSERT_TRUE(ends.carry(out, in, device::Protocol::LL, 500));
  EXPECT_TRUE(says(ends, proxy::BlockedBy::Network, "waits for the network to deliver what it took"))
      << ends.sender->task()->describe();
}

TEST(Relay, IsFoundOutWhenItsEngineHangs) {
  Relayed ends;
  ASSERT_TRUE(ends.comeUp());
  SendingKernel out(sendConn(*ends.sender));
  ReceivingKernel in(recvConn(*ends.receiver));
  // Its engine may sleep for as long as it likes while there is nothing to do.
  const Deadline idle = Deadline::in(net::pxn::RelayedTask::kStuck + milliseconds(200));
  EXPECT_TRUE(until([&] {
    EXPECT_TRUE(ends.sender->task()->advance().ok());
    EXPECT_EQ(ends.sender->task()->hold().blockedBy, proxy::BlockedBy::Nobody);
    return idle.expired();
  }));
  ends.net.troubles.hangs = true;
  ASSERT_TRUE(out.send(device::Protocol::Simple, 500));
  EXPECT_TRUE(
      says(ends, proxy::BlockedBy::Relay,
           "Simple step 0; rank 1 (host near, device 0), which sends in its stead, does nothing: its process is "
           "stopped, or its engine hangs"))
      << ends.sender->task()->describe();
  ends.net.troubles.hangs = false;
  EXPECT_TRUE(until([&] { return ends.receiver->task()->advance().ok() && in.recv(device::Protocol::Simple, 500); }));
  EXPECT_TRUE(says(ends, proxy::BlockedBy::Nobody, "waits for a kernel"));
}

TEST(Relay, BelievesNoNonsenseOnTheBoard) {
  const net::LaneFacts facts = net::pxn::factsOf(~std::uint64_t{0}, 3);
  EXPECT_EQ(facts.place(), "Simple step 3");
  EXPECT_FALSE(facts.waits().empty());
  const net::LaneFacts told{device::Protocol::LL128, net::LaneWait::Completion, 4096, 17};
  EXPECT_EQ(net::pxn::factsOf(net::pxn::packed(told), 17), told);
}

TEST(Relay, TellsItsSenderWhatFailed) {
  Relayed ends;
  ASSERT_TRUE(ends.comeUp());
  allowLog("of rank 0 (host near, device 0): the kernel gave step 0 the size");
  expectLog("rank 1 (host near, device 0), which sends in its stead, has failed: send to rank 2");
  const device::SendConn view = sendConn(*ends.sender);
  net::storeCounter(view.words->size[2].of(0), ~std::uint64_t{0});
  net::storeCounter(view.tailOf(device::Protocol::Simple), 1);
  EXPECT_EQ(failureOf(ends).code(), ncclInternalError);
}

TEST(Relay, IsMissedWhenItHasGoneAndNobodySaysWhy) {
  Relayed ends;
  ASSERT_TRUE(ends.comeUp());
  const auto gone = SteadyClock::now();
  ends.service.reset();
  expectLog("rank 1 (host near, device 0), which sends in its stead, has ended or given up");
  EXPECT_EQ(failureOf(ends).code(), ncclRemoteError);
  EXPECT_GE(SteadyClock::now() - gone, net::pxn::RelayedTask::kGoneGrace);
}

TEST(Relay, GoesOnForOthersAfterItsOwnEnd) {
  Relayed ends;
  ASSERT_TRUE(ends.comeUp());
  const std::weak_ptr<net::pxn::RelayService> left = ends.service;
  net::pxn::RelayService::retire(std::move(ends.service));
  SendingKernel out(sendConn(*ends.sender));
  ReceivingKernel in(recvConn(*ends.receiver));
  ASSERT_TRUE(ends.carry(out, in, device::Protocol::Simple, 500));
  ASSERT_TRUE(ends.settles());
  EXPECT_FALSE(left.expired());
  ends.sender.reset();
  EXPECT_TRUE(until([&] { return left.expired(); })) << "it ends with its last sender";
}

TEST(Relay, EndsAtOnceWhereNobodySendsThroughIt) {
  Relayed ends;
  const std::weak_ptr<net::pxn::RelayService> left = ends.service;
  net::pxn::RelayService::retire(std::move(ends.service));
  EXPECT_TRUE(until([&] { return left.expired(); }));
  expectLog("does not listen: it has ended");
  allowLog("Fake");
  EXPECT_FALSE(ends.comeUp());
}

TEST(Relay, SaysWhyItCannotSend) {
  Relayed ends({.failing = "connect"});
  allowLog("the cable is cut");
  allowLog("failed in connect");
  expectLog("rank 1 (host near, device 0) cannot send in its stead: send to rank 2");
  EXPECT_FALSE(ends.comeUp());
}

TEST(Relay, RefusesSlotsThatAreMoreThanTheNetworkTakes) {
  Relayed ends;
  ends.net.maxBytes = 1024;
  expectLog("NET/Fake/1(1) on channel 2 of rank 0 (host near, device 0): the network takes at most 1024 bytes at once");
  expectLog("rank 1 (host near, device 0) cannot send in its stead: send to rank 2");
  EXPECT_FALSE(ends.comeUp());
}

/// A line to the relay, on which nothing has been said.
Fd lineTo(const Relayed& ends) {
  Fd line = transport::localSocket();
  const transport::LocalName name = net::pxn::lineName(ends.secret, 1);
  EXPECT_EQ(::connect(line.get(), name.generic(), name.length), 0);
  return line;
}

template <class Message>
bool say(const Fd& line, const Message& message) {
  return transport::sendPacket(line.get(), transport::packetOf(message)) == transport::PacketIo::Done;
}

template <class Message>
bool hear(const Fd& line, Message& into) {
  const auto bytes = std::as_writable_bytes(std::span(&into, 1));
  transport::PacketIo state = transport::PacketIo::Again;
  until([&] { return (state = transport::receivePacket(line.get(), bytes).state) != transport::PacketIo::Again; });
  return state == transport::PacketIo::Done;
}

/// As rank 0 says it.
net::pxn::Hello helloTo(const Relayed& ends) {
  net::pxn::Hello hello;
  hello.sender = 0;
  hello.relay = 1;
  hello.nonce = net::pxn::freshNonce();
  hello.pass = net::pxn::passOf(ends.secret, hello);
  return hello;
}

bool isClosed(const Fd& line) {
  std::array<std::byte, net::pxn::kMostBytes> packet;
  return until([&] { return transport::receivePacket(line.get(), packet).state == transport::PacketIo::Gone; });
}

TEST(Relay, DropsWhoeverDoesNotKnowTheSecret) {
  Relayed ends;
  const Fd nonsense = lineTo(ends);
  EXPECT_TRUE(say(nonsense, std::uint64_t{42}));
  EXPECT_TRUE(isClosed(nonsense));

  net::pxn::Hello hello = helloTo(ends);
  hello.pass[7] ^= std::byte{1};
  const Fd guess = lineTo(ends);
  ASSERT_TRUE(say(guess, hello));
  net::pxn::Challenge challenge;
  EXPECT_FALSE(hear(guess, challenge)) << "there is no answer to a wrong pass";

  hello = helloTo(ends);
  const Fd line = lineTo(ends);
  ASSERT_TRUE(say(line, hello));
  ASSERT_TRUE(hear(line, challenge));
  EXPECT_TRUE(net::pxn::sameProof(challenge.proof, net::pxn::prove(ends.secret, hello, challenge.nonce, false)));
  net::pxn::Order order;
  order.proof = challenge.proof;  // its own words back
  ASSERT_TRUE(say(line, order));
  EXPECT_TRUE(isClosed(line));
  EXPECT_TRUE(ends.comeUp()) << "others are served";
}

TEST(Relay, SilentStrangersHaveFewPlacesAndTheLastOnesGo) {
  Relayed ends;
  std::vector<Fd> silent;
  for (int i = 0; i < 4; ++i) silent.push_back(lineTo(ends));
  ASSERT_TRUE(until([&] { return ends.places.taken() == 4; }));
  const auto full = SteadyClock::now();
  EXPECT_TRUE(isClosed(lineTo(ends)));
  EXPECT_LT(secondsSince(full), 1.9) << "not only when the others' time is over";
  const Fd known = lineTo(ends);
  ASSERT_TRUE(say(known, helloTo(ends)));
  EXPECT_TRUE(until([&] { return ends.places.taken() == 0; })) << "nobody keeps a place for ever";
  for (const Fd& line : silent) EXPECT_TRUE(isClosed(line));
}

TEST(Relay, WhoBelongsToTheCommunicatorComesThroughAFlood) {
  for (int round = 0; round < 5; ++round) {
    Relayed ends;
    const LocalStrangers strangers(net::pxn::lineName(ends.secret, 1));
    EXPECT_TRUE(until([&] { return ends.places.taken() > 0; }));
    EXPECT_TRUE(ends.comeUp());
  }
}

TEST(Relay, RefusesOrdersThatMakeNoSense) {
  Relayed ends;
  const Fd line = lineTo(ends);
  const net::pxn::Hello hello = helloTo(ends);
  ASSERT_TRUE(say(line, hello));
  net::pxn::Challenge challenge;
  ASSERT_TRUE(hear(line, challenge));
  net::pxn::Order order;
  order.proof = net::pxn::prove(ends.secret, hello, challenge.nonce, true);
  order.peer = 3;
  order.netDevice = 0;
  order.slotBytes = kSlots;
  expectLog("PXN : rank 0 asks rank 1 to send to rank 3");
  ASSERT_TRUE(say(line, order));
  net::pxn::Answer answer;
  ASSERT_TRUE(hear(line, answer));
  EXPECT_EQ(answer.code, ncclInternalError);
  EXPECT_TRUE(isClosed(line));
}

}  // namespace
}  // namespace tutti::test
