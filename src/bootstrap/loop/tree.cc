#include "bootstrap/loop/tree.h"

#include <algorithm>

namespace tutti::bootstrap {
namespace {

/// Cuts what is below `node.begin` into at most kTreeFanOut nearly equal runs.
std::vector<RankRange> childRanges(RankRange node) {
  const int below = node.count() - 1;
  const int parts = std::min(below, kTreeFanOut);
  std::vector<RankRange> ranges;
  ranges.reserve(static_cast<std::size_t>(parts));
  int begin = node.begin + 1;
  for (int i = 0; i < parts; ++i) {
    const int size = below / parts + (i < below % parts ? 1 : 0);
    ranges.push_back({begin, begin + size});
    begin += size;
  }
  return ranges;
}

struct Found {
  RankRange subtree;
  int parent = -1;
  int depth = 0;
};

/// Walks down from the top of `whole` to the node that starts at `member`.
Found findIn(RankRange whole, int member) {
  Found at{whole, -1, 0};
  while (at.subtree.begin != member) {
    for (const RankRange& child : childRanges(at.subtree)) {
      if (!child.contains(member)) continue;
      at = {child, at.subtree.begin, at.depth + 1};
      break;
    }
  }
  return at;
}

}  // namespace

RankRange rootSegment(int nRanks, int nRoots, int index) {
  const int size = nRanks / nRoots;
  const int larger = nRanks % nRoots;
  const int begin = index * size + std::min(index, larger);
  return {begin, begin + size + (index < larger ? 1 : 0)};
}

int rootOf(int nRanks, int nRoots, int rank) {
  const int size = nRanks / nRoots;
  const int larger = nRanks % nRoots;
  const int inLarger = larger * (size + 1);
  return rank < inLarger ? rank / (size + 1) : larger + (rank - inLarger) / size;
}

std::vector<int> childSegments(int nRoots, int index) {
  std::vector<int> segments;
  for (const RankRange& child : childRanges(findIn({0, nRoots}, index).subtree)) segments.push_back(child.begin);
  return segments;
}

TreePlace treePlace(int nRanks, int nRoots, int rank) {
  const int segment = rootOf(nRanks, nRoots, rank);
  const RankRange ranks = rootSegment(nRanks, nRoots, segment);
  const Found local = findIn(ranks, rank);
  const Found leader = findIn({0, nRoots}, segment);

  TreePlace place{local.parent, local.subtree, childRanges(local.subtree), local.depth + leader.depth};
  if (rank != ranks.begin) return place;
  const auto spread = [&](RankRange segments) {
    return RankRange{rootSegment(nRanks, nRoots, segments.begin).begin,
                     rootSegment(nRanks, nRoots, segments.end - 1).end};
  };
  place.parent = leader.parent < 0 ? -1 : rootSegment(nRanks, nRoots, leader.parent).begin;
  place.subtree = spread(leader.subtree);
  for (const RankRange& child : childRanges(leader.subtree)) place.children.push_back(spread(child));
  return place;
}

int livingParent(int nRanks, int nRoots, int rank, const std::set<int>& left) {
  int above = treePlace(nRanks, nRoots, rank).parent;
  while (above >= 0 && left.contains(above)) above = treePlace(nRanks, nRoots, above).parent;
  if (above >= 0) return above;
  for (above = 0; above < rank; ++above) {
    if (!left.contains(above)) return above;
  }
  return -1;
}

}  // namespace tutti::bootstrap
