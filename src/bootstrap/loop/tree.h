// Who is connected to whom: the tree over all ranks that carries the collectives and watches over its neighbours.
#pragma once

#include <set>
#include <vector>

namespace tutti::bootstrap {

/// Children per rank, and per segment leader once more. 8: 1,000 ranks are 4 levels deep, and a parent still serves its
/// children in well under a millisecond.
inline constexpr int kTreeFanOut = 8;

/// A communicator has at most so many ranks. More are taken for garbage, before any memory is taken for them.
inline constexpr int kMaxRanks = 1 << 20;

/// A run of ranks [begin, end).
struct RankRange {
  int begin = 0;
  int end = 0;
  int count() const { return end - begin; }
  bool contains(int rank) const { return rank >= begin && rank < end; }
  friend bool operator==(const RankRange&, const RankRange&) = default;
};

/// Segment `index` of `nRanks` ranks cut into `nRoots` contiguous parts, the first nRanks % nRoots one rank larger.
RankRange rootSegment(int nRanks, int nRoots, int index);
/// The segment that `rank` belongs to.
int rootOf(int nRanks, int nRoots, int rank);

/// One rank's place. The ranks below it, itself included, are one contiguous range, so gathered blocks travel without
/// being sorted. Within a segment the tree is built from that segment's ranks alone (their root knows them all); the
/// first ranks of the segments, the leaders, form a tree of the same kind among themselves.
struct TreePlace {
  int parent = -1;                  ///< -1 at rank 0
  RankRange subtree;                ///< this rank and all below
  std::vector<RankRange> children;  ///< subtree of each child; the child is its first rank
  int depth = 0;                    ///< hops to rank 0
};

/// Pure. 0 <= rank < nRanks, 1 <= nRoots <= nRanks. O(fan-out * depth).
TreePlace treePlace(int nRanks, int nRoots, int rank);

/// Who takes the place of a rank's parent where some have left: the nearest of those above it in the tree that are
/// there, or else the lowest rank that is. Always a lower one, so that no circle comes about however much ranks know of
/// each other; -1 for the lowest of all. Pure.
int livingParent(int nRanks, int nRoots, int rank, const std::set<int>& left);

/// Segments whose leaders have the leader of segment `index` as parent.
std::vector<int> childSegments(int nRoots, int index);

}  // namespace tutti::bootstrap
