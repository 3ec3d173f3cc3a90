// Receives of several channels posted as one: in which order, with which parts, and what becomes of each.
#include "transport/net/recv/multi_recv.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "device/recv_sequence.h"
#include "support/log_capture.h"
#include "transport/net/sim_kernels.h"

namespace tutti::test {
namespace {

using device::RecvOrder;
using net::AskedReceive;
using net::MultiRecv;
using net::MultiRecvLane;
using net::RecvSequence;
using net::RecvTicket;

TEST(RecvSequence, GoOnWhenAllPartsOfAMessageHaveBeenPosted) {
  net::RecvSequence turns;
  const device::RecvOrder first{.number = 0, .parts = 2, .ends = true};
  const device::RecvOrder second{.number = 1, .parts = 1, .last = true, .ends = true};
  EXPECT_FALSE(turns.isNext(second));
  turns.posted({.number = 0, .parts = 2});
  turns.posted(first);
  EXPECT_TRUE(turns.isNext(first)) << "the other channel's part";
  turns.posted(first);
  EXPECT_FALSE(turns.isNext(first));
  EXPECT_TRUE(turns.isNext(second));
  turns.posted(second);
  EXPECT_TRUE(turns.isNext(first)) << "of the next launch";
}

TEST(RecvSequence, TravelInWordsAsTheyAre) {
  for (const bool last : {false, true}) {
    for (const bool ends : {false, true}) {
      const device::RecvOrder turn = device::orderIn(device::orderWord({79, 64, last, ends}));
      EXPECT_EQ(turn.number, 79);
      EXPECT_EQ(turn.parts, 64);
      EXPECT_EQ(turn.last, last);
      EXPECT_EQ(turn.ends, ends);
    }
  }
  const std::uint64_t place = device::askedPlace(0xfffffff0, device::orderWord({3, 2, true, false}), true);
  EXPECT_EQ(static_cast<std::uint32_t>(place), 0xfffffff0u);
  EXPECT_TRUE(device::orderIn(static_cast<std::uint32_t>(place >> 32)).ends);
}

TEST(RecvSequence, AreNumberedByPeerWithinALaunch) {
  using device::P2pWork;
  const auto receives = [](int peer, std::uint64_t bytes, device::Protocol protocol = device::Protocol::Simple) {
    return device::P2pWork{
        .recvBytes = bytes, .recvPeer = peer, .channelLo = 2, .channelHi = 5, .recvProtocol = protocol};
  };
  device::P2pWork works[] = {receives(1, 1 << 20), receives(2, 100), receives(1, 8, device::Protocol::LL),
                             receives(0, 100),     receives(1, 0),   receives(-1, 0),
                             receives(2, 1025)};
  device::numberReceives(works, std::size(works), 0);
  const auto turnOf = [&](int work) { return device::orderIn(works[work].recvOrder); };
  EXPECT_EQ(turnOf(0).number, 0);
  EXPECT_EQ(turnOf(0).parts, 4);
  EXPECT_FALSE(turnOf(0).last);
  EXPECT_EQ(turnOf(4).number, 1) << "LL has connections of its own";
  EXPECT_EQ(turnOf(4).parts, 1) << "nothing takes a slot of the first channel";
  EXPECT_TRUE(turnOf(4).last);
  EXPECT_EQ(turnOf(1).parts, 1) << "too little for a second channel";
  EXPECT_EQ(turnOf(6).parts, 3);
  for (const int work : {2, 3, 5}) EXPECT_EQ(works[work].recvOrder, 0u) << work;
}

/// A lane whose kernel asks as the test says.
class AskingLane final : public net::MultiRecvLane {
 public:
  AskingLane(net::MultiRecv& groups, int tag) : groups_(groups), tag_(tag) { groups_.join(*this); }
  ~AskingLane() { leave(); }
  void leave() {
    if (!left_) groups_.leave(*this);
    left_ = true;
  }
  std::optional<net::AskedReceive> asked() const override {
    if (tickets.size() == asks_.size()) return {};
    return asks_[tickets.size()];
  }
  void posted(net::RecvTicket ticket) override { tickets.push_back(ticket); }
  void ask(void* data, void* registration, device::RecvOrder turn, bool flushes = false) {
    asks_.push_back({{data, 256, tag_, registration}, turn, flushes});
  }
  std::vector<net::RecvTicket> tickets;

 private:
  net::MultiRecv& groups_;
  int tag_;
  bool left_ = false;
  std::vector<net::AskedReceive> asks_;
};

/// A connection with lanes 0 .. 3, whose tags are 10 and so on.
struct Groups {
  explicit Groups(FakeKnobs knobs = {}, int mostParts = 8)
      : net(withTags(std::move(knobs))), groups(std::make_shared<net::RecvSequence>(), mostParts) {
    ends = connectLanes(net, {{out.data(), out.size()}}, {{in.data(), in.size()}});
    groups.use(net, ends.receiver.connection);
    for (int i = 0; i < 4; ++i) lanes.push_back(std::make_unique<AskingLane>(groups, 10 + i));
  }
  static FakeKnobs withTags(FakeKnobs knobs) {
    knobs.maxRecvs = 8;
    return knobs;
  }
  /// Lane `i` asks for a receive into place `place`.
  void ask(int i, int place, device::RecvOrder turn, bool flushes = false) {
    lanes[i]->ask(in.data() + place * 256, ends.receiver.slotRegistration, turn, flushes);
  }
  /// Lane `i`'s peer sends `bytes` times `value`; false: refused.
  bool send(int i, std::size_t bytes, int value) {
    std::memset(out.data() + value * 256, value, bytes);
    const plugin::NetBuffer message{out.data() + value * 256, bytes, 10 + i, ends.sender.slotRegistration};
    void* const request = net.isend(ends.sender.connection, message).value();
    return request != nullptr;
  }
  bool post() { return groups.post().value(); }
  bool received(int i, std::size_t n = 0) { return groups.received(lanes[i]->tickets.at(n)).value(); }
  int take(int i, std::size_t n = 0) { return groups.take(lanes[i]->tickets.at(n)); }

  FakeNet net;
  std::vector<std::byte> out = std::vector<std::byte>(64 * 256), in = std::vector<std::byte>(64 * 256);
  LanePair ends;
  net::MultiRecv groups;
  std::vector<std::unique_ptr<AskingLane>> lanes;
};

constexpr device::RecvOrder partOf(int parts, int number = 0, bool last = true) {
  return {static_cast<std::uint8_t>(number), static_cast<std::uint8_t>(parts), last, true};
}

TEST(MultiRecv, PostPartsOfAMessageAsOneWhicheverComesFirst) {
  Groups g;
  for (const int i : {2, 0, 1}) g.ask(i, i, partOf(3));
  EXPECT_TRUE(g.post());
  EXPECT_FALSE(g.post());
  EXPECT_EQ(g.net.receives, 1u);
  EXPECT_EQ(g.net.mostAtOnce, 3u);
  ASSERT_TRUE(g.send(1, 200, 7));
  EXPECT_FALSE(g.send(1, 200, 8)) << "there is one place for this tag";
  ASSERT_TRUE(g.send(2, 0, 9));
  for (const int i : {0, 1, 2}) EXPECT_FALSE(g.received(i)) << "it completes as one";
  ASSERT_TRUE(g.send(0, 256, 5));
  for (const int i : {0, 1, 2}) ASSERT_TRUE(g.received(i));
  EXPECT_EQ(g.take(0), 256);
  EXPECT_EQ(g.take(1), 200);
  EXPECT_EQ(g.take(2), 0);
  EXPECT_EQ(g.in[0], std::byte{5});
  EXPECT_EQ(g.in[256], std::byte{7});
  EXPECT_EQ(g.net.faults, 0u);
}

TEST(MultiRecv, HoldAMessageBackUntilAllOfTheOneBeforeHasBeenAskedFor) {
  Groups g;
  g.ask(0, 0, partOf(2, 0, false));
  g.ask(0, 1, partOf(1, 1, true));
  EXPECT_TRUE(g.post());
  EXPECT_EQ(g.lanes[0]->tickets.size(), 1u) << "the second message would block the first one's other part";
  g.ask(1, 2, partOf(2, 0, false));
  EXPECT_TRUE(g.post());
  EXPECT_EQ(g.lanes[0]->tickets.size(), 2u);
  EXPECT_EQ(g.net.receives, 3u);
  ASSERT_TRUE(g.send(0, 1, 1));
  ASSERT_TRUE(g.send(1, 1, 2)) << "it stands before the second message";
  ASSERT_TRUE(g.send(0, 1, 3));
}

TEST(MultiRecv, HaveOneStepOfEachChannelAtMost) {
  Groups g;
  for (int n = 0; n < 3; ++n) g.ask(0, n, {0, 2, true, n == 2});
  g.ask(1, 3, partOf(2));
  EXPECT_TRUE(g.post());
  EXPECT_EQ(g.net.receives, 3u);
  EXPECT_EQ(g.net.mostAtOnce, 2u);
}

TEST(MultiRecv, HaveNoMorePartsThanTheNetworkTakes) {
  Groups g({}, 3);
  for (int i = 0; i < 4; ++i) g.ask(i, i, partOf(4));
  EXPECT_TRUE(g.post());
  EXPECT_EQ(g.net.receives, 2u);
  EXPECT_EQ(g.net.mostAtOnce, 3u);
}

TEST(MultiRecv, AskANetworkWithoutRoomAgainWithTheSame) {
  Groups g;
  g.net.knobs().refuse = 100;
  g.ask(0, 0, partOf(2));
  EXPECT_FALSE(g.post());
  EXPECT_TRUE(g.groups.refused());
  g.ask(1, 1, partOf(2));
  EXPECT_FALSE(g.post());
  g.net.knobs().refuse = 0;
  EXPECT_TRUE(g.post());
  EXPECT_FALSE(g.groups.refused());
  EXPECT_EQ(g.net.receives, 2u);
  EXPECT_EQ(g.net.mostAtOnce, 1u);
}

TEST(MultiRecv, FlushAllPartsThatNeedItAtOnce) {
  Groups g({.delay = 3});
  for (int i = 0; i < 3; ++i) g.ask(i, i, partOf(3), i != 1);
  EXPECT_TRUE(g.post());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(g.send(i, 100, i));
  bool flushing = false;
  for (int n = 0; n < 50 && !g.received(2); ++n) flushing = flushing || g.groups.flushing(g.lanes[0]->tickets[0]);
  EXPECT_TRUE(flushing);
  EXPECT_TRUE(g.received(0));
  EXPECT_EQ(g.net.flushes, 1u);
  EXPECT_EQ(g.net.flushed, 2u) << "the second lane's memory needs none";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(g.take(i), 100);
  for (int i = 0; i < 2; ++i) g.ask(i, i, partOf(2), true);
  EXPECT_TRUE(g.post());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(g.send(i, 0, i));
  for (int n = 0; n < 50 && !g.received(0, 1); ++n) {
  }
  EXPECT_TRUE(g.received(1, 1));
  EXPECT_EQ(g.net.flushes, 1u) << "nothing came";
}

TEST(MultiRecv, TellEveryLaneWhyTheConnectionFailedThoughTheNetworkSaysItOnce) {
  Groups g({.saysOnce = true});
  for (int i = 0; i < 2; ++i) g.ask(i, i, partOf(2));
  EXPECT_TRUE(g.post());
  g.net.knobs().failing = "test";
  expectLog("Fake: the cable is cut");
  EXPECT_EQ(g.groups.received(g.lanes[0]->tickets[0]).status().code(), ncclSystemError);
  restoreLastError("something else");
  g.net.knobs().failing = "";
  EXPECT_EQ(g.groups.received(g.lanes[1]->tickets[0]).status().code(), ncclSystemError) << "it is not asked again";
  EXPECT_NE(std::string(lastErrorText()).find("the cable is cut"), std::string::npos) << lastErrorText();
  EXPECT_FALSE(g.groups.post().ok());
}

TEST(MultiRecv, BringWhatIsUnderWayThoughNoFurtherReceiveIsTaken) {
  Groups g;
  g.ask(0, 0, partOf(1));
  EXPECT_TRUE(g.post());
  g.net.knobs().failing = "irecv";
  g.ask(1, 1, partOf(1));
  expectLog("Fake: the cable is cut");
  EXPECT_FALSE(g.groups.post().ok());
  g.net.knobs().failing = "";
  EXPECT_FALSE(g.groups.post().ok()) << "the network is not asked again";
  ASSERT_TRUE(g.send(0, 10, 4));
  ASSERT_TRUE(g.received(0));
  EXPECT_EQ(g.take(0), 10);
}

TEST(MultiRecv, GoOnForOthersWhenALaneLeaves) {
  Groups g;
  for (int n = 0; n < 100; ++n) {  // more than can be under way
    g.ask(0, 0, partOf(n < 50 ? 2 : 1));
    if (n < 50) g.ask(1, 1, partOf(2));
    if (n == 49) {
      EXPECT_TRUE(g.post());
      g.lanes[1]->leave();
    }
    g.post();
    if (n < 50) {
      ASSERT_TRUE(g.send(1, 5, 1));
    }
    ASSERT_TRUE(g.send(0, 6, 2)) << n;
    ASSERT_TRUE(g.received(0, static_cast<std::size_t>(n))) << n;
    EXPECT_EQ(g.take(0, static_cast<std::size_t>(n)), 6);
    if (n < 49) {
      EXPECT_EQ(g.take(1, static_cast<std::size_t>(n)), 5);
    }
  }
  EXPECT_EQ(g.net.faults, 0u);
}

TEST(MultiRecv, KeepWithinTheRequestsThatANetworkHas) {
  Groups g;
  for (int n = 0; n < 60; ++n) g.ask(n % 4, n, {0, 4, true, false});
  for (int i = 1; i < 4; ++i) g.lanes[i]->leave();
  g.post();
  for (int n = 15; n < 60; ++n) g.ask(0, n, {0, 4, true, false});
  g.post();
  EXPECT_EQ(g.net.receives, 32u);
  ASSERT_TRUE(g.send(0, 1, 1));
  ASSERT_TRUE(g.received(0));
  g.take(0);
  g.post();
  EXPECT_EQ(g.net.receives, 33u);
}

}  // namespace
}  // namespace tutti::test
