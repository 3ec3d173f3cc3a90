#include "topo/channels/trees.h"

#include <algorithm>
#include <span>

#include "topo/machine/rank_layout.h"

namespace tutti::topo {

namespace {

/// The largest power of two below `n`, 0 for n < 2.
int highestBelow(int n) {
  if (n < 2) return 0;
  int bit = 1;
  while (bit * 2 < n) bit *= 2;
  return bit;
}

/// Renames every neighbour.
template <class Rename>
NodePlace renamed(NodePlace place, Rename rename) {
  if (place.up >= 0) place.up = rename(place.up);
  for (int& child : place.down) {
    if (child >= 0) child = rename(child);
  }
  return place;
}

void append(RankPlace& place, int child) {
  if (child >= 0) *std::find(place.down.begin(), place.down.end(), -1) = child;
}

/// The chain inside a node, and the node's place in the tree at its head.
RankPlace rankPlace(const RankLayout& layout, int rank, const NodePlace& node) {
  const std::span<const int> chain = layout.ranksOnNode(layout.nodeOf(rank));
  const auto self = std::find(chain.begin(), chain.end(), rank);
  RankPlace place;
  if (self + 1 != chain.end()) append(place, *(self + 1));
  if (self != chain.begin()) {
    place.up = *(self - 1);
    return place;
  }
  const auto headOf = [&](int other) { return other < 0 ? -1 : layout.ranksOnNode(other).front(); };
  place.up = headOf(node.up);
  for (const int child : node.down) append(place, headOf(child));
  return place;
}

}  // namespace

void sortOut(std::vector<int>& ranks) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
}

NodePlace firstNodeTree(int node, int nNodes) {
  NodePlace place;
  if (node == 0) {
    if (nNodes > 1) place.down[0] = highestBelow(nNodes);
    return place;
  }
  const int bit = node & -node;
  const int sideways = (node ^ bit) | (bit * 2);
  place.up = sideways < nNodes ? sideways : node ^ bit;
  if (bit == 1) return place;
  place.down[0] = node - bit / 2;
  // What would stand above a node out of range is skipped: its lower child takes its place.
  int step = bit / 2;
  while (step > 0 && node + step >= nNodes) step /= 2;
  if (step > 0) place.down[1] = node + step;
  return place;
}

NodePlace secondNodeTree(int node, int nNodes) {
  if (nNodes % 2 == 0) {
    const auto mirror = [nNodes](int n) { return nNodes - 1 - n; };
    return renamed(firstNodeTree(mirror(node), nNodes), mirror);
  }
  return renamed(firstNodeTree((node + nNodes - 1) % nNodes, nNodes), [nNodes](int n) { return (n + 1) % nNodes; });
}

RankTrees treesOf(const RankLayout& layout, int rank) {
  const int node = layout.nodeOf(rank);
  return {rankPlace(layout, rank, firstNodeTree(node, layout.nNodes())),
          rankPlace(layout, rank, secondNodeTree(node, layout.nNodes()))};
}

std::vector<int> RankTrees::neighbours() const {
  std::vector<int> ranks;
  for (const RankPlace& place : {first, second}) {
    if (place.up >= 0) ranks.push_back(place.up);
    std::copy_if(place.down.begin(), place.down.end(), std::back_inserter(ranks), [](int r) { return r >= 0; });
  }
  sortOut(ranks);
  return ranks;
}

std::vector<int> patNeighbours(int rank, int nRanks) {
  std::vector<int> ranks;
  for (long distance = 1; distance < nRanks; distance *= 2) {
    ranks.push_back(static_cast<int>((rank + distance) % nRanks));
    ranks.push_back(static_cast<int>((rank + nRanks - distance) % nRanks));
  }
  sortOut(ranks);
  return ranks;
}

}  // namespace tutti::topo
