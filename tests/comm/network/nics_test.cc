#include "comm/network/nics.h"

#include <gtest/gtest.h>

namespace tutti::comm {
namespace {

using device::ConnKind;

const std::vector<int> kTwo{0, 1};
const std::vector<int> kFour{0, 1, 2, 3};
const std::vector<int> kEight{0, 1, 2, 3, 4, 5, 6, 7};

TEST(Nics, ConnectionsOfAGraphTakeItsNicsChannelByChannel) {
  const OwnNics nics{{2, 3}, {4, 5}, {6}};
  EXPECT_EQ(nicFor(nics, {kEight, 0, 0, device::ConnKind::Graph, device::Direction::Recv}), 2);
  EXPECT_EQ(nicFor(nics, {kEight, 0, 0, device::ConnKind::Graph, device::Direction::Send}), 4);
  EXPECT_EQ(nicFor(nics, {kEight, 0, 3, device::ConnKind::Graph, device::Direction::Send}), 5)
      << "channels beyond the graph's repeat it";
}

TEST(Nics, MessagesTakeTheNearestInTurns) {
  const OwnNics nics{{2}, {2}, {6, 7}};
  EXPECT_EQ(nicFor(nics, {kEight, 0, 0, device::ConnKind::Mesh, device::Direction::Send}), 6);
  EXPECT_EQ(nicFor(nics, {kEight, 0, 1, device::ConnKind::Mesh, device::Direction::Send}), 7);
  EXPECT_EQ(nicFor(nics, {kEight, 0, 2, device::ConnKind::Mesh, device::Direction::Send}), 6);
}

TEST(Nics, WithoutKnowledgeRanksOfANodeBeginAtDifferentOnes) {
  EXPECT_EQ(nicFor({}, {kTwo, 0, 0, device::ConnKind::Graph, device::Direction::Send}), 0);
  EXPECT_EQ(nicFor({}, {kTwo, 1, 0, device::ConnKind::Graph, device::Direction::Send}), 1);
  EXPECT_EQ(nicFor({}, {kTwo, 1, 1, device::ConnKind::Graph, device::Direction::Send}), 0);
}

TEST(Nics, NumbersStayWithinWhatThereIs) {
  EXPECT_EQ(nicFor({{5}, {5}, {5}}, {kTwo, 0, 0, device::ConnKind::Graph, device::Direction::Send}), 1);
  EXPECT_EQ(nicFor({}, {{}, 0, 0, device::ConnKind::Graph, device::Direction::Send}), -1);
}

TEST(Nics, PartsOfAFusedDeviceAreNotUsed) {
  const std::vector<int> usable{2, 5};
  const OwnNics nics{{5}, {5}, {2}};
  EXPECT_EQ(nicFor(nics, {usable, 0, 0, device::ConnKind::Graph, device::Direction::Send}), 5);
  EXPECT_EQ(nicFor({{0}, {1}, {}}, {usable, 0, 0, device::ConnKind::Graph, device::Direction::Recv}), 2);
  EXPECT_EQ(nicFor({{0}, {1}, {}}, {usable, 0, 0, device::ConnKind::Graph, device::Direction::Send}), 5);
  EXPECT_EQ(nicFor({}, {usable, 1, 0, device::ConnKind::Mesh, device::Direction::Send}), 5);
}

TEST(Nics, AGraphOfOneNodeHasNoneAndTheNearestServe) {
  const OwnNics nics{{-1}, {-1}, {1}};
  EXPECT_EQ(nicFor(nics, {kFour, 0, 0, device::ConnKind::Graph, device::Direction::Send}), 1);
}

/// A GPU near NIC 0 that reaches NICs 1 and 2 through the ranks 1 and 2 of its node, and NIC 3 only by itself.
OwnNics besideRelays() {
  OwnNics nics{{0}, {1}, {0}};
  nics.ways = {{0, topo::PathType::Pix, -1, 0},
               {1, topo::PathType::Pxn, 1, 1},
               {2, topo::PathType::Pxn, 2, 2},
               {3, topo::PathType::Sys, -1, 3}};
  return nics;
}

Route routeOfMessage(int rail, int level) {
  return routeFor(besideRelays(),
                  {{kFour, 0, 0, device::ConnKind::Mesh, device::Direction::Send}, {rail, rail}, level});
}

TEST(Routes, FollowTheReceiversRail) {
  EXPECT_EQ(routeOfMessage(2, 2).device, 2);
  EXPECT_EQ(routeOfMessage(2, 2).relay, 2);
  EXPECT_EQ(routeOfMessage(0, 2).device, 0);
  EXPECT_EQ(routeOfMessage(0, 2).relay, -1) << "our own";
  EXPECT_EQ(routeOfMessage(3, 2).device, 0) << "nobody relays to that one, and we are far";
  EXPECT_EQ(routeOfMessage(9, 2).device, 0) << "a rail that our host has not";
  EXPECT_EQ(routeOfMessage(-1, 2).device, 0);
}

TEST(Routes, GoAsFarAsTheLevel) {
  for (const int level : {0, 1}) {
    EXPECT_EQ(routeOfMessage(2, level).device, 0);
    EXPECT_EQ(routeOfMessage(2, level).relay, -1);
  }
  OwnNics far{{}, {}, {1}};
  far.ways = besideRelays().ways;
  const NicQuestion question{kFour, 0, 0, device::ConnKind::Mesh, device::Direction::Send};
  EXPECT_EQ(routeFor(far, {question, {}, 1}).relay, 1);
  EXPECT_EQ(routeFor(far, {question, {}, 0}).relay, -1);
}

TEST(Routes, OfGraphsLeadThroughRelaysWhateverTheLevel) {
  const NicQuestion question{kFour, 0, 0, device::ConnKind::Graph, device::Direction::Send};
  const Route route = routeFor(besideRelays(), {question, {2, 2}, 0});
  EXPECT_EQ(route.device, 1);
  EXPECT_EQ(route.relay, 1);
}

TEST(Routes, WithoutKnowledgeAreDirect) {
  const Route route = routeFor({}, {{kTwo, 1, 0, device::ConnKind::Mesh, device::Direction::Send}, {0, 0}, 2});
  EXPECT_EQ(route.device, 1);
  EXPECT_EQ(route.nic, -1);
  EXPECT_EQ(route.relay, -1);
}

}  // namespace
}  // namespace tutti::comm
