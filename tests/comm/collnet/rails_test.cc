#include "comm/collnet/rails.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

#include "comm/collnet/lanes.h"
#include "comm/collnet/node_heads.h"
#include "comm/collnet/table.h"
#include "device/collnet_view.h"
#include "topo/machine/peer_info.h"
#include "topo/machine/rank_layout.h"

namespace tutti::comm {
namespace {

using device::ConnKind;
using device::Direction;

/// Hosts with so many ranks each, numbered one host after the other.
std::vector<topo::PeerInfo> peersOf(std::vector<int> ranksOfHost) {
  std::vector<topo::PeerInfo> peers;
  for (std::size_t host = 0; host < ranksOfHost.size(); ++host) {
    for (int i = 0; i < ranksOfHost[host]; ++i) {
      topo::PeerInfo& peer = peers.emplace_back();
      peer.rank = static_cast<int>(peers.size()) - 1;
      peer.hostHash = host + 1;
      peer.hostName = {'h', static_cast<char>('a' + host)};
    }
  }
  return peers;
}

/// What all ranks say where each host has heads and chains by rank number over so many NICs.
std::vector<RailReport> reportsOf(const std::vector<topo::PeerInfo>& peers, std::vector<int> devices) {
  std::vector<RailReport> reports;
  for (const topo::PeerInfo& peer : peers) {
    const topo::RankLayout layout(peer.rank, peers);
    const NodeHeads node = headsByRank(layout.localRanks(), devices);
    reports.push_back(railReport(node, layout.localRank(), true));
  }
  return reports;
}

Rails railsOf(const std::vector<topo::PeerInfo>& peers, const std::vector<RailReport>& reports) {
  return railsFrom(topo::RankLayout(0, peers), peers, reports);
}

TEST(HeadsByRank, AreAsManyAsRanksAndDevicesAllow) {
  const std::vector<int> two{3, 5};
  const NodeHeads node = headsByRank(4, two);
  EXPECT_EQ(node.heads, (std::vector<NodeHead>{{0, 3}, {1, 5}}));
  EXPECT_EQ(node.chains, (std::vector<std::vector<int>>{{0, 1, 2, 3}, {1, 2, 3, 0}}));
  EXPECT_EQ(headsByRank(1, two).heads.size(), 1U);
  EXPECT_TRUE(headsByRank(4, {}).heads.empty());
}

TEST(Rails, JoinTheHeadsOfAllHosts) {
  const auto peers = peersOf({2, 2, 2});
  const Rails rails = railsOf(peers, reportsOf(peers, {0, 1}));
  EXPECT_TRUE(rails.direct() && rails.chain());
  EXPECT_EQ(rails.heads, 2);
  EXPECT_EQ(rails.ranks, (std::vector<int>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(rails.chains, 2);
  EXPECT_TRUE(rails.everyRankHeads());
  EXPECT_EQ(rails.railOf(3), 1);
}

TEST(Rails, AreAsManyAsTheHostWithTheFewestHeadsHas) {
  const auto peers = peersOf({3, 1});
  const Rails rails = railsOf(peers, reportsOf(peers, {0, 1}));
  EXPECT_EQ(rails.heads, 1);
  EXPECT_EQ(rails.ranks, (std::vector<int>{0, 3}));
  EXPECT_EQ(rails.railOf(1), -1) << "the second host has no head on its rail";
  EXPECT_EQ(rails.mostLocals, 3);
  EXPECT_FALSE(rails.everyRankHeads());
  EXPECT_EQ(rails.chains, 1) << "a chain whose head is on no rail";
}

/// Ranks of one host may be shown different devices.
TEST(Rails, AreThoseThatAllRanksOfAHostKnowOf) {
  const auto peers = peersOf({2, 2});
  std::vector<RailReport> reports = reportsOf(peers, {0, 1});
  reports[1] = reportsOf(peers, {0})[1];
  const Rails rails = railsOf(peers, reports);
  EXPECT_EQ(rails.heads, 1);
  EXPECT_EQ(rails.ranks, (std::vector<int>{0, 2}));
  EXPECT_EQ(rails.chains, 1);
  EXPECT_FALSE(rails.everyRankHeads());
  reports[0].rail = -1;
  EXPECT_EQ(railsOf(peers, reports).heads, 0) << "nobody heads the first rail";
  EXPECT_FALSE(railsOf(peers, reports).direct() || railsOf(peers, reports).chain());
}

TEST(Rails, ThereAreNoneWhereAHostHasNoHead) {
  const auto peers = peersOf({1, 1});
  std::vector<RailReport> reports = reportsOf(peers, {0});
  reports[1] = railReport(NodeHeads{}, 0, true);
  const Rails rails = railsOf(peers, reports);
  EXPECT_FALSE(rails.direct() || rails.chain());
  EXPECT_NE(rails.whyNoDirect.find("host hb"), std::string::npos) << rails.whyNoDirect;
}

TEST(Rails, ThereAreNoneForMoreRanksOfAHostThanAreServed) {
  const auto peers = peersOf({9, 1});
  const Rails rails = railsOf(peers, reportsOf(peers, {0}));
  EXPECT_FALSE(rails.direct() || rails.chain());
  EXPECT_NE(rails.whyNoChain.find("9 ranks"), std::string::npos) << rails.whyNoChain;
}

TEST(Rails, ThereAreNoneWhereARankDoesNotReachItsHostsMemory) {
  const auto peers = peersOf({2, 2});
  std::vector<RailReport> reports = reportsOf(peers, {0});
  reports[3].reachesLocals = 0;
  const Rails rails = railsOf(peers, reports);
  EXPECT_FALSE(rails.direct() || rails.chain());
  EXPECT_NE(rails.whyNoDirect.find("rank 3"), std::string::npos) << rails.whyNoDirect;
}

TEST(Rails, OnlyChainsWithoutNvSwitches) {
  const auto peers = peersOf({2, 2});
  std::vector<RailReport> reports = reportsOf(peers, {0});
  for (RailReport& report : reports) report.switched = 0;
  const Rails rails = railsOf(peers, reports);
  EXPECT_FALSE(rails.direct());
  EXPECT_TRUE(rails.chain());
}

TEST(Rails, AChainCountsOnlyWhereItsHeadIsOnOneRailEverywhere) {
  const auto peers = peersOf({2, 2});
  std::vector<RailReport> reports = reportsOf(peers, {0, 1});
  for (const std::size_t rank : {2U, 3U}) std::swap(reports[rank].chainRails[0], reports[rank].chainRails[1]);
  const Rails rails = railsOf(peers, reports);
  EXPECT_TRUE(rails.direct());
  EXPECT_FALSE(rails.chain());
}

CollNetLanes lanesFor(int rank, const std::vector<topo::PeerInfo>& peers, const std::vector<int>& devices,
                      int nChannels) {
  const topo::RankLayout layout(rank, peers);
  return lanesOf(layout, headsByRank(layout.localRanks(), devices), railsOf(peers, reportsOf(peers, devices)),
                 nChannels);
}

TEST(CollNetLanes, AHeadHasAllChannelsForDirectAndItsOwnForChains) {
  const CollNetLanes lanes = lanesFor(3, peersOf({2, 2}), {0, 1}, 3);
  EXPECT_EQ(lanes.head, 1);
  EXPECT_EQ(lanes.directLanes, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(lanes.chainLanes, (std::vector<int>{1}));
}

TEST(CollNetLanes, OfOneHeadLieInARow) {
  // Channels 0 and 2 begin at the first head, 1 at the second.
  for (const int rank : {0, 1, 2, 3}) {
    const CollNetLanes lanes = lanesFor(rank, peersOf({2, 2}), {0, 1}, 3);
    EXPECT_EQ(lanes.chainPlaces[0].position, 0);
    EXPECT_EQ(lanes.chainPlaces[2].position, 1);
    EXPECT_EQ(lanes.chainPlaces[1].position, 2);
  }
}

TEST(CollNetLanes, ChainsLeadFromTheHeadThroughAllRanksOfTheHost) {
  const auto peers = peersOf({1, 3});
  EXPECT_EQ(lanesFor(1, peers, {0}, 1).chainPlaces[0].up, -1);
  EXPECT_EQ(lanesFor(1, peers, {0}, 1).chainPlaces[0].down, 2);
  EXPECT_EQ(lanesFor(2, peers, {0}, 1).chainPlaces[0].up, 1);
  EXPECT_EQ(lanesFor(2, peers, {0}, 1).chainPlaces[0].down, 3);
  EXPECT_EQ(lanesFor(3, peers, {0}, 1).chainPlaces[0].down, -1);
  EXPECT_TRUE(lanesFor(0, peers, {0}, 1).chainLinks.empty());
}

TEST(CollNetLanes, ContributionsAndResultsTakeConnectionsOfTheirOwn) {
  const auto peers = peersOf({2, 2});
  const ChannelMask all = allChannels(2);
  EXPECT_EQ(lanesFor(1, peers, {0}, 2).directLinks,
            (std::vector<LinkRequest>{{0, Direction::Send, ConnKind::Graph, all},
                                      {0, Direction::Recv, ConnKind::Mesh, all}}));
  EXPECT_EQ(lanesFor(0, peers, {0}, 2).directLinks,
            (std::vector<LinkRequest>{{1, Direction::Recv, ConnKind::Graph, all},
                                      {1, Direction::Send, ConnKind::Mesh, all}}));
}

/// What one rank asks of another, the other asks of it.
TEST(CollNetLanes, BothEndsOfALinkAskForIt) {
  const auto peers = peersOf({4, 3});
  std::vector<CollNetLanes> lanes;
  for (int rank = 0; rank < 7; ++rank) lanes.push_back(lanesFor(rank, peers, {0, 1}, 4));
  for (int rank = 0; rank < 7; ++rank) {
    for (auto links : {&CollNetLanes::directLinks, &CollNetLanes::chainLinks}) {
      for (const LinkRequest& link : lanes[static_cast<std::size_t>(rank)].*links) {
        const Direction back = link.direction == Direction::Send ? Direction::Recv : Direction::Send;
        const auto& theirs = lanes[static_cast<std::size_t>(link.peer)].*links;
        const LinkRequest mirrored{rank, back, link.kind, link.channels};
        EXPECT_EQ(std::count(theirs.begin(), theirs.end(), mirrored), 1) << rank << " and " << link.peer;
      }
    }
  }
}

TEST(CollNetTable, PointsIntoItself) {
  const auto peers = peersOf({2, 2});
  const std::vector<int> devices{0, 1};
  const topo::RankLayout layout(3, peers);
  const Rails rails = railsOf(peers, reportsOf(peers, devices));
  const CollNetLanes lanes = lanesFor(3, peers, devices, 2);
  std::vector<device::CollNetConn> direct(2);
  std::vector<device::CollNetConn> chain(1);
  direct[1].lane = 1;
  chain[0].slotBytes = 77;
  constexpr std::uint64_t kAddress = 1 << 20;
  const std::vector<std::byte> image = collNetTable(layout, rails, lanes, direct, chain, kAddress);
  ASSERT_EQ(image.size(), collNetTableBytes(rails, 2));
  device::CollNetView view;
  std::memcpy(&view, image.data(), sizeof(view));
  EXPECT_EQ(view.nChannels, 2);
  EXPECT_EQ(view.nNodes, 2);
  EXPECT_EQ(view.node, 1);
  EXPECT_EQ(view.nHeads, 2);
  EXPECT_EQ(view.head, 1);
  EXPECT_EQ(view.local, 1);
  EXPECT_EQ(view.heads[0], 2);
  EXPECT_EQ(view.locals[1], 3);
  const auto at = [&](const auto* pointer, std::size_t index) {
    std::remove_cvref_t<decltype(*pointer)> value;
    std::memcpy(&value, image.data() + (reinterpret_cast<std::uint64_t>(pointer + index) - kAddress), sizeof(value));
    return value;
  };
  EXPECT_EQ(at(view.direct, 1).lane, 1);
  EXPECT_EQ(at(view.chain, 1).slotBytes, 77U) << "the lane of channel 1";
  EXPECT_EQ(at(view.chain, 0).words, nullptr) << "this rank does not head the chain of channel 0";
  EXPECT_EQ(at(view.chainPlaces, 0).up, 2);
  EXPECT_EQ(at(view.railRanks, 3), 3);
}

TEST(CollNetTable, OfARankThatHeadsNothingHasNoLanes) {
  const auto peers = peersOf({2, 2});
  const topo::RankLayout layout(1, peers);
  const Rails rails = railsOf(peers, reportsOf(peers, {0}));
  const std::vector<std::byte> image = collNetTable(layout, rails, lanesFor(1, peers, {0}, 1), {}, {}, 4096);
  device::CollNetView view;
  std::memcpy(&view, image.data(), sizeof(view));
  EXPECT_EQ(view.head, -1);
  EXPECT_EQ(view.direct, nullptr);
  EXPECT_NE(view.chainPlaces, nullptr);
}

}  // namespace
}  // namespace tutti::comm
