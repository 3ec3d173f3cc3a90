// What the search finds on machines whose best graphs are known.
#include "topo/search/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "topo/search/known_machines.h"
#include "topo/search/pack.h"
#include "topo/search/validate.h"
#include "topo/search/validate_loads.h"

namespace tutti::topo {
namespace {

struct Found {
  Topology topology;
  GraphSet graphs;

  double carried(const Graph& graph) const { return graph.nChannels() * static_cast<double>(graph.bwIntra); }
  double toNetwork(const Graph& graph) const { return graph.nChannels() * static_cast<double>(graph.bwInter); }
};

Found search(const char* machine, int nodes, std::vector<int> gpus = {}, int hosts = 1) {
  const test::KnownUse use{.machine = machine, .name = "test", .gpus = std::move(gpus), .nodes = nodes, .hosts = hosts};
  Result<Topology> topology = test::buildKnown(TOPO_FIXTURES, use);
  if (!topology.ok()) return {};
  Found found{std::move(topology.value()), {}};
  found.graphs =
      searchGraphs(found.topology.machine, found.topology.paths, test::searchSettingsOf(use, found.topology));
  return found;
}

/// Part of each NVLink's bandwidth that a graph uses, smallest.
double leastNvlinkUse(const Found& found, const Graph& graph) {
  const Machine& machine = found.topology.machine;
  const auto use = linkUse(machine, found.topology.paths, streamsOf(machine, graph, found.topology.interNode));
  double least = 1;
  for (int l = 0; l < machine.linkCount(); ++l) {
    const Link& link = machine.link(l);
    if (link.kind == LinkKind::NvLink) least = std::min(least, use[static_cast<std::size_t>(l)].load / link.bandwidth);
  }
  return least;
}

TEST(RingSearch, UsesEveryNvlinkOfADgx1InBothDirections) {
  const Found found = search("own_dgx1v", 1);
  EXPECT_EQ(found.graphs.ring.nChannels(), 6);
  EXPECT_FLOAT_EQ(found.graphs.ring.bwIntra, 20);
  EXPECT_EQ(found.graphs.ring.typeIntra, PathType::Nvl);
  EXPECT_GT(leastNvlinkUse(found, found.graphs.ring), 0.999);
}

TEST(RingSearch, UsesAllThatAnNvswitchGivesAGpu) {
  const Found found = search("own_dgx_h100", 1);
  EXPECT_NEAR(found.carried(found.graphs.ring), 18 * 20.6, 0.01);
  EXPECT_TRUE(found.graphs.ring.sameChannels);
  EXPECT_EQ(found.graphs.ring.typeIntra, PathType::Nvl);
}

TEST(RingSearch, EntersEachGpuOnceThroughItsOwnNic) {
  const Found found = search("own_dgx_h100", 2);
  const Graph& ring = found.graphs.ring;
  ASSERT_EQ(ring.nChannels(), 8);
  EXPECT_FLOAT_EQ(ring.bwInter, 48);
  EXPECT_EQ(ring.typeInter, PathType::Pix);
  std::set<int> nets;
  std::set<int> first;
  for (const GraphChannel& channel : ring.channels) {
    nets.insert(channel.netIn);
    first.insert(channel.gpus.front());
  }
  EXPECT_EQ(nets.size(), 8U);
  EXPECT_EQ(first.size(), 8U);
}

TEST(RingSearch, SwapsNicsInPairsWhereRailsCarryLess) {
  const Found found = search("own_dgx_h100", 2);
  const Graph& ring = found.graphs.ring;
  ASSERT_EQ(ring.crossNic, 2);
  for (std::size_t i = 0; i + 1 < ring.channels.size(); i += 2) {
    EXPECT_EQ(ring.channels[i].netIn, ring.channels[i + 1].netOut);
    EXPECT_EQ(ring.channels[i].netOut, ring.channels[i + 1].netIn);
  }
}

TEST(RingSearch, StaysOnRailsWhenToldTo) {
  const Found found = search("own_dgx_h100", 2);
  const SearchSettings settings{.interNode = true, .crossNic = 0};
  const Graph ring = searchGraphs(found.topology.machine, found.topology.paths, settings).ring;
  EXPECT_EQ(ring.crossNic, 0);
  for (const GraphChannel& channel : ring.channels) EXPECT_EQ(channel.netIn, channel.netOut);
  EXPECT_TRUE(validateGraph(found.topology.machine, found.topology.paths, ring, true).empty());
  EXPECT_GT(found.toNetwork(ring), 360);
}

TEST(RingSearch, CrossesBetweenSocketsOnceEachWay) {
  const Found found = search("own_pcie8_rtx_direct_1nic_amd", 1);
  EXPECT_NEAR(found.carried(found.graphs.ring), 16, 1e-3);
}

TEST(RingSearch, GivesOneGpuAsManyChannelsAsAllowed) {
  const Found found = search("own_single_gpu_pcie", 1);
  EXPECT_EQ(found.graphs.ring.nChannels(), 32);
  EXPECT_EQ(found.graphs.ring.typeIntra, PathType::Loc);
}

TEST(RingSearch, KeepsToTheChannelsThatAreAllowed) {
  const Found found = search("own_dgx1v", 1);
  for (int channels : {1, 2, 3, 5}) {
    const SearchSettings settings{.maxChannels = channels, .minChannels = channels};
    const Graph ring = searchGraphs(found.topology.machine, found.topology.paths, settings).ring;
    EXPECT_EQ(ring.nChannels(), channels);
    EXPECT_TRUE(validateGraph(found.topology.machine, found.topology.paths, ring, false).empty());
  }
}

TEST(TreeSearch, RunsChainsOfTwoGpusInBothDirections) {
  const Found found = search("own_rtx3090_x2_nvlink", 1);
  // A ring needs both directions for each channel, a chain one.
  EXPECT_NEAR(found.carried(found.graphs.ring), 48, 0.01);
  EXPECT_NEAR(found.carried(found.graphs.tree), 96, 0.01);
}

TEST(TreeSearch, HasAsManyChannelsAsTheRing) {
  for (const char* machine : {"own_dgx1v", "own_dgx_a100", "own_gb10_spark", "own_ws_pcie4_amd"}) {
    for (int nodes : {1, 2}) {
      const Found found = search(machine, nodes);
      EXPECT_EQ(found.graphs.tree.nChannels(), found.graphs.ring.nChannels()) << machine << " x " << nodes;
    }
  }
}

TEST(TreeSearch, HasTwiceTheBandwidthInsideWhereThereIsEnough) {
  const Found found = search("own_dgx_a100", 2, {0, 1, 2, 3});
  const Graph& tree = found.graphs.tree;
  EXPECT_GE(tree.bwIntra, 1.9f * tree.bwInter);
}

TEST(SortedByWorth, NeverPutsLessFirstHoweverSmallTheSteps) {
  // Neighbours differ by less than a step, the ends by much more.
  std::vector<int> counts;
  std::vector<float> values{0};
  for (int count = 1; count <= 32; ++count) {
    counts.push_back(count);
    values.push_back(values.size() == 1 ? 100 : values.back() * 1.0008f);
  }
  const std::vector<int> sorted = sortedByWorth(counts, values);
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    for (std::size_t j = i + 1; j < sorted.size(); ++j) {
      const auto value = [&](std::size_t at) { return values[static_cast<std::size_t>(sorted[at])]; };
      EXPECT_GE(value(i), value(j) * 0.997f) << sorted[i] << " before " << sorted[j];
    }
  }
  EXPECT_EQ(sortedByWorth({3, 1, 2}, {0, 5, 5}), (std::vector<int>{1, 2, 3})) << "what has no value is last";
}

TEST(TreeSearch, KeepsToNearNicsWhereFartherOnesGiveNoMore) {
  for (const char* machine : {"own_dgx_a100", "oci_bm_gpu4_8", "aws_p5"}) {
    SCOPED_TRACE(machine);
    const Found found = search(machine, 2);
    EXPECT_LE(found.graphs.ring.typeInter, PathType::Pxn);
    EXPECT_LE(found.graphs.tree.typeInter, PathType::Pxn);
  }
}

TEST(RingSearch, TakesFartherNicsThatGiveMuchMore) {
  // Two GPUs under a switch with one NIC; the others' NICs are under other CPUs.
  const Found found = search("aws_p4d", 2, {0, 1});
  EXPECT_GT(found.graphs.ring.typeInter, PathType::Pxn);
  EXPECT_GT(found.toNetwork(found.graphs.ring), 1.5 * 12);
}

TEST(NvlsSearch, MakesEveryGpuAHead) {
  const Found found = search("own_dgx_h100", 1);
  const Graph& nvls = found.graphs.nvls;
  ASSERT_EQ(nvls.nChannels(), 8);
  std::set<int> heads;
  for (const GraphChannel& channel : nvls.channels) heads.insert(channel.gpus.front());
  EXPECT_EQ(heads.size(), 8U);
  EXPECT_NEAR(nvls.bwIntra, 18 * 20.6 / 9, 0.01);
}

TEST(NvlsSearch, NeedsMulticastAndAnNvswitch) {
  EXPECT_EQ(search("own_dgx_a100", 1).graphs.nvls.nChannels(), 0);
  EXPECT_EQ(search("own_dgx1v", 1).graphs.nvls.nChannels(), 0);
  const Found found = search("own_dgx_h100", 1);
  const SearchSettings off{.nvls = false};
  EXPECT_EQ(searchGraphs(found.topology.machine, found.topology.paths, off).nvls.nChannels(), 0);
}

TEST(CollNetSearch, HasAHeadAtEachNic) {
  const Found found = search("own_dgx_h100", 2);
  const Graph& direct = found.graphs.collNetDirect;
  EXPECT_EQ(direct.nChannels(), 8);
  EXPECT_EQ(direct.typeInter, PathType::Pix);
  EXPECT_NEAR(found.toNetwork(direct), 8 * 48, 0.01);
}

TEST(CollNetSearch, IsOffWithoutAPlugin) {
  const Found found = search("own_dgx_h100", 2);
  const SearchSettings settings{.interNode = true, .collNet = false};
  const GraphSet graphs = searchGraphs(found.topology.machine, found.topology.paths, settings);
  EXPECT_EQ(graphs.collNetChain.nChannels(), 0);
  EXPECT_EQ(graphs.collNetDirect.nChannels(), 0);
  EXPECT_GT(graphs.ring.nChannels(), 0);
}

TEST(Search, TakesSeventyTwoGpusOfOneNvlinkDomain) {
  const auto start = std::chrono::steady_clock::now();
  const Found found = search("own_gb200_tray", 2, {}, 18);
  const auto spent = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(found.topology.machine.nodes(NodeKind::Gpu).size(), 72U);
  EXPECT_GT(found.carried(found.graphs.ring), 0.999 * 18 * 40.1);
  EXPECT_LT(std::chrono::duration<double>(spent).count(), 20) << "must not grow out of bounds";
}

}  // namespace
}  // namespace tutti::topo
