#include "topo/channels/graph_agreement.h"

#include <gtest/gtest.h>

#include "support/log_capture.h"
#include "topo/channels/graph_report.h"

namespace tutti::topo {
namespace {

using test::Words;

AgreedGraphs agreeAmong(const std::vector<PeerInfo>& peers, const std::vector<GraphReport>& all) {
  auto agreed = agreeOnGraphs(RankLayout(0, peers), peers, all);
  EXPECT_TRUE(agreed.ok());
  return agreed.value();
}

TEST(AgreeOnGraphs, TakesWhatTheWeakestNodeCanDo) {
  const std::vector<PeerInfo> peers = test::evenPeers(3, 2);
  std::vector<GraphReport> all(6, test::wordsOf({.channels = 8, .bw = 40}));
  for (const std::size_t r : {2U, 3U}) {
    all[r] = test::wordsOf({.channels = 6, .crossNic = 2, .tree = Pattern::Tree, .bw = 48});
    all[r].graphs[0].typeInter = PathType::Sys;
    all[r].graphs[0].latencyInter = 3;
  }
  for (const std::size_t r : {4U, 5U}) all[r].graphs[1].bwInter = 12;
  const AgreedGraphs agreed = agreeAmong(peers, all);
  EXPECT_TRUE(agreed.known());
  EXPECT_EQ(agreed.of(GraphId::Ring).channels, 6);
  EXPECT_EQ(agreed.of(GraphId::Ring).bwIntra, 40);
  EXPECT_EQ(agreed.of(GraphId::Ring).typeInter, PathType::Sys);
  EXPECT_EQ(agreed.of(GraphId::Ring).latencyInter, 3);
  EXPECT_EQ(agreed.of(GraphId::Ring).crossNic, 2);
  EXPECT_EQ(agreed.of(GraphId::Tree).bwInter, 12);
  EXPECT_EQ(agreed.of(GraphId::Tree).pattern, Pattern::Tree) << "asks less of a node than a balanced one";
  EXPECT_EQ(agreed.of(GraphId::Nvls).channels, 0);
}

TEST(AgreeOnGraphs, OneRankWithoutATopologyLeavesAllWithout) {
  const std::vector<PeerInfo> peers = test::evenPeers(4, 1);
  std::vector<GraphReport> all(4, test::wordsOf({}));
  all[2] = GraphReport{};
  EXPECT_FALSE(agreeAmong(peers, all).known());
}

TEST(AgreeOnGraphs, RanksOfOneNodeWithDifferentGraphsAreNamed) {
  test::expectLog("rank 2 and rank 3 of host host1");
  const std::vector<PeerInfo> peers = test::evenPeers(2, 2);
  std::vector<GraphReport> all(4, test::wordsOf({}));
  all[3].hash = 1;
  EXPECT_EQ(agreeOnGraphs(RankLayout(0, peers), peers, all).status().code(), ncclInvalidUsage);
}

TEST(AgreeOnGraphs, KnowsCpusThatMakeNetworkMessagesDearer) {
  const std::vector<PeerInfo> peers = test::evenPeers(2, 1);
  const auto with = [&](CpuKind a, CpuKind b) {
    std::vector<GraphReport> all(2, test::wordsOf({}));
    all[0].cpu = a;
    all[1].cpu = b;
    return agreeAmong(peers, all).amdOrMixedCpus;
  };
  EXPECT_FALSE(with(CpuKind::IntelSkylake, CpuKind::IntelSapphireRapids));
  EXPECT_TRUE(with(CpuKind::Amd, CpuKind::Amd));
  EXPECT_TRUE(with(CpuKind::IntelSkylake, CpuKind::Arm));
}

}  // namespace
}  // namespace tutti::topo
