#include "topo/channels/rank_channels.h"

#include <fmt/format.h>

#include "topo/machine/rank_layout.h"

namespace tutti::topo {

namespace {

std::string childrenOf(const RankPlace& place) {
  return fmt::format("{}/{}/{}", place.down[0], place.down[1], place.down[2]);
}

}  // namespace

RankChannel RankChannel::along(std::span<const std::int32_t> order, int ring) {
  return {order.back(), order[1 % order.size()], ring, {}};
}

RankChannels channelsByRank(const RankLayout& layout, int nChannels) {
  RankChannels result;
  result.rings.push_back(ringFrom(layout.ringOrder(), layout.rank()));
  const RankTrees trees = treesOf(layout, layout.rank());
  for (int c = 0; c < nChannels; ++c) {
    RankChannel channel = RankChannel::along(result.rings.front(), 0);
    channel.tree = trees.ofChannel(c, nChannels);
    result.channels.push_back(channel);
  }
  return result;
}

std::string treesLine(const RankChannels& channels, int rank) {
  std::string line = "Trees";
  for (int c = 0; c < channels.size(); ++c) {
    const RankPlace& place = channels.channels[static_cast<std::size_t>(c)].tree;
    line += fmt::format(" [{}] {}->{}->{}", c, childrenOf(place), rank, place.up);
  }
  return line;
}

std::vector<std::string> channelLines(const RankChannels& channels, int rank) {
  std::vector<std::string> lines;
  for (int c = 0; c < channels.size(); ++c) {
    const RankChannel& channel = channels.channels[static_cast<std::size_t>(c)];
    lines.push_back(fmt::format("Ring {:02} : {} -> {} -> {}", c, channel.prev, rank, channel.next));
    lines.push_back(fmt::format("Tree {} : {} -> {} -> {}", c, channel.tree.up, rank, childrenOf(channel.tree)));
  }
  return lines;
}

}  // namespace tutti::topo
