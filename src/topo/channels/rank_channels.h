// The channels of a communicator as one rank sees them: its neighbours in rings and trees. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "topo/channels/trees.h"

namespace tutti::topo {

class RankLayout;

/// One channel as one rank sees it.
struct RankChannel {
  int prev = 0;  ///< in the ring; the rank itself where it is alone
  int next = 0;
  int ring = 0;  ///< index of its order in RankChannels::rings
  RankPlace tree;

  /// Neighbours in a ring given as the order of all ranks from this rank on, with that index; no tree.
  static RankChannel along(std::span<const std::int32_t> order, int ring);
};

/// All channels of one rank.
struct RankChannels {
  std::vector<RankChannel> channels;
  /// Orders of all ranks, from this rank on: what kernels walk along. Channels with the same ring share one.
  std::vector<std::vector<std::int32_t>> rings;

  int size() const { return static_cast<int>(channels.size()); }
  std::span<const std::int32_t> ringOf(int channel) const {
    return rings[static_cast<std::size_t>(channels[static_cast<std::size_t>(channel)].ring)];
  }
};

/// Channels while nobody knows the machine: one ring and chains by rank number inside nodes, on all channels.
RankChannels channelsByRank(const RankLayout& layout, int nChannels);

/// "Trees [0] 1/-1/-1->0->-1 [1] …": children, the rank, its parent, by channel.
std::string treesLine(const RankChannels& channels, int rank);
/// "Ring 00 : 7 -> 0 -> 1" and "Tree 0 : -1 -> 0 -> 1/-1/-1" for each channel, as NCCL_DEBUG_SUBSYS=GRAPH prints them.
std::vector<std::string> channelLines(const RankChannels& channels, int rank);

}  // namespace tutti::topo
