#include "comm/nics.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

using device::ConnKind;

const std::vector<int> kTwo{0, 1};
const std::vector<int> kFour{0, 1, 2, 3};
const std::vector<int> kEight{0, 1, 2, 3, 4, 5, 6, 7};

TEST(Nics, ConnectionsOfAGraphTakeItsNicsChannelByChannel) {
  const OwnNics nics{{2, 3}, {4, 5}, {6}};
  EXPECT_EQ(nicFor(nics, {kEight, 0, 0, ConnKind::Graph, Direction::Recv}), 2);
  EXPECT_EQ(nicFor(nics, {kEight, 0, 0, ConnKind::Graph, Direction::Send}), 4);
  EXPECT_EQ(nicFor(nics, {kEight, 0, 3, ConnKind::Graph, Direction::Send}), 5) << "channels beyond the graph's repeat it";
}

TEST(Nics, MessagesTakeTheNearestInTurns) {
  const OwnNics nics{{2}, {2}, {6, 7}};
  EXPECT_EQ(nicFor(nics, {kEight, 0, 0, ConnKind::Mesh, Direction::Send}), 6);
  EXPECT_EQ(nicFor(nics, {kEight, 0, 1, ConnKind::Mesh, Direction::Send}), 7);
  EXPECT_EQ(nicFor(nics, {kEight, 0, 2, ConnKind::Mesh, Direction::Send}), 6);
}

TEST(Nics, WithoutKnowledgeRanksOfANodeBeginAtDifferentOnes) {
  EXPECT_EQ(nicFor({}, {kTwo, 0, 0, ConnKind::Graph, Direction::Send}), 0);
  EXPECT_EQ(nicFor({}, {kTwo, 1, 0, ConnKind::Graph, Direction::Send}), 1);
  EXPECT_EQ(nicFor({}, {kTwo, 1, 1, ConnKind::Graph, Direction::Send}), 0);
}

TEST(Nics, NumbersStayWithinWhatThereIs) {
  EXPECT_EQ(nicFor({{5}, {5}, {5}}, {kTwo, 0, 0, ConnKind::Graph, Direction::Send}), 1);
  EXPECT_EQ(nicFor({}, {{}, 0, 0, ConnKind::Graph, Direction::Send}), -1);
}

TEST(Nics, PartsOfAFusedDeviceAreNotUsed) {
  const std::vector<int> usable{2, 5};
  const OwnNics nics{{5}, {5}, {2}};
  EXPECT_EQ(nicFor(nics, {usable, 0, 0, ConnKind::Graph, Direction::Send}), 5);
  EXPECT_EQ(nicFor({{0}, {1}, {}}, {usable, 0, 0, ConnKind::Graph, Direction::Recv}), 2);
  EXPECT_EQ(nicFor({{0}, {1}, {}}, {usable, 0, 0, ConnKind::Graph, Direction::Send}), 5);
  EXPECT_EQ(nicFor({}, {usable, 1, 0, ConnKind::Mesh, Direction::Send}), 5);
}

TEST(Nics, AGraphOfOneNodeHasNoneAndTheNearestServe) {
  const OwnNics nics{{-1}, {-1}, {1}};
  EXPECT_EQ(nicFor(nics, {kFour, 0, 0, ConnKind::Graph, Direction::Send}), 1);
}

}  // namespace
}  // namespace tutti
