#include "bootstrap/loop/tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace tutti::bootstrap {
namespace {

class EveryTree : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(EveryTree, ParentsAndChildrenAgreeAndSubtreesCoverAllOnce) {
  const auto [nRanks, nRoots] = GetParam();
  for (int rank = 0; rank < nRanks; ++rank) {
    const TreePlace place = treePlace(nRanks, nRoots, rank);
    EXPECT_EQ(place.subtree.begin, rank);
    int next = rank + 1;
    for (const RankRange& child : place.children) {
      EXPECT_EQ(child.begin, next) << "gap below rank " << rank;
      EXPECT_EQ(treePlace(nRanks, nRoots, child.begin).parent, rank);
      EXPECT_EQ(treePlace(nRanks, nRoots, child.begin).subtree, child);
      EXPECT_EQ(treePlace(nRanks, nRoots, child.begin).depth, place.depth + 1);
      next = child.end;
    }
    EXPECT_EQ(next, place.subtree.end);
    EXPECT_LE(place.children.size(), 2U * kTreeFanOut);
    EXPECT_EQ(place.parent < 0, rank == 0);
  }
  EXPECT_EQ(treePlace(nRanks, nRoots, 0).subtree, (RankRange{0, nRanks}));
}
INSTANTIATE_TEST_SUITE_P(Sizes, EveryTree,
                         testing::Values(std::pair{1, 1}, std::pair{2, 1}, std::pair{2, 2}, std::pair{9, 1},
                                         std::pair{10, 3}, std::pair{64, 1}, std::pair{100, 7}, std::pair{100, 100},
                                         std::pair{1000, 1}, std::pair{1000, 13}));

TEST(Tree, ThousandRanksAreFourLevelsDeep) {
  int deepest = 0;
  for (int rank = 0; rank < 1000; ++rank) deepest = std::max(deepest, treePlace(1000, 1, rank).depth);
  EXPECT_LE(deepest, 4);
}

TEST(Tree, FirstSegmentsAreOneRankLarger) {
  EXPECT_EQ(rootSegment(10, 3, 0), (RankRange{0, 4}));
  EXPECT_EQ(rootSegment(10, 3, 1), (RankRange{4, 7}));
  EXPECT_EQ(rootSegment(10, 3, 2), (RankRange{7, 10}));
  for (int rank = 0; rank < 10; ++rank) EXPECT_TRUE(rootSegment(10, 3, rootOf(10, 3, rank)).contains(rank));
}

TEST(Tree, MembersOfASegmentHaveTheirParentInIt) {
  for (int rank = 0; rank < 100; ++rank) {
    const RankRange segment = rootSegment(100, 7, rootOf(100, 7, rank));
    if (rank != segment.begin) {
      EXPECT_TRUE(segment.contains(treePlace(100, 7, rank).parent));
    }
  }
}

}  // namespace
}  // namespace tutti::bootstrap
