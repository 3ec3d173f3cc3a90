#include "comm/connect/connect.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "base/log.h"
#include "comm/connect/awaited_peers.h"
#include "support/fake_control_channel.h"
#include "support/log_capture.h"
#include "support/thread_ranks.h"

namespace tutti::comm {
namespace {

/// A transport whose receivers are ints in this process; a sender writes its rank there.
struct FakeMemory {
  std::mutex mutex;
  std::map<int, int> cells;
  int next = 0;
  /// How far connections have come, by sender, receiver and channel. Senders call first, then receivers answer.
  using Key = std::array<int, 3>;
  std::set<Key> called, answered, met;
  int early = 0;  ///< answers before a call, and messages before an answer
};

struct Behaviour {
  bool reaches = true;
  bool openFails = false;
  bool writeIsLost = false;
  bool calls = false;      ///< senders call before their receivers hear of them
  bool meetFails = false;  ///< of senders
};

class FakeEndpoint final : public transport::Endpoint {
 public:
  FakeEndpoint(FakeMemory& memory, const Behaviour& behaviour, const transport::LinkSpec& link, bool sending)
      : memory_(memory), behaviour_(behaviour), link_(link), sending_(sending) {
    const std::lock_guard lock(memory_.mutex);
    if (!sending) memory_.cells[cell_ = memory_.next++] = -1;
  }
  transport::ConnectHandle handle() const override {
    transport::ConnectHandle handle;
    std::memcpy(handle.bytes.data(), &cell_, sizeof(cell_));
    return handle;
  }
  Status connect(const transport::ConnectHandle& peer) override {
    if (sending_) std::memcpy(&cell_, peer.bytes.data(), sizeof(cell_));
    return {};
  }
  /// A call takes two tries; a receiver that comes before it would wait for its sender, and hold up all else.
  Result<bool> ready() override {
    const std::lock_guard lock(memory_.mutex);
    if (sending_) memory_.called.insert(key());
    if (sending_) return ++tries_ > 1;
    if (behaviour_.calls && !memory_.called.contains(key())) ++memory_.early;
    memory_.answered.insert(key());
    return true;
  }
  bool calls() const override { return tries_ > 0; }
  Result<bool> meet() override {
    const std::lock_guard lock(memory_.mutex);
    if (sending_ && behaviour_.meetFails) return fail(ncclSystemError, "fake transport cannot meet");
    if (!memory_.answered.contains(key())) ++memory_.early;
    if (sending_) memory_.met.insert(key());
    return memory_.met.contains(key());
  }
  Status probeWrite() override {
    const std::lock_guard lock(memory_.mutex);
    if (sending_ && !behaviour_.writeIsLost) memory_.cells[cell_] = link_.self.rank * 100 + link_.channel;
    return {};
  }
  Result<bool> probeCheck() override {
    const std::lock_guard lock(memory_.mutex);
    return sending_ || memory_.cells[cell_] == link_.peer.rank * 100 + link_.channel;
  }
  transport::ConnView view() const override { return {}; }
  std::string_view description() const override { return "fake"; }

 private:
  FakeMemory::Key key() const {
    return sending_ ? FakeMemory::Key{link_.self.rank, link_.peer.rank, link_.channel}
                    : FakeMemory::Key{link_.peer.rank, link_.self.rank, link_.channel};
  }
  FakeMemory& memory_;
  const Behaviour& behaviour_;
  transport::LinkSpec link_;
  bool sending_;
  int cell_ = -1;
  int tries_ = 0;
};

class FakeTransport final : public transport::Transport {
 public:
  FakeTransport(FakeMemory& memory, Behaviour behaviour) : memory_(memory), behaviour_(behaviour) {}
  std::string_view name() const override { return "FAKE"; }
  Result<bool> reachable(const topo::PeerInfo&, const topo::PeerInfo&) const override { return behaviour_.reaches; }
  bool callsFirst() const override { return behaviour_.calls; }
  Result<std::unique_ptr<transport::Endpoint>> openSend(const transport::LinkSpec& link) override {
    return open(link, true);
  }
  Result<std::unique_ptr<transport::Endpoint>> openRecv(const transport::LinkSpec& link) override {
    return open(link, false);
  }

 private:
  Result<std::unique_ptr<transport::Endpoint>> open(const transport::LinkSpec& link, bool sending) {
    if (behaviour_.openFails) return fail(ncclSystemError, "fake transport cannot open");
    return std::unique_ptr<transport::Endpoint>(std::make_unique<FakeEndpoint>(memory_, behaviour_, link, sending));
  }
  FakeMemory& memory_;
  Behaviour behaviour_;
};

/// N ranks whose transports behave as told, per rank.
struct World {
  explicit World(int n, milliseconds limit = std::chrono::seconds(20))
      : size(n), control(n, limit), peers(static_cast<std::size_t>(n)) {
    for (int r = 0; r < n; ++r) peers[static_cast<std::size_t>(r)].rank = r;
  }
  std::vector<std::unique_ptr<transport::Transport>> transports(std::initializer_list<Behaviour> behaviours) {
    std::vector<std::unique_ptr<transport::Transport>> list;
    for (const Behaviour& b : behaviours) list.push_back(std::make_unique<FakeTransport>(memory, b));
    return list;
  }
  int size;
  test::FakeWorld control;
  std::vector<topo::PeerInfo> peers;
  FakeMemory memory;
};

std::vector<LinkRequest> ringRequests(int rank, int size, int channels) {
  return {{(rank + 1) % size, device::Direction::Send, device::ConnKind::Graph, allChannels(channels)},
          {(rank + size - 1) % size, device::Direction::Recv, device::ConnKind::Graph, allChannels(channels)}};
}

TEST(Connect, RingOfThreeConnectsAllChannels) {
  World world(3);
  test::runRanks(3, [&](int rank) {
    const auto transports = world.transports({{}});
    const auto links =
        connectLinks({world.control.channel(rank), world.peers, transports, {}}, ringRequests(rank, 3, 2));
    ASSERT_TRUE(links.ok());
    ASSERT_EQ(links.value().size(), 2U);
    for (const OpenLink& link : links.value()) EXPECT_EQ(link.endpoints.size(), 2U);
  });
}

TEST(Connect, TwoRanksUseBothDirectionsOfOnePair) {
  World world(2);
  test::runRanks(2, [&](int rank) {
    const auto transports = world.transports({{}});
    EXPECT_TRUE(
        connectLinks({world.control.channel(rank), world.peers, transports, {}}, ringRequests(rank, 2, 3)).ok());
  });
}

TEST(Connect, OnlyTheChannelsAskedForAreJoined) {
  World world(2);
  test::runRanks(2, [&](int rank) {
    const auto transports = world.transports({{}});
    auto requests = ringRequests(rank, 2, 1);
    for (LinkRequest& request : requests) request.channels = 0b1001;
    const auto links = connectLinks({world.control.channel(rank), world.peers, transports, {}}, requests);
    ASSERT_TRUE(links.ok());
    EXPECT_EQ(links.value()[0].endpoints.size(), 2U);
  });
}

TEST(Connect, RanksThatWantDifferentChannelsAreNamed) {
  test::expectLog("Rank 0 and rank 1 want to be joined on different channels: 0x2 and 0x1");
  test::allowLog("want to be joined on different channels");
  World world(2);
  test::runRanks(2, [&](int rank) {
    const auto transports = world.transports({{}});
    auto requests = ringRequests(rank, 2, 1);
    for (LinkRequest& request : requests) request.channels = rank == 0 ? 0b10 : 0b01;
    const auto links = connectLinks({world.control.channel(rank), world.peers, transports, {}}, requests);
    EXPECT_EQ(links.status().code(), ncclInternalError);
  });
}

TEST(Connect, OrderOfRequestsDoesNotMatter) {
  World world(2);
  test::runRanks(2, [&](int rank) {
    const auto transports = world.transports({{}});
    auto requests = ringRequests(rank, 2, 1);
    if (rank == 1) std::swap(requests[0], requests[1]);
    const auto links = connectLinks({world.control.channel(rank), world.peers, transports, {}}, requests);
    ASSERT_TRUE(links.ok());
    for (const OpenLink& link : links.value()) EXPECT_EQ(link.fallback.side, Fallback::Side::None);
  });
}

TEST(Connect, LostProbeMeansTheNextTransport) {
  test::allowLog("does not work");
  World world(2);
  test::runRanks(2, [&](int rank) {
    const auto transports = world.transports({{.writeIsLost = rank == 0}, {}});
    EXPECT_TRUE(
        connectLinks({world.control.channel(rank), world.peers, transports, {}}, ringRequests(rank, 2, 1)).ok());
  });
  EXPECT_NE(test::capturedText().find("does not work"), std::string::npos);
}

TEST(Connect, OneSideThatCannotOpenMovesBothOn) {
  test::allowLog("does not work");
  test::allowLog("fake transport cannot open");
  World world(2);
  test::runRanks(2, [&](int rank) {
    const auto transports = world.transports({{.openFails = rank == 1}, {}});
    const auto links =
        connectLinks({world.control.channel(rank), world.peers, transports, {}}, ringRequests(rank, 2, 1));
    ASSERT_TRUE(links.ok());
    for (const OpenLink& link : links.value()) {
      EXPECT_EQ(link.fallback.side, rank == 1 ? Fallback::Side::Here : Fallback::Side::Peer);
      EXPECT_TRUE(link.fallback.peer.starts_with(rank == 1 ? "rank 0 (host " : "rank 1 (host ")) << link.fallback.peer;
      EXPECT_FALSE(link.fallback.reasons.empty());
    }
  });
}

TEST(Connect, WithoutAnyTransportBothRanksAreNamed) {
  test::allowLog("No transport found for rank");
  World world(2);
  test::runRanks(2, [&](int rank) {
    const auto transports = world.transports({{.reaches = false}});
    const auto links =
        connectLinks({world.control.channel(rank), world.peers, transports, {}}, ringRequests(rank, 2, 1));
    EXPECT_EQ(links.status().code(), ncclSystemError);
  });
}

TEST(Connect, WhatFailsOnOneSideAloneIsThatRanksFailure) {
  test::allowLog("does not work");
  test::allowLog("fake transport cannot open");
  test::allowLog("No transport found for rank");
  test::allowLog("Rank 1 (host ");
  World world(2);
  test::runRanks(2, [&](int rank) {
    const auto transports = world.transports({{.openFails = rank == 1}});
    const auto links =
        connectLinks({world.control.channel(rank), world.peers, transports, {}}, ringRequests(rank, 2, 1));
    EXPECT_EQ(links.status().code(), rank == 1 ? ncclSystemError : ncclRemoteError);
  });
}

TEST(Connect, AReceiverAnswersWhenItsSenderHasCalledAndNobodyTalksBeforeThat) {
  World world(4);
  test::runRanks(4, [&](int rank) {
    const auto transports = world.transports({{.calls = true}});
    for (const int channels : {2, 1}) {
      const auto links =
          connectLinks({world.control.channel(rank), world.peers, transports, {}}, ringRequests(rank, 4, channels));
      ASSERT_TRUE(links.ok());
      EXPECT_EQ(links.value().size(), 2U);
    }
  });
  EXPECT_EQ(world.memory.early, 0);
  EXPECT_EQ(world.memory.met.size(), 8U);
}

TEST(Connect, EndsThatDoNotMeetMoveBothOn) {
  test::allowLog("does not work");
  test::allowLog("fake transport cannot meet");
  World world(2);
  test::runRanks(2, [&](int rank) {
    const auto transports = world.transports({{.calls = true, .meetFails = rank == 1}, {}});
    const auto links =
        connectLinks({world.control.channel(rank), world.peers, transports, {}}, ringRequests(rank, 2, 1));
    ASSERT_TRUE(links.ok());
    for (const OpenLink& link : links.value()) {
      const bool fromOne = (link.request.direction == device::Direction::Send) == (rank == 1);
      EXPECT_EQ(link.transport, fromOne ? 1U : 0U);
    }
  });
}

TEST(Connect, ASenderThatHasNotCalledStillTellsOfItsFailure) {
  test::allowLog("does not work");
  test::allowLog("fake transport cannot open");
  World world(2);
  test::runRanks(2, [&](int rank) {
    const auto transports = world.transports({{.openFails = rank == 1, .calls = true}, {.calls = true}});
    const auto links =
        connectLinks({world.control.channel(rank), world.peers, transports, {}}, ringRequests(rank, 2, 1));
    ASSERT_TRUE(links.ok());
    for (const OpenLink& link : links.value()) EXPECT_EQ(link.transport, 1U);
  });
}

std::vector<KnownLink> knownRing(int rank, int size, std::size_t transport) {
  std::vector<KnownLink> known;
  for (const LinkRequest& request : ringRequests(rank, size, 2)) known.push_back({request, transport});
  return known;
}

TEST(Connect, AKnownLinkIsOpenedAgainByTheTransportThatItHad) {
  World world(3);
  test::runRanks(3, [&](int rank) {
    const auto transports = world.transports({{}, {}});
    const ConnectContext context{world.control.channel(rank), world.peers, transports, {}};
    const auto first = connectLinks(context, ringRequests(rank, 3, 2));
    ASSERT_TRUE(first.ok());
    for (const OpenLink& link : first.value()) EXPECT_EQ(link.transport, 0U);
    const auto again = reconnectLinks(context, knownRing(rank, 3, 1));
    ASSERT_TRUE(again.ok());
    ASSERT_EQ(again.value().size(), 2U);
    for (const OpenLink& link : again.value()) {
      EXPECT_EQ(link.transport, 1U);
      EXPECT_EQ(link.endpoints.size(), 2U);
    }
  });
}

TEST(Connect, AKnownLinkIsNotOpenedByAnotherTransport) {
  test::allowLog("fake transport cannot open");
  test::allowLog("could not be joined with rank");
  World world(2);
  test::runRanks(2, [&](int rank) {
    const auto transports = world.transports({{.openFails = rank == 1}, {}});
    const auto links =
        reconnectLinks({world.control.channel(rank), world.peers, transports, {}}, knownRing(rank, 2, 0));
    EXPECT_EQ(links.status().code(), rank == 1 ? ncclSystemError : ncclRemoteError);
    const std::string text = lastErrorText();
    EXPECT_NE(text.find(rank == 1 ? "Rank 1 (host " : "Rank 0 (host "), std::string::npos) << text;
    EXPECT_NE(text.find(rank == 1 ? "with rank 0 (host " : "with rank 1 (host "), std::string::npos) << text;
    EXPECT_NE(text.find("again by FAKE"), std::string::npos) << text;
  });
}

TEST(Connect, AKnownLinkThatIsOutOfReachNowIsNamed) {
  test::allowLog("could not be joined with rank");
  World world(2);
  test::runRanks(2, [&](int rank) {
    const auto transports = world.transports({{.reaches = false}, {}});
    const auto links =
        reconnectLinks({world.control.channel(rank), world.peers, transports, {}}, knownRing(rank, 2, 0));
    EXPECT_EQ(links.status().code(), ncclSystemError);
  });
}

TEST(Connect, WhoIsWaitedForIsToldUntilItHasCalled) {
  World world(2);
  AwaitedPeers awaited;
  std::atomic<bool> called{false};
  test::runRanks(2, [&](int rank) {
    const auto transports = world.transports({{}});
    ConnectContext context{world.control.channel(rank), world.peers, transports, {}};
    if (rank == 0) context.awaited = &awaited;
    if (rank == 1) {
      const Deadline limit = Deadline::in(std::chrono::seconds(20));
      while (awaited.all().empty() && !limit.expired()) std::this_thread::sleep_for(milliseconds(1));
      const std::vector<LinkRequest> all = awaited.all();
      ASSERT_EQ(all.size(), 2U);
      EXPECT_EQ(all.front().peer, 1);
      EXPECT_EQ(all.front().direction, device::Direction::Send);
      called = true;
    }
    EXPECT_TRUE(connectLinks(context, ringRequests(rank, 2, 1)).ok());
    EXPECT_TRUE(called);
  });
  EXPECT_TRUE(awaited.all().empty());
}

/// Asks for the links of one call, and expects them all to be there in the end.
void expectCall(World& world, int rank, const std::vector<LinkRequest>& requests) {
  const auto transports = world.transports({{.calls = true}});
  const auto links = connectLinks({world.control.channel(rank), world.peers, transports, {}}, requests);
  ASSERT_TRUE(links.ok()) << "rank " << rank;
  EXPECT_EQ(links.value().size(), requests.size());
}

LinkRequest toPeer(int peer) {
  return {peer, device::Direction::Send, device::ConnKind::Mesh, 1};
}
LinkRequest fromPeer(int peer) {
  return {peer, device::Direction::Recv, device::ConnKind::Mesh, 1};
}

constexpr auto kPatience = std::chrono::seconds(3);

TEST(Connect, OnePeerMayAskForOneLinkAfterAnother) {
  World world(2, kPatience);
  test::runRanks(2, [&](int rank) {
    if (rank == 0) return expectCall(world, 0, {toPeer(1), fromPeer(1)});
    expectCall(world, 1, {toPeer(0)});
    expectCall(world, 1, {fromPeer(0)});
  });
}

TEST(Connect, AChainOfCallsEndsWhereOneRankAsksForAllAtOnce) {
  World world(3, kPatience);
  test::runRanks(3, [&](int rank) {
    switch (rank) {
      case 0:
        expectCall(world, 0, {toPeer(1)});
        return expectCall(world, 0, {toPeer(2)});
      case 1:
        return expectCall(world, 1, {toPeer(2), fromPeer(0)});
      case 2:
        expectCall(world, 2, {fromPeer(0)});
        return expectCall(world, 2, {fromPeer(1)});
    }
  });
}

TEST(Connect, ALateLinkDoesNotHoldUpThoseOfAnotherKind) {
  World world(2, kPatience);
  test::runRanks(2, [&](int rank) {
    auto requests = ringRequests(rank, 2, 2);
    if (rank == 0) {
      requests.insert(requests.begin(), toPeer(1));
      return expectCall(world, 0, requests);
    }
    expectCall(world, 1, requests);
    expectCall(world, 1, {fromPeer(0)});
  });
}

TEST(Connect, EveryLinkIsRetriedByItself) {
  test::allowLog("does not work");
  World world(2, kPatience);
  test::runRanks(2, [&](int rank) {
    const auto connect = [&](const std::vector<LinkRequest>& requests) {
      const auto transports = world.transports({{.writeIsLost = true}, {}});
      return connectLinks({world.control.channel(rank), world.peers, transports, {}}, requests).ok();
    };
    if (rank == 0) {
      EXPECT_TRUE(connect({toPeer(1), fromPeer(1)}));
      return;
    }
    EXPECT_TRUE(connect({toPeer(0)}));
    EXPECT_TRUE(connect({fromPeer(0)}));
  });
}

TEST(Connect, APeerThatNeverComesIsNamedInTime) {
  test::expectLog("in vain for rank 1");
  World world(2, milliseconds(50));
  const auto transports = world.transports({{}});
  const auto links = connectLinks({world.control.channel(0), world.peers, transports, {}}, ringRequests(0, 2, 1));
  EXPECT_EQ(links.status().code(), ncclRemoteError);
}

TEST(Connect, ALatePeerIsWaitedForUntilTheAbort) {
  World world(2, milliseconds(10));
  std::thread aborter([&] {
    std::this_thread::sleep_for(milliseconds(60));
    world.control.abortAll(Status(ncclInvalidUsage));
  });
  const auto transports = world.transports({{}});
  ConnectContext context{world.control.channel(0), world.peers, transports, {}};
  context.peersMayBeLate = true;
  EXPECT_EQ(connectLinks(context, ringRequests(0, 2, 1)).status().code(), ncclInvalidUsage);
  aborter.join();
}

TEST(Connect, AbsentPeerIsAnErrorNotAHang) {
  test::allowLog("rank");
  World world(2);
  world.control.abortAll(Status(ncclRemoteError));
  const auto transports = world.transports({{}});
  const auto links = connectLinks({world.control.channel(0), world.peers, transports, {}}, ringRequests(0, 2, 1));
  EXPECT_EQ(links.status().code(), ncclRemoteError);
}

}  // namespace
}  // namespace tutti::comm
