// From the orders inside nodes to the channels of a communicator: rings through all nodes, two trees over them.
//
//   ring, channel c      node 0          node 1          node 2
//                     ->[a b c d]------>[c a b d]------>[a c b d]--.     from the network into
//                    `-------------------------------------------'      a node's first GPU, out of its last
//
//   tree, channel c: a node's GPUs are a chain in the order of its tree graph. Towards its parent node it is the first
//   GPU that is joined; towards a child the one that the node's pattern says: TREE the first for both, BALANCED_TREE
//   the first for one and the second for the other, SPLIT_TREE the second for both.
//
// Graphs give a number of channels; the communicator has twice as many, the second half with the second tree of the
// pair (trees.h). Pure functions: every rank gets its own part from values that are equal on all of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "topo/channels/rank_channels.h"

namespace tutti::topo {

class RankLayout;
struct AgreedGraphs;
struct ChannelLimits;
struct GraphReport;

/// How many channels the agreed graphs give: the smaller number of ring and tree, doubled for the second tree; doubled
/// once more where few channels would have to carry much between nodes (compute capability 9 and later). Within
/// `limits`, of which the lower bound counts more.
int channelsFor(const AgreedGraphs& agreed, int nNodes, int lowestComputeCapability, const ChannelLimits& limits);

/// The channels of `layout.rank()`. `nChannels` may be any number from 1 to kMostChannels: channels beyond those of the
/// graphs repeat them.
/// ncclInternalError where the graphs are not known() to all, and, naming the node, where the words of its ranks do not
/// give an order.
Result<RankChannels> channelsAcross(const RankLayout& layout, std::span<const GraphReport> all,
                                    const AgreedGraphs& agreed, int nChannels);

/// Whoever channelsAcross() may make this rank's neighbour in a tree, whatever number of channels up to `mostChannels`
/// is agreed on: fewer channels are not the first ones of more, for half of them carry the second tree. Ascending,
/// without repetition; none where the graphs are not known().
std::vector<int> treeNeighboursAcross(const RankLayout& layout, std::span<const GraphReport> all,
                                      const AgreedGraphs& agreed, int mostChannels);

}  // namespace tutti::topo
