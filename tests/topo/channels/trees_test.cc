#include "topo/channels/trees.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>

#include "topo/machine/peer_info.h"
#include "topo/machine/rank_layout.h"

namespace tutti::topo {
namespace {

/// One tree over things 0..size-1, as every one of them sees it.
template <int kChildren>
using TreeOf = std::vector<TreePlace<kChildren>>;

int ceilLog2(int n) {
  return std::bit_width(static_cast<unsigned>(n - 1));
}

/// Depth below the root of every member; "" in `wrong` if it is one tree in which both ends of every edge agree.
template <int kChildren>
int depthOf(const TreeOf<kChildren>& tree, std::string& wrong) {
  const int size = static_cast<int>(tree.size());
  int roots = 0;
  int edges = 0;
  int deepest = 0;
  for (int at = 0; at < size; ++at) {
    const TreePlace<kChildren>& place = tree[static_cast<std::size_t>(at)];
    if (place.up < 0) ++roots;
    bool ended = false;
    for (const int child : place.down) {
      ended = ended || child < 0;
      if (child < 0) continue;
      if (ended) wrong = "a child after a gap at " + std::to_string(at);
      if (child >= size || tree[static_cast<std::size_t>(child)].up != at) {
        wrong = std::to_string(child) + " does not know its parent " + std::to_string(at);
        return -1;
      }
      ++edges;
    }
    int depth = 0;
    for (int up = place.up; up >= 0 && depth <= size; ++depth) up = tree[static_cast<std::size_t>(up)].up;
    if (depth > size) wrong = "a circle above " + std::to_string(at);
    deepest = std::max(deepest, depth);
  }
  if (roots != 1) wrong = std::to_string(roots) + " roots";
  if (edges != size - 1) wrong = std::to_string(edges) + " edges";
  return deepest;
}

using MakePlace = NodePlace (*)(int, int);

TreeOf<2> nodeTree(MakePlace make, int nodes) {
  TreeOf<2> tree;
  for (int n = 0; n < nodes; ++n) tree.push_back(make(n, nodes));
  return tree;
}

void expectGoodNodeTrees(int nodes) {
  const TreeOf<2> first = nodeTree(firstNodeTree, nodes);
  const TreeOf<2> second = nodeTree(secondNodeTree, nodes);
  for (const TreeOf<2>* tree : {&first, &second}) {
    std::string wrong;
    EXPECT_LE(depthOf(*tree, wrong), ceilLog2(nodes)) << nodes;
    EXPECT_EQ(wrong, "") << nodes << (tree == &first ? ", first" : ", second");
  }
  int busy = 0;
  for (std::size_t n = 0; n < first.size(); ++n) {
    if (first[n].down[0] >= 0 && second[n].down[0] >= 0) ++busy;
  }
  EXPECT_EQ(busy, nodes > 1 ? nodes % 2 : 0) << nodes << ": nodes that are a leaf in neither";
}

TEST(NodeTrees, SpanAllNodesAndShareTheWorkUpTo300Nodes) {
  for (int nodes = 1; nodes <= 300; ++nodes) expectGoodNodeTrees(nodes);
}

TEST(NodeTrees, HoldForThousandsOfNodes) {
  for (const int nodes : {1000, 1023, 1024, 1025, 4095, 4097, 9999, 16383, 16384}) expectGoodNodeTrees(nodes);
}

TEST(NodeTrees, SixNodesLookLikeThePicture) {
  EXPECT_EQ(firstNodeTree(0, 6), (NodePlace{-1, {4, -1}}));
  EXPECT_EQ(firstNodeTree(4, 6), (NodePlace{0, {2, 5}}));
  EXPECT_EQ(firstNodeTree(2, 6), (NodePlace{4, {1, 3}}));
  EXPECT_EQ(firstNodeTree(5, 6), (NodePlace{4, {-1, -1}}));
  EXPECT_EQ(secondNodeTree(5, 6), (NodePlace{-1, {1, -1}})) << "mirrored";
  EXPECT_EQ(secondNodeTree(1, 5), (NodePlace{-1, {0, -1}})) << "moved on by one";
}

/// Rank r on host r % nodes: ranks of one node are not neighbours in number.
RankLayout layoutOf(int nodes, int perNode) {
  std::vector<PeerInfo> peers(static_cast<std::size_t>(nodes) * static_cast<std::size_t>(perNode));
  for (std::size_t r = 0; r < peers.size(); ++r) {
    peers[r].rank = static_cast<int>(r);
    peers[r].hostHash = r % static_cast<std::size_t>(nodes) + 1;
  }
  return {0, peers};
}

void expectGoodRankTrees(int nodes, int perNode) {
  const RankLayout layout = layoutOf(nodes, perNode);
  TreeOf<3> first;
  TreeOf<3> second;
  for (int r = 0; r < layout.nRanks(); ++r) {
    const RankTrees trees = treesOf(layout, r);
    first.push_back(trees.first);
    second.push_back(trees.second);
  }
  for (const TreeOf<3>* tree : {&first, &second}) {
    std::string wrong;
    EXPECT_LE(depthOf(*tree, wrong), ceilLog2(nodes) + perNode - 1) << nodes << " nodes of " << perNode;
    EXPECT_EQ(wrong, "") << nodes << " nodes of " << perNode;
  }
}

TEST(RankTrees, SpanAllRanksOf64NodesOf8) {
  for (int nodes = 1; nodes <= 64; ++nodes) {
    for (int perNode = 1; perNode <= 8; ++perNode) expectGoodRankTrees(nodes, perNode);
  }
}

TEST(RankTrees, HoldForNodesOfDifferentSizes) {
  std::vector<PeerInfo> peers(11);
  const std::array<std::uint64_t, 11> hosts{1, 2, 2, 3, 3, 3, 4, 5, 5, 5, 5};
  for (std::size_t r = 0; r < peers.size(); ++r) peers[r].hostHash = hosts[r];
  const RankLayout layout(0, peers);
  TreeOf<3> second;
  for (int r = 0; r < layout.nRanks(); ++r) second.push_back(treesOf(layout, r).second);
  std::string wrong;
  EXPECT_LE(depthOf(second, wrong), 3 + 3);
  EXPECT_EQ(wrong, "");
}

TEST(RankTrees, OneNodeIsAChain) {
  const RankLayout layout = layoutOf(1, 4);
  const RankTrees trees = treesOf(layout, 2);
  EXPECT_EQ(trees.first, (RankPlace{1, {3, -1, -1}}));
  EXPECT_EQ(trees.second, trees.first);
  EXPECT_EQ(trees.neighbours(), (std::vector<int>{1, 3}));
  EXPECT_EQ(treesOf(layout, 0).neighbours(), (std::vector<int>{1}));
}

TEST(RankTrees, ALoneRankHasNoNeighbours) {
  EXPECT_TRUE(treesOf(layoutOf(1, 1), 0).neighbours().empty());
}

TEST(RankTrees, NeighboursAgreeOnBeingNeighbours) {
  const RankLayout layout = layoutOf(7, 3);
  for (int r = 0; r < layout.nRanks(); ++r) {
    for (const int other : treesOf(layout, r).neighbours()) {
      const std::vector<int> back = treesOf(layout, other).neighbours();
      EXPECT_TRUE(std::binary_search(back.begin(), back.end(), r)) << r << " and " << other;
    }
  }
}

TEST(RankTrees, HalfOfTheChannelsCarryTheSecondTree) {
  const RankTrees trees = treesOf(layoutOf(4, 1), 0);
  ASSERT_FALSE(trees.first == trees.second);
  EXPECT_EQ(trees.ofChannel(0, 1), trees.first);
  EXPECT_EQ(trees.ofChannel(0, 2), trees.first);
  EXPECT_EQ(trees.ofChannel(1, 2), trees.second);
  EXPECT_EQ(trees.ofChannel(3, 8), trees.first);
  EXPECT_EQ(trees.ofChannel(4, 8), trees.second);
}

TEST(PatNeighbours, ArePowersOfTwoAwayAndMutual) {
  EXPECT_EQ(patNeighbours(0, 8), (std::vector<int>{1, 2, 4, 6, 7}));
  EXPECT_TRUE(patNeighbours(0, 1).empty());
  for (const int nRanks : {2, 3, 5, 8, 13}) {
    for (int r = 0; r < nRanks; ++r) {
      for (const int other : patNeighbours(r, nRanks)) {
        EXPECT_NE(other, r);
        const std::vector<int> back = patNeighbours(other, nRanks);
        EXPECT_TRUE(std::binary_search(back.begin(), back.end(), r)) << nRanks << ": " << r << " and " << other;
      }
    }
  }
}

}  // namespace
}  // namespace tutti::topo
