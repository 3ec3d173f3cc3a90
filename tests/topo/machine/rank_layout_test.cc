#include "topo/machine/rank_layout.h"

#include <gtest/gtest.h>

namespace tutti::topo {
namespace {

std::vector<PeerInfo> peersOn(std::initializer_list<std::uint64_t> hosts) {
  std::vector<PeerInfo> peers;
  for (const std::uint64_t host : hosts) {
    PeerInfo peer;
    peer.rank = static_cast<int>(peers.size());
    peer.hostHash = host;
    peers.push_back(peer);
  }
  return peers;
}

TEST(RankLayout, NodesAreNumberedByLowestRank) {
  const auto peers = peersOn({7, 3, 7, 3, 9});
  const RankLayout layout(3, peers);
  EXPECT_EQ(layout.nRanks(), 5);
  EXPECT_EQ(layout.nNodes(), 3);
  EXPECT_EQ(layout.nodeOf(0), 0);
  EXPECT_EQ(layout.nodeOf(1), 1);
  EXPECT_EQ(layout.nodeOf(4), 2);
  EXPECT_EQ(layout.localRanks(), 2);
  EXPECT_EQ(layout.localRank(), 1);
}

TEST(RankLayout, RingVisitsANodeOnce) {
  const auto peers = peersOn({7, 3, 7, 3, 9});
  EXPECT_EQ(RankLayout(0, peers).ringOrder(), (std::vector<int>{0, 2, 1, 3, 4}));
}

TEST(RankLayout, RingStartsAtTheRankThatWalksIt) {
  const std::vector<int> order{0, 2, 1, 3};
  EXPECT_EQ(ringFrom(order, 1), (std::vector<std::int32_t>{1, 3, 0, 2}));
  EXPECT_EQ(ringFrom(order, 0), (std::vector<std::int32_t>{0, 2, 1, 3}));
}

TEST(RankLayout, OneRankIsItsOwnNode) {
  const auto peers = peersOn({5});
  const RankLayout layout(0, peers);
  EXPECT_EQ(layout.nNodes(), 1);
  EXPECT_EQ(layout.localRank(), 0);
  EXPECT_EQ(layout.ringOrder(), (std::vector<int>{0}));
}

}  // namespace
}  // namespace tutti::topo
