#include "comm/nics.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

using device::ConnKind;

TEST(Nics, ConnectionsOfAGraphTakeItsNicsChannelByChannel) {
  const OwnNics nics{{2, 3}, {4, 5}, {6}};
  EXPECT_EQ(nicFor(nics, {8, 0, 0, ConnKind::Graph, Direction::Recv}), 2);
  EXPECT_EQ(nicFor(nics, {8, 0, 0, ConnKind::Graph, Direction::Send}), 4);
  EXPECT_EQ(nicFor(nics, {8, 0, 3, ConnKind::Graph, Direction::Send}), 5) << "channels beyond the graph's repeat it";
}

TEST(Nics, MessagesTakeTheNearestInTurns) {
  const OwnNics nics{{2}, {2}, {6, 7}};
  EXPECT_EQ(nicFor(nics, {8, 0, 0, ConnKind::Mesh, Direction::Send}), 6);
  EXPECT_EQ(nicFor(nics, {8, 0, 1, ConnKind::Mesh, Direction::Send}), 7);
  EXPECT_EQ(nicFor(nics, {8, 0, 2, ConnKind::Mesh, Direction::Send}), 6);
}

TEST(Nics, WithoutKnowledgeRanksOfANodeBeginAtDifferentOnes) {
  EXPECT_EQ(nicFor({}, {2, 0, 0, ConnKind::Graph, Direction::Send}), 0);
  EXPECT_EQ(nicFor({}, {2, 1, 0, ConnKind::Graph, Direction::Send}), 1);
  EXPECT_EQ(nicFor({}, {2, 1, 1, ConnKind::Graph, Direction::Send}), 0);
}

TEST(Nics, NumbersStayWithinWhatThereIs) {
  EXPECT_EQ(nicFor({{5}, {5}, {5}}, {2, 0, 0, ConnKind::Graph, Direction::Send}), 1);
  EXPECT_EQ(nicFor({}, {0, 0, 0, ConnKind::Graph, Direction::Send}), -1);
}

TEST(Nics, AGraphOfOneNodeHasNoneAndTheNearestServe) {
  const OwnNics nics{{-1}, {-1}, {1}};
  EXPECT_EQ(nicFor(nics, {4, 0, 0, ConnKind::Graph, Direction::Send}), 1);
}

}  // namespace
}  // namespace tutti
