#include "topo/channels/inter_node.h"

#include <algorithm>
#include <array>

#include "base/hash.h"
#include "base/log.h"
#include "topo/channels/channel_limits.h"
#include "topo/channels/graph_agreement.h"
#include "topo/machine/rank_layout.h"

namespace tutti::topo {

namespace {

/// Which channel of its own graph a node lends to ring `ring` of the communicator. Where rings change the rail inside a
/// node and come back on the next channel of their pair, every other node takes the pair in the other order, so that
/// hops between an even and an odd node stay on one rail. With an odd number of nodes the last hop, to node 0, does
/// not.
int lentChannel(int ring, int node, const GraphSummary& graph) {
  const int partner = ring ^ 1;
  return graph.crossNic == 2 && node % 2 == 1 && partner < graph.channels ? partner : ring;
}

/// Builds the orders of all rings at once: each rank's words are read once.
class RingBuilder {
 public:
  RingBuilder(const RankLayout& layout, std::span<const GraphReport> all, const AgreedGraphs& agreed)
      : layout_(layout), all_(all), graph_(agreed.of(GraphId::Ring)) {}

  /// For each of the first `nChannels` channels of the graphs the first one that has the same order on all nodes, as
  /// 64-bit FNV hashes tell: all ranks see the same ones, so even equal hashes of different orders would do no harm.
  std::vector<int> shared(int nChannels) const {
    constexpr std::uint64_t kPrime = 0x100000001b3;
    std::vector<std::uint64_t> orders(static_cast<std::size_t>(nChannels), kHashSeed);
    for (int rank = 0; rank < layout_.nRanks(); ++rank) {
      const int node = layout_.nodeOf(rank);
      for (std::size_t c = 0; c < orders.size(); ++c) {
        orders[c] = (orders[c] ^ placeOf(rank, node, static_cast<int>(c))) * kPrime;
      }
    }
    std::vector<int> sharing;
    sharing.reserve(orders.size());
    for (const std::uint64_t order : orders) {
      sharing.push_back(static_cast<int>(std::find(orders.begin(), orders.end(), order) - orders.begin()));
    }
    return sharing;
  }

  /// The rings of these channels, each from our own rank on.
  Result<std::vector<std::vector<std::int32_t>>> build(std::span<const int> channels) const {
    const auto nRanks = static_cast<std::size_t>(layout_.nRanks());
    Rings rings(channels.size(), std::vector<std::int32_t>(nRanks, -1));
    const int home = layout_.nodeOf(layout_.rank());
    std::vector<std::size_t> starts;  // where our own node's first rank stands
    for (const int channel : channels) {
      starts.push_back((nRanks - placeOf(layout_.rank(), home, channel)) % nRanks);
    }
    for (int i = 0; i < layout_.nNodes(); ++i) {
      const int node = (home + i) % layout_.nNodes();
      const std::size_t size = layout_.ranksOnNode(node).size();
      if (!enter(node, channels, starts, rings)) return broken(node);
      for (std::size_t& start : starts) start = (start + size) % nRanks;
    }
    return rings;
  }

 private:
  using Rings = std::vector<std::vector<std::int32_t>>;

  std::uint8_t placeOf(int rank, int node, int channel) const {
    const int lent = lentChannel(channel, node, graph_);
    return all_[static_cast<std::size_t>(rank)].ringPlace[static_cast<std::size_t>(lent)];
  }

  /// Puts the node's ranks into every ring, the first of them at `starts`; false: they do not fit.
  bool enter(int node, std::span<const int> channels, std::span<const std::size_t> starts, Rings& rings) const {
    const std::span<const int> ranks = layout_.ranksOnNode(node);
    for (const int rank : ranks) {
      for (std::size_t r = 0; r < rings.size(); ++r) {
        const std::size_t place = placeOf(rank, node, channels[r]);
        if (place >= ranks.size()) return false;
        std::size_t at = starts[r] + place;
        if (at >= rings[r].size()) at -= rings[r].size();
        if (rings[r][at] != -1) return false;
        rings[r][at] = rank;
      }
    }
    return true;
  }

  Status broken(int node) const {
    return fail(ncclInternalError, "The ranks of node {} (rank {} and {} more) do not agree on their order in a ring",
                node, layout_.ranksOnNode(node).front(), layout_.ranksOnNode(node).size() - 1);
  }

  const RankLayout& layout_;
  std::span<const GraphReport> all_;
  GraphSummary graph_;
};

/// Places of one rank in the trees.
class TreeBuilder {
 public:
  TreeBuilder(const RankLayout& layout, std::span<const GraphReport> all)
      : layout_(layout),
        all_(all),
        node_(layout.nodeOf(layout.rank())),
        places_{firstNodeTree(node_, layout.nNodes()), secondNodeTree(node_, layout.nNodes())} {}

  /// `channel` of the graphs, in the first or the second tree.
  RankPlace place(int channel, bool second) const {
    const NodePlace& node = places_[second ? 1 : 0];
    const int self = placeOf(layout_.rank(), channel);
    RankPlace place;
    append(place, rankAt(node_, channel, self + 1));
    if (self > 0) {
      place.up = rankAt(node_, channel, self - 1);
    } else if (node.up >= 0) {
      place.up = rankAt(node.up, channel, gateOf(node.up, childIndex(node.up, second)));
    }
    for (int child = 0; child < 2; ++child) {
      const int below = node.down[static_cast<std::size_t>(child)];
      if (below >= 0 && gateOf(node_, child) == self) append(place, rankAt(below, channel, 0));
    }
    return place;
  }

 private:
  static void append(RankPlace& place, int child) {
    if (child >= 0) *std::find(place.down.begin(), place.down.end(), -1) = child;
  }
  int placeOf(int rank, int channel) const {
    return all_[static_cast<std::size_t>(rank)].treePlace[static_cast<std::size_t>(channel)];
  }
  /// -1: there is none.
  int rankAt(int node, int channel, int place) const {
    const std::span<const int> ranks = layout_.ranksOnNode(node);
    const auto at = std::find_if(ranks.begin(), ranks.end(), [&](int r) { return placeOf(r, channel) == place; });
    return at == ranks.end() ? -1 : *at;
  }
  /// Which of the parent's children our node is.
  int childIndex(int parent, bool second) const {
    const NodePlace place = second ? secondNodeTree(parent, layout_.nNodes()) : firstNodeTree(parent, layout_.nNodes());
    return place.down[0] == node_ ? 0 : 1;
  }
  /// Place in the node's chain that its child node number `child` is joined to.
  int gateOf(int node, int child) const {
    const std::span<const int> ranks = layout_.ranksOnNode(node);
    if (ranks.size() < 2) return 0;
    switch (all_[static_cast<std::size_t>(ranks.front())].of(GraphId::Tree).pattern) {
      case Pattern::BalancedTree:
        return child;
      case Pattern::SplitTree:
        return 1;
      case Pattern::Tree:
      case Pattern::Ring:
      case Pattern::Nvls:
      case Pattern::CollNetDirect:
        break;
    }
    return 0;
  }

  const RankLayout& layout_;
  std::span<const GraphReport> all_;
  int node_;
  std::array<NodePlace, 2> places_;
};

/// Channels that the graphs have.
int inGraphs(const AgreedGraphs& agreed) {
  return std::min(agreed.of(GraphId::Ring).channels, agreed.of(GraphId::Tree).channels);
}

}  // namespace

int channelsFor(const AgreedGraphs& agreed, int nNodes, int lowestComputeCapability, const ChannelLimits& limits) {
  constexpr float kMuch = 45;
  constexpr int kFew = 16;
  const GraphSummary& ring = agreed.of(GraphId::Ring);
  int channels = 2 * inGraphs(agreed);
  if (lowestComputeCapability >= 90 && nNodes > 1 && ring.bwIntra > kMuch && channels < kFew) channels *= 2;
  channels = std::min({channels, limits.most, kMostChannels});
  return std::max({channels, std::min(limits.fewest, kMostChannels), 1});
}

Result<RankChannels> channelsAcross(const RankLayout& layout, std::span<const GraphReport> all,
                                    const AgreedGraphs& agreed, int nChannels) {
  if (!agreed.known()) return fail(ncclInternalError, "Channels are to be made of graphs that not all ranks have");
  const int graphChannels = inGraphs(agreed);
  const int pairs = std::min(nChannels, 2 * graphChannels);
  const RingBuilder builder(layout, all, agreed);
  std::vector<int> ringOf = builder.shared(std::min(nChannels, graphChannels));
  std::vector<int> distinct(ringOf);
  sortOut(distinct);
  RankChannels result;
  ASSIGN(result.rings, builder.build(distinct));
  const TreeBuilder trees(layout, all);
  for (int c = 0; c < nChannels; ++c) {
    const int inPairs = c % pairs;
    const int inGraph = inPairs % graphChannels;
    const auto ring = std::lower_bound(distinct.begin(), distinct.end(), ringOf[static_cast<std::size_t>(inGraph)]);
    const int index = static_cast<int>(ring - distinct.begin());
    RankChannel channel = RankChannel::along(result.rings[static_cast<std::size_t>(index)], index);
    channel.tree = trees.place(inGraph, pairs > 1 && inPairs >= pairs / 2);
    result.channels.push_back(channel);
  }
  return result;
}

std::vector<int> treeNeighboursAcross(const RankLayout& layout, std::span<const GraphReport> all,
                                      const AgreedGraphs& agreed, int mostChannels) {
  const TreeBuilder trees(layout, all);
  std::vector<int> ranks;
  const auto add = [&](const RankPlace& place) {
    ranks.push_back(place.up);
    ranks.insert(ranks.end(), place.down.begin(), place.down.end());
  };
  for (int c = 0; c < std::min(inGraphs(agreed), mostChannels); ++c) {
    add(trees.place(c, false));
    if (mostChannels > 1) add(trees.place(c, true));
  }
  std::erase(ranks, -1);
  sortOut(ranks);
  return ranks;
}

}  // namespace tutti::topo
