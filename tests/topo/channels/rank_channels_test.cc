#include "topo/channels/rank_channels.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "topo/channels/graph_report.h"
#include "topo/machine/rank_layout.h"

namespace tutti::topo {
namespace {

TEST(ChannelsByRank, GiveEveryChannelTheSameRing) {
  const std::vector<PeerInfo> peers = test::peersOn({0, 1, 0});
  const RankChannels channels = channelsByRank(RankLayout(2, peers), 2);
  ASSERT_EQ(channels.size(), 2);
  EXPECT_EQ(channels.rings, (std::vector<std::vector<std::int32_t>>{{2, 1, 0}}));
  EXPECT_EQ(channels.channels[1].prev, 0);
  EXPECT_EQ(channels.channels[1].next, 1);
  EXPECT_EQ(channels.channels[0].tree, treesOf(RankLayout(2, peers), 2).first);
  EXPECT_EQ(channels.channels[1].tree, treesOf(RankLayout(2, peers), 2).second);
}

TEST(ChannelLines, ShowNeighboursByChannel) {
  const RankChannels channels = channelsByRank(RankLayout(0, test::evenPeers(1, 3)), 1);
  EXPECT_EQ(channelLines(channels, 0),
            (std::vector<std::string>{"Ring 00 : 2 -> 0 -> 1", "Tree 0 : -1 -> 0 -> 1/-1/-1"}));
  EXPECT_EQ(treesLine(channels, 0), "Trees [0] 1/-1/-1->0->-1");
}

}  // namespace
}  // namespace tutti::topo
