// Slots that connections share: which are out, who has which, when their memory goes.
#include "transport/net/lane/shared_slots.h"
#include "transport/net/test_device.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "gpu/driver_calls.h"
#include "support/log_capture.h"
#include "transport/common/peers.h"
#include "transport/common/up.h"
#include "transport/net/lane/fake_routing.h"
#include "transport/net/sim_kernels.h"
#include "transport/net/transport.h"

namespace tutti::test {
namespace {

using device::Direction;
using net::SharedPools;
using net::SharedShape;

TEST(SlotRing, CountsWhatHasComeBackWithoutAGap) {
  net::SlotRing ring(4);
  EXPECT_EQ(ring.giveBack(1), 0u);
  EXPECT_EQ(ring.giveBack(2), 0u);
  EXPECT_EQ(ring.giveBack(0), 3u);
  EXPECT_EQ(ring.giveBack(3), 4u);
}

TEST(SlotRing, KnowsWhichMayBeOut) {
  net::SlotRing ring(4);
  EXPECT_TRUE(ring.mayBeOut(3));
  EXPECT_FALSE(ring.mayBeOut(4)) << "more than there are";
  EXPECT_FALSE(ring.mayBeOut(~0u)) << "one of an earlier time";
  ring.giveBack(1);
  EXPECT_FALSE(ring.mayBeOut(1)) << "given back already";
  ring.giveBack(0);
  EXPECT_TRUE(ring.mayBeOut(5));
  EXPECT_FALSE(ring.mayBeOut(6));
}

TEST(SlotRing, GoesOnWhenNumbersComeRoundHoweverTheyComeBack) {
  std::minstd_rand dice(7);
  for (const std::uint32_t size : {1u, 2u, 16u}) {
    net::SlotRing ring(size);
    std::vector<std::uint32_t> out;
    std::uint64_t given = 0;
    for (std::uint64_t taken = 0; taken < 5000;) {
      if (taken - given < size) out.push_back(static_cast<std::uint32_t>(taken++));
      if (dice() % 2 == 0 || out.empty()) continue;
      const std::size_t at = dice() % out.size();
      ASSERT_TRUE(ring.mayBeOut(out[at]));
      given = ring.giveBack(out[at]);
      out.erase(out.begin() + static_cast<std::ptrdiff_t>(at));
      ASSERT_LE(taken - given, size);
      ASSERT_EQ(given == taken, out.empty());
    }
  }
}

TEST(SharedPools, HaveOneOfEachChannelAndDirection) {
  net::SharedPools pools;
  const net::SharedShape shape{4, 2048, false};
  const auto first = pools.get(*testDevice(), 1, device::Direction::Send, shape).value();
  EXPECT_EQ(pools.get(*testDevice(), 1, device::Direction::Send, shape).value(), first);
  EXPECT_NE(pools.get(*testDevice(), 1, device::Direction::Recv, shape).value(), first);
  EXPECT_NE(pools.get(*testDevice(), 2, device::Direction::Send, shape).value(), first);
  EXPECT_EQ(pools.get(*testDevice(), 1, device::Direction::Send, {8, 2048, false}).value(), nullptr) << "it has fewer";
  EXPECT_EQ(first->bytes(), 4u * 2048);
}

TEST(SharedPools, StayWhereTheFirstToComeHasThem) {
  net::SharedPools pools;
  const net::SharedShape inHost{4, 2048, false};
  const net::SharedShape onDevice{4, 2048, true};
  const auto ofHost = pools.get(*testDevice(), 1, device::Direction::Send, inHost).value();
  EXPECT_EQ(pools.get(*testDevice(), 1, device::Direction::Send, onDevice).value(), ofHost) << "any network takes it";
  const auto ofDevice = pools.get(*testDevice(), 1, device::Direction::Recv, onDevice).value();
  EXPECT_EQ(pools.get(*testDevice(), 1, device::Direction::Recv, onDevice).value(), ofDevice);
  EXPECT_EQ(pools.get(*testDevice(), 1, device::Direction::Recv, inHost).value(), nullptr);
}

TEST(SharedPools, LastAsLongAsAnybodyHasThem) {
  net::SharedPools pools;
  const net::SharedShape shape{4, 2048, false};
  auto first = pools.get(*testDevice(), 1, device::Direction::Send, shape).value();
  const std::weak_ptr<net::SharedSlots> known = first;
  first.reset();
  EXPECT_TRUE(known.expired());
  EXPECT_NE(pools.get(*testDevice(), 1, device::Direction::Send, shape).value(), nullptr);
}

TEST(SharedPools, AreOthersForSlotsOfAnotherLength) {
  net::SharedPools pools;
  const auto first = pools.get(*testDevice(), 1, device::Direction::Send, {4, 2048, false}).value();
  const auto second = pools.get(*testDevice(), 1, device::Direction::Send, {4, 4096, false}).value();
  ASSERT_NE(second, nullptr);
  EXPECT_NE(second, first);
}

TEST(SharedPools, LendMemoryThatKernelsAndHostSeeAtTheSamePlace) {
  for (const bool onDevice : {false, true}) {
    net::SharedPools pools;
    const auto slots = pools.get(*testDevice(), 1, device::Direction::Send, {4, 2048, onDevice}).value();
    const device::SendShared kernel = slots->ofSender(net::Viewer::Kernels);
    const device::SendShared host = slots->ofSender(net::Viewer::Host);
    EXPECT_EQ(slots->slots(net::Viewer::Host), slots->memory());
    EXPECT_EQ(slots->at(6), slots->memory() + 2 * 2048);
    EXPECT_EQ(kernel.count, 4u);
    EXPECT_EQ(slots->deviceSlots() != nullptr, onDevice);
    slots->giveBack(0);
    EXPECT_EQ(*host.givenBack, 1u);
    EXPECT_EQ(*kernel.taken, 0u);
  }
}

/// Ends of rank 0's connections to many peers, which come up by themselves.
struct Hub {
  explicit Hub(int nPeers, std::uint32_t sharedSlots, bool onDevice = false)
      : here(*testDevice(), net, optionsFor(sharedSlots, onDevice)), there(*testDevice(), net, optionsFor(0, false)) {
    for (int peer = 1; peer <= nPeers; ++peer) {
      senders.push_back(here.openSend(linkOf(0, peer)).value());
      receivers.push_back(there.openRecv(linkOf(peer, 0)).value());
      EXPECT_TRUE(senders.back()->connect(receivers.back()->handle()).ok());
      EXPECT_TRUE(receivers.back()->connect(senders.back()->handle()).ok());
      bool up = false;
      for (int i = 0; i < 100 && !up; ++i) {
        const bool out = comesUp(*senders.back()).value();
        up = comesUp(*receivers.back()).value() && out;
      }
      EXPECT_TRUE(up);
    }
  }
  static net::NetTransportOptions optionsFor(std::uint32_t sharedSlots, bool onDevice) {
    net::NetTransportOptions options;
    options.sharedSlots = sharedSlots;
    options.routing = routingWithSlots({.onDevice = onDevice});
    return options;
  }
  static transport::LinkSpec linkOf(int self, int peer) {
    return {peerOn(*testDevice(), self), peerOn(*testDevice(), peer), 2, kSlots, device::ConnKind::Mesh};
  }
  void close() {
    senders.clear();
    receivers.clear();
    EXPECT_EQ(net.leftOpen(), 0u);
    EXPECT_EQ(net.faults, 0u);
  }
  /// As a kernel would, into the shared slot of this number.
  void fill(std::size_t peer, std::uint32_t number, std::uint32_t bytes) {
    const device::SendConn view = sendConn(*senders[peer]);
    std::uint64_t& tail = *view.tailOf(device::Protocol::Simple);
    std::memset(view.slots[2] + std::size_t{number % view.shared.count} * kSlots[2], static_cast<int>(number), bytes);
    *view.words->place.of(tail) = number;
    *view.words->size[2].of(tail) = device::sizeWord(tail, bytes);
    ++tail;
  }

  FakeNet net{FakeKnobs{.rendezvous = true}};
  net::NetTransport here, there;
  std::vector<std::unique_ptr<transport::Endpoint>> senders, receivers;
};

TEST(SharedSlots, AreTheSameOnAllConnectionsOfAChannel) {
  for (const bool onDevice : {false, true}) {
    Hub hub(5, 4, onDevice);
    for (const auto& sender : hub.senders) {
      EXPECT_EQ(sendConn(*sender).slots[2], sendConn(*hub.senders[0]).slots[2]);
      EXPECT_EQ(sendConn(*sender).shared.taken, sendConn(*hub.senders[0]).shared.taken);
    }
    EXPECT_EQ(recvConn(*hub.receivers[0]).shared.taken, nullptr) << "whose direction has slots of its own";
    EXPECT_NE(recvConn(*hub.receivers[0]).slots[2], recvConn(*hub.receivers[1]).slots[2]);
    hub.close();
  }
}

TEST(SharedSlots, AreNotThoseOfGraphConnections) {
  FakeNet net;
  net::NetTransport transport(*testDevice(), net, Hub::optionsFor(4, false));
  transport::LinkSpec out = Hub::linkOf(0, 1);
  transport::LinkSpec in = Hub::linkOf(1, 0);
  out.kind = in.kind = device::ConnKind::Graph;
  auto sender = transport.openSend(out).value();
  auto receiver = transport.openRecv(in).value();
  ASSERT_TRUE(sender->connect(receiver->handle()).ok());
  ASSERT_TRUE(receiver->connect(sender->handle()).ok());
  // Neither is without the other: both are asked.
  bool ready = false;
  for (int i = 0; i < 100 && !ready; ++i) {
    const bool sends = comesUp(*sender).value();
    ready = comesUp(*receiver).value() && sends;
  }
  ASSERT_TRUE(ready);
  EXPECT_EQ(sendConn(*sender).shared.taken, nullptr);
  EXPECT_EQ(recvConn(*receiver).shared.taken, nullptr);
}

TEST(SharedSlots, ComeBackWhenTheNetworkHasLetGoOfThemWhicheverConnectionTheyWereFor) {
  Hub hub(2, 4);
  hub.fill(0, 0, 100);
  hub.fill(1, 1, 200);
  hub.fill(0, 2, 300);
  const std::uint64_t* const head = sendConn(*hub.senders[0]).shared.givenBack;
  for (int i = 0; i < 5; ++i) {
    for (const auto& sender : hub.senders) ASSERT_TRUE(sender->task()->advance().ok());
  }
  EXPECT_EQ(*head, 0u) << "nobody has received";
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(hub.receivers[1]->task()->advance().ok());
    ASSERT_TRUE(hub.senders[1]->task()->advance().ok());
  }
  EXPECT_EQ(*head, 0u) << "the first is still out";
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(hub.receivers[0]->task()->advance().ok());
    ASSERT_TRUE(hub.senders[0]->task()->advance().ok());
  }
  EXPECT_EQ(*head, 3u);
  const device::RecvConn in = recvConn(*hub.receivers[0]);
  EXPECT_EQ(*in.tailOf(device::Protocol::Simple), 2u);
  EXPECT_EQ(in.slots[2][kSlots[2]], std::byte{2}) << "the second step has the third slot's content";
  hub.close();
}

TEST(SharedSlots, GoWithTheLastConnectionThoughMessagesAreUnderWay) {
  Hub hub(3, 2);
  hub.fill(0, 0, 100);
  hub.fill(2, 1, 100);
  for (const auto& sender : hub.senders) ASSERT_TRUE(sender->task()->advance().ok());
  hub.close();
}

TEST(SharedSlots, OfAPeerThatHasLeftComeBack) {
  bool left = false;
  FakeNet net;
  net::SharedPools pools;
  const auto slots = pools.get(*testDevice(), 1, device::Direction::Send, {2, kSlots[2], false}).value();
  SenderMemory end;
  end.view.shared = slots->ofSender(net::Viewer::Host);
  net::NetPath path = pathFor(device::Direction::Send);
  path.farewells = farewells([&](int) { return left; });
  LanePair lanes = connectLanes(net, {{slots->memory(), slots->bytes()}}, {});
  net::SendSetup setup{{path, &lanes.sender}, end.view};
  setup.shared = slots.get();
  net::NetSender sender(setup);
  *end.view.words->place.of(0) = 0;
  *end.view.words->size[2].of(0) = device::sizeWord(0, 64);
  *end.view.tailOf(device::Protocol::Simple) = 1;
  net.knobs().neverEnds = true;
  ASSERT_TRUE(sender.advance().ok());
  EXPECT_EQ(*end.view.shared.givenBack, 0u);
  left = true;
  net.knobs().failing = "test";
  expectLog("Fake: the cable is cut");
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(sender.advance().ok());
  EXPECT_EQ(*end.view.shared.givenBack, 1u);
}

TEST(SharedSlots, AreRefusedWhereNoKernelCanHaveTakenThem) {
  Hub hub(1, 2);
  hub.fill(0, 7, 100);
  expectLog("which it does not have");
  EXPECT_EQ(hub.senders[0]->task()->advance().status().code(), ncclInternalError);
}

}  // namespace
}  // namespace tutti::test
