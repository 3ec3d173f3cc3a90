#include "topo/channels/costs.h"

#include <gtest/gtest.h>

#include "topo/channels/graph_agreement.h"
#include "topo/channels/graph_report.h"

namespace tutti::topo {
namespace {

using enum CostAlgorithm;
using enum CostProtocol;

/// Eight GPUs a node with NVLink, all graphs with 16 channels of these bandwidths.
struct Given {
  int nNodes = 1;
  int capability = 90;
  double intra = 20;
  double inter = 20;
  int nChannels = 32;
  int graphChannels = 16;
};

CostTable tableOf(const Given& given) {
  const GraphSpeed speed{
      .intra = given.intra, .inter = given.inter, .latencyInter = 1, .channels = given.graphChannels};
  const CostFacts facts{.nRanks = 8 * given.nNodes,
                        .nNodes = given.nNodes,
                        .computeCapability = given.capability,
                        .nvlink = true,
                        .amdOrMixedCpus = false,
                        .nChannels = given.nChannels};
  return costTable(
      facts,
      {.ring = speed, .tree = speed, .pat = speed, .collNetChain = speed, .collNetDirect = speed, .nvls = speed});
}

double bandwidth(const CostTable& table, CostAlgorithm algorithm, CostProtocol protocol) {
  return costOf(table, algorithm, protocol).bandwidth;
}

TEST(CostTable, BandwidthsAreThoseOfTheGraphWithinWhatProtocolsReach) {
  const CostTable table = tableOf({});
  EXPECT_DOUBLE_EQ(bandwidth(table, Ring, Simple), 320);
  EXPECT_DOUBLE_EQ(bandwidth(table, Ring, LL), 141) << "half of 320 is more than LL reaches";
  EXPECT_DOUBLE_EQ(bandwidth(table, Ring, LL128), 320 * 0.92);
  EXPECT_DOUBLE_EQ(bandwidth(table, Tree, Simple), 320 * 0.92);
  EXPECT_DOUBLE_EQ(bandwidth(table, Tree, LL), 320 * 0.92 / 3.8);
  EXPECT_DOUBLE_EQ(bandwidth(table, Tree, LL128), 320 * 0.92 * 7 / 9);
  EXPECT_DOUBLE_EQ(bandwidth(table, Pat, Simple), 240);
}

TEST(CostTable, ChannelsThatRepeatTheGraphsAddNoBandwidthAndFewerTakeSome) {
  EXPECT_EQ(bandwidth(tableOf({.nChannels = 16}), Ring, Simple), bandwidth(tableOf({.nChannels = 64}), Ring, Simple));
  EXPECT_DOUBLE_EQ(bandwidth(tableOf({.nChannels = 4}), Ring, Simple), 80);
  EXPECT_DOUBLE_EQ(bandwidth(tableOf({.nChannels = 4, .graphChannels = 0}), Ring, Simple), 80)
      << "speeds that are assumed hold for the communicator's channels";
}

TEST(CostTable, FromThreeNodesOnTheNetworkCounts) {
  EXPECT_DOUBLE_EQ(bandwidth(tableOf({.nNodes = 2, .inter = 10}), Ring, Simple), 320);
  EXPECT_DOUBLE_EQ(bandwidth(tableOf({.nNodes = 3, .inter = 10}), Ring, Simple), 160);
  EXPECT_DOUBLE_EQ(bandwidth(tableOf({.nNodes = 3, .inter = 48}), Tree, Simple), 16 * 36.0) << "a block's most";
}

TEST(CostTable, HopsAreThoseOfTheLinks) {
  const CostTable table = tableOf({.nNodes = 4});
  const HopCost& ring = costOf(table, Ring, Simple);
  EXPECT_DOUBLE_EQ(ring.base, 8.4);
  EXPECT_DOUBLE_EQ(ring.intra, 3.4);
  EXPECT_DOUBLE_EQ(ring.inter, 14 + 2) << "the network's latency, and again for the flush";
  EXPECT_DOUBLE_EQ(costOf(table, Ring, LL).inter, 2.7 + 1);
  EXPECT_DOUBLE_EQ(costOf(table, Tree, LL128).inter, 8.5 + 1);
}

TEST(CostTable, OneRankPerNodeMakesRingHopsAsDearAsTreeHops) {
  const CostFacts facts{
      .nRanks = 4, .nNodes = 4, .computeCapability = 80, .nvlink = false, .amdOrMixedCpus = false, .nChannels = 2};
  const CostTable table = costTable(facts, {.ring = {.intra = 10, .inter = 10}});
  EXPECT_DOUBLE_EQ(costOf(table, Ring, LL).inter, 5.0);
  EXPECT_DOUBLE_EQ(costOf(table, Ring, LL).intra, 1.0) << "PCI";
}

TEST(CostTable, LlBetweenNodesDependsOnTheCpus) {
  CostFacts facts{
      .nRanks = 16, .nNodes = 2, .computeCapability = 90, .nvlink = true, .amdOrMixedCpus = false, .nChannels = 8};
  EXPECT_DOUBLE_EQ(mostLlBandwidth(facts), 39.0);
  facts.amdOrMixedCpus = true;
  EXPECT_DOUBLE_EQ(mostLlBandwidth(facts), 22.5);
  facts.nNodes = 1;
  EXPECT_DOUBLE_EQ(mostLlBandwidth(facts), 141.0);
}

TEST(CostTable, NvlsNeedsTwoChannelsAndNewGpus) {
  EXPECT_DOUBLE_EQ(bandwidth(tableOf({}), Nvls, Simple), 2 * 320 * 0.85 * 15 / 16);
  EXPECT_DOUBLE_EQ(bandwidth(tableOf({.nNodes = 2}), Nvls, Simple), 320) << "each channel's share of the network";
  EXPECT_DOUBLE_EQ(bandwidth(tableOf({.nNodes = 2}), NvlsTree, Simple), 16 * 2 * 20 * 0.85 * 15 / 16);
  EXPECT_EQ(bandwidth(tableOf({.graphChannels = 1}), Nvls, Simple), 0);
  EXPECT_EQ(bandwidth(tableOf({.capability = 80}), Nvls, Simple), 0);
  EXPECT_EQ(bandwidth(tableOf({}), NvlsTree, Simple), 0) << "one node has no tree of nodes";
}

TEST(CostTable, CollNetHasTheSimpleProtocolOnly) {
  const CostTable table = tableOf({.nNodes = 4, .nChannels = 8, .graphChannels = 8});
  EXPECT_DOUBLE_EQ(bandwidth(table, CollNetChain, Simple), 160);
  EXPECT_DOUBLE_EQ(bandwidth(table, CollNetDirect, Simple), 160 * 0.85) << "a head per rank";
  EXPECT_EQ(bandwidth(table, CollNetChain, LL), 0);
  EXPECT_DOUBLE_EQ(costOf(table, CollNetDirect, Simple).inter, 31 + 2);
}

TEST(CostTable, MissingGraphsHaveNoBandwidth) {
  const CostTable table = costTable(
      {.nRanks = 8, .nNodes = 1, .computeCapability = 100, .nvlink = true, .amdOrMixedCpus = false, .nChannels = 8},
      {});
  for (const auto& row : table) {
    for (const HopCost& cost : row) EXPECT_EQ(cost.bandwidth, 0);
  }
}

TEST(SpeedsOf, AreTheAgreedGraphs) {
  const std::vector<PeerInfo> peers = test::evenPeers(1, 2);
  std::vector<GraphReport> all(2, test::wordsOf({.channels = 6, .tree = Pattern::Tree, .bw = 30}));
  for (GraphReport& own : all) own.graphs[0].latencyInter = 2;
  const GraphSpeeds speeds = speedsOf(agreeOnGraphs(RankLayout(0, peers), peers, all).value());
  EXPECT_EQ(speeds.ring.channels, 6);
  EXPECT_EQ(speeds.ring.intra, 30);
  EXPECT_EQ(speeds.ring.latencyInter, 2);
  EXPECT_FALSE(speeds.ring.oneGpuAtNetwork);
  EXPECT_TRUE(speeds.tree.oneGpuAtNetwork);
  EXPECT_TRUE(speeds.pat.connected());
  EXPECT_FALSE(speeds.nvls.connected());
}

TEST(CostTable, ATreeThroughOneGpuIsSlower) {
  CostFacts facts{
      .nRanks = 8, .nNodes = 1, .computeCapability = 90, .nvlink = true, .amdOrMixedCpus = false, .nChannels = 8};
  GraphSpeeds speeds{.tree = {.intra = 10, .channels = 8}};
  const double spread = bandwidth(costTable(facts, speeds), Tree, Simple);
  speeds.tree.oneGpuAtNetwork = true;
  EXPECT_DOUBLE_EQ(bandwidth(costTable(facts, speeds), Tree, Simple), spread * 0.85);
}

}  // namespace
}  // namespace tutti::topo
