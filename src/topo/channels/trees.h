// Double binary tree: two trees over the nodes, chains inside them. Plain facts about the ranks -> a value.
//
// Among nodes, the first tree is read off the bits of the node's number (here with 6 nodes):
//
//      0                 Odd numbers are leaves. The parent has the lowest bit that is set cleared and the next one
//       \                set; where that is out of range, only cleared.
//         4
//       /   \            The second tree is the same one with the nodes renamed, so that its leaves are nodes that work
//      2     5           in the first: mirrored (n-1-i) for an even number of nodes, moved on by one for an odd number.
//     / \                With an odd number one node (0) has children in both: there are not leaves enough.
//    1   3
//
// A tree loads a node that is not a leaf with all its traffic twice and leaves leaves idle; two trees with half of the
// data each load all nodes alike.
//
// Inside a node a chain runs along its ranks, ascending; its head is the node's place in the tree.
#pragma once

#include <array>
#include <vector>

namespace tutti::topo {

class RankLayout;

/// Neighbours in a tree: numbers of nodes or of ranks, -1 for none; the children that exist come first.
template <int kChildren>
struct TreePlace {
  int up = -1;
  std::array<int, kChildren> down = [] {
    std::array<int, kChildren> none{};
    none.fill(-1);
    return none;
  }();
  friend bool operator==(const TreePlace&, const TreePlace&) = default;
};

using NodePlace = TreePlace<2>;  ///< of a node among nodes
using RankPlace = TreePlace<3>;  ///< of a rank: a head has its chain and two nodes below

/// The place of `node` (0..nNodes-1) in the first tree; every node's depth is at most ceil(log2(nNodes)).
NodePlace firstNodeTree(int node, int nNodes);
/// The same in the second tree.
NodePlace secondNodeTree(int node, int nNodes);

/// The two trees of a communicator as one rank sees them; the same tree twice with fewer than two nodes.
struct RankTrees {
  RankPlace first;
  RankPlace second;

  /// What a channel carries: the first half of the channels the first tree, the rest the second; one channel alone the
  /// first.
  const RankPlace& ofChannel(int channel, int nChannels) const {
    return nChannels == 1 || channel < nChannels / 2 ? first : second;
  }
  /// All neighbours in both, ascending, without repetition.
  std::vector<int> neighbours() const;
};

RankTrees treesOf(const RankLayout& layout, int rank);

/// Ascending, without repetition.
void sortOut(std::vector<int>& ranks);

/// The ranks that PAT moves data to or from, besides itself: those a power of two away, in either direction round the
/// circle; ascending, without repetition.
std::vector<int> patNeighbours(int rank, int nRanks);

}  // namespace tutti::topo
