// Messages that a rank sends for another share slots: those of one sender on one channel, whichever rank they are for.
#include "transport/net/pxn/pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "support/log_capture.h"
#include "support/until.h"
#include "transport/common/ends.h"
#include "transport/common/peers.h"
#include "transport/common/up.h"
#include "transport/net/lane/counters.h"
#include "transport/net/pxn/memory.h"
#include "transport/net/pxn/relaying_rank.h"
#include "transport/net/sim_kernels.h"
#include "transport/net/transport.h"

namespace tutti::test {
namespace {

std::vector<topo::PeerInfo> ranksOfHub() {
  std::vector<topo::PeerInfo> ranks;
  for (int rank = 0; rank < 5; ++rank) ranks.push_back(peerOn(*testDevice(), rank));
  return ranks;
}

/// Rank 0 sends messages through rank 1 to rank 2 and all after it.
struct RelayedHub : RelayingRank {
  explicit RelayedHub(std::uint32_t sharedSlots, device::ConnKind kind = device::ConnKind::Mesh)
      : RelayingRank({.rendezvous = true}, ranksOfHub()), kind_(kind) {
    net::NetTransportOptions sharing = options();
    sharing.sharedSlots = sharedSlots;
    here = std::make_unique<net::NetTransport>(*testDevice(), net, std::move(sharing));
    there = std::make_unique<net::NetTransport>(*testDevice(), net, net::NetTransportOptions{});
  }
  transport::LinkSpec linkOf(int self, int peer, int channel, device::SlotBytes slots) const {
    return {peerOn(*testDevice(), self), peerOn(*testDevice(), peer), channel, slots, kind_};
  }
  void join(int peer, int channel = 2, device::SlotBytes slots = kSlots) {
    receivers.push_back(there->openRecv(linkOf(peer, 0, channel, slots)).value());
    senders.push_back(here->openSend(linkOf(0, peer, channel, slots)).value());
    ASSERT_TRUE(senders.back()->connect(receivers.back()->handle()).ok());
    ASSERT_TRUE(receivers.back()->connect(senders.back()->handle()).ok());
    EXPECT_TRUE(until([this] {
      const bool in = comesUp(*receivers.back()).value();
      return comesUp(*senders.back()).value() && in;
    }));
  }
  /// As a kernel would, into the next slot that its crew takes.
  std::uint32_t fill(std::size_t n, std::uint32_t bytes) {
    const device::SendConn view = sendConn(*senders[n]);
    const auto number = static_cast<std::uint32_t>((*view.shared.taken)++);
    std::byte* const slot = view.slots[2] + std::size_t{number % view.shared.count} * kSlots[2];
    std::memset(slot, static_cast<int>(number + 1), bytes);
    tell(n, number, bytes);
    return number;
  }
  void tell(std::size_t n, std::uint32_t number, std::uint32_t bytes) {
    const device::SendConn view = sendConn(*senders[n]);
    const std::uint64_t tail = *view.tailOf(device::Protocol::Simple);
    *view.words->place.of(tail) = number;
    *view.words->size[2].of(tail) = device::sizeWord(tail, bytes);
    net::storeCounter(view.tailOf(device::Protocol::Simple), tail + 1);
  }
  bool pulse() {
    bool good = true;
    for (const auto& sender : senders) good = sender->task()->advance().ok() && good;
    return good;
  }
  /// Whether that receiver gets so many steps, the last one with this content.
  bool receives(std::size_t n, std::uint64_t steps, std::uint32_t number) {
    const device::RecvConn view = recvConn(*receivers[n]);
    return until([&] {
             return pulse() && receivers[n]->task()->advance().ok() &&
                    net::loadCounter(view.tailOf(device::Protocol::Simple)) == steps;
           }) &&
           view.slots[2][(steps - 1) % device::kSteps * kSlots[2]] == static_cast<std::byte>(number + 1);
  }
  std::uint64_t givenBack(std::size_t n) const { return net::loadCounter(sendConn(*senders[n]).shared.givenBack); }

  device::ConnKind kind_;
  std::unique_ptr<net::NetTransport> here, there;  ///< receivers have slots of their own
  std::vector<std::unique_ptr<transport::Endpoint>> receivers, senders;
};

TEST(RelayPool, IsTheSameForAllMessagesOfAChannel) {
  RelayedHub hub(4);
  for (const int peer : {2, 3}) hub.join(peer);
  hub.join(2, 3);
  hub.join(4, 2, {4096, 2048, 4096});
  const auto view = [&](std::size_t n) { return sendConn(*hub.senders[n]); };
  EXPECT_EQ(view(0).shared.count, 4u);
  EXPECT_EQ(view(0).slots[2], view(1).slots[2]);
  EXPECT_EQ(view(0).shared.taken, view(1).shared.taken);
  EXPECT_EQ(view(0).shared.givenBack, view(1).shared.givenBack);
  EXPECT_NE(view(0).shared.taken, view(2).shared.taken) << "on another channel another crew sends";
  EXPECT_NE(view(0).shared.taken, view(3).shared.taken) << "slots of another size";
  EXPECT_NE(view(0).slots[0], view(1).slots[0]) << "LL has slots of its own";
}

TEST(RelayPool, HasNoMoreSlotsThanAConnectionWouldHaveForItself) {
  RelayedHub hub(16);
  hub.join(2);
  EXPECT_EQ(sendConn(*hub.senders[0]).shared.count, static_cast<std::uint32_t>(device::kSteps));
}

TEST(RelayPool, IsNotForConnectionsThatFollowAGraph) {
  RelayedHub hub(4, device::ConnKind::Graph);
  hub.join(2);
  EXPECT_EQ(sendConn(*hub.senders[0]).shared.taken, nullptr);
  EXPECT_NE(sendConn(*hub.senders[0]).slots[2], nullptr);
}

TEST(RelayPool, GetsItsSlotsBackWhicheverConnectionTheyWereFor) {
  RelayedHub hub(4);
  for (const int peer : {2, 3}) hub.join(peer);
  const std::uint32_t first = hub.fill(0, 100);
  const std::uint32_t second = hub.fill(1, 200);
  const std::uint32_t third = hub.fill(0, 300);
  EXPECT_TRUE(hub.receives(1, 1, second));
  for (int turn = 0; turn < 300; ++turn) ASSERT_TRUE(hub.pulse());
  EXPECT_EQ(hub.givenBack(0), 0u) << "the first is still out";
  EXPECT_TRUE(hub.receives(0, 2, third));
  EXPECT_TRUE(until([&] { return hub.pulse() && hub.givenBack(0) == 3; }));
  EXPECT_EQ(recvConn(*hub.receivers[0]).slots[2][0], static_cast<std::byte>(first + 1));
  for (std::uint64_t n = 3; n < 20; ++n) {
    const std::size_t to = n % 2;
    const std::uint64_t steps = net::loadCounter(recvConn(*hub.receivers[to]).tailOf(device::Protocol::Simple)) + 1;
    EXPECT_TRUE(hub.receives(to, steps, hub.fill(to, 64)));
    net::storeCounter(recvConn(*hub.receivers[to]).headOf(device::Protocol::Simple), steps);
    EXPECT_TRUE(until([&] { return hub.pulse() && hub.givenBack(0) == n + 1; }));
  }
  EXPECT_EQ(hub.net.faults, 0u);
}

TEST(RelayPool, RefusesSlotsThatNoKernelCanHaveTaken) {
  RelayedHub hub(2);
  hub.join(2);
  allowLog("which it does not have");
  expectLog("which sends in its stead, has failed");
  hub.tell(0, 7, 100);
  EXPECT_TRUE(until([&] { return hub.senders[0]->task()->advance().status().code() == ncclInternalError; }));
}

TEST(RelayPool, LastsAsLongAsAConnectionHasIt) {
  RelayedHub hub(2);
  hub.join(2);
  const std::uint32_t number = hub.fill(0, 100);
  EXPECT_TRUE(hub.receives(0, 1, number));
  EXPECT_TRUE(until([&] { return hub.pulse() && hub.givenBack(0) == 1; }));
  hub.senders.clear();
  hub.receivers.clear();
  EXPECT_TRUE(until([&] { return hub.net.leftOpen() == 0; }));
  // Whether or not the relay has made another one by now, both agree on which slot is next.
  hub.join(3);
  const device::SendConn view = sendConn(*hub.senders[0]);
  EXPECT_EQ(*view.shared.taken, *view.shared.givenBack);
  EXPECT_TRUE(hub.receives(0, 1, hub.fill(0, 100)));
}

TEST(RelayPools, KnowTheirsByTheirNumbers) {
  net::pxn::RelayPools pools;
  const net::SharedShape shape{4, 2048, false};
  auto first = pools.get(0, 1, shape, -1).value();
  EXPECT_EQ(pools.get(0, 1, shape, -1).value(), first);
  EXPECT_NE(pools.get(2, 1, shape, -1).value(), first) << "another sender";
  const std::uint64_t id = first->id();
  first.reset();
  EXPECT_NE(pools.get(0, 1, shape, -1).value()->id(), id);
}

/// As docs/network.md has it.
TEST(RelayPools, TakeAsMuchMemoryAsIsSaid) {
  const auto kilobytes = [](std::size_t bytes) { return bytes >> 10; };
  const device::SlotBytes soft{4 << 10, 0, 128 << 10};
  const device::SlotBytes gpu{16 << 10, 0, 128 << 10};
  EXPECT_EQ(kilobytes(net::pxn::layoutOf(soft, false).bytes), 1080u);
  EXPECT_EQ(kilobytes(net::pxn::layoutOf(soft, true).bytes), 56u);
  EXPECT_EQ(kilobytes(net::pxn::layoutOf(gpu, false).bytes), 1224u);
  EXPECT_EQ(kilobytes(net::pxn::layoutOf(gpu, true).bytes), 200u);
}

}  // namespace
}  // namespace tutti::test
