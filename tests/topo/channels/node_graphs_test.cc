#include "topo/channels/node_graphs.h"

#include <gtest/gtest.h>

#include <vector>

#include "topo/search/search.h"

namespace tutti::topo {
namespace {

/// GPUs with ranks 0..n-1 and a ring and a tree through them in the orders given, as ranks.
class DescribeGraphs : public testing::Test {
 protected:
  void SetUp() override {
    machine_.addNode(0, 0, CpuFacts{CpuKind::Amd, 0, ""});
    for (int rank = 0; rank < 3; ++rank) {
      gpus_.push_back(machine_.addNode(0, static_cast<std::uint64_t>(rank), GpuFacts{.rank = rank, .dev = rank}));
    }
  }
  Graph graph(GraphId id, Pattern pattern, const std::vector<std::vector<int>>& orders) const {
    Graph graph;
    graph.id = id;
    graph.pattern = pattern;
    graph.bwIntra = 10;
    for (const std::vector<int>& order : orders) {
      GraphChannel channel;
      for (const int rank : order) channel.gpus.push_back(gpus_[static_cast<std::size_t>(rank)]);
      graph.channels.push_back(channel);
    }
    return graph;
  }
  GraphSet graphs(const std::vector<std::vector<int>>& ring, const std::vector<std::vector<int>>& tree) const {
    GraphSet set;
    set.ring = graph(GraphId::Ring, Pattern::Ring, ring);
    set.tree = graph(GraphId::Tree, Pattern::BalancedTree, tree);
    set.collNetChain.id = GraphId::CollNetChain;
    set.collNetDirect.id = GraphId::CollNetDirect;
    set.nvls.id = GraphId::Nvls;
    return set;
  }

  Machine machine_;
  std::vector<int> gpus_;
};

TEST_F(DescribeGraphs, TellsWhereTheRankStands) {
  const GraphSet set = graphs({{0, 1, 2}, {2, 0, 1}}, {{1, 2, 0}, {0, 1, 2}});
  const GraphReport first = describeGraphs(machine_, set, 0);
  EXPECT_EQ(first.of(GraphId::Ring).channels, 2);
  EXPECT_EQ(first.ringPlace[0], 0);
  EXPECT_EQ(first.ringPlace[1], 1);
  EXPECT_EQ(first.treePlace[0], 2);
  EXPECT_EQ(first.cpu, CpuKind::Amd);
  EXPECT_EQ(describeGraphs(machine_, set, 2).hash, first.hash) << "ranks of a node tell of the same graphs";
  EXPECT_NE(describeGraphs(machine_, graphs({{0, 1, 2}, {2, 1, 0}}, {{1, 2, 0}, {0, 1, 2}}), 0).hash, first.hash);
}

TEST_F(DescribeGraphs, AGraphThatMissesAGpuCountsAsNone) {
  const auto channels = [&](const GraphSet& set) {
    return describeGraphs(machine_, set, 0).of(GraphId::Ring).channels;
  };
  EXPECT_EQ(channels(graphs({{0, 1, 2}}, {{0, 1}})), 0);
  EXPECT_EQ(channels(graphs({{0, 1, 1}}, {{0, 1, 2}})), 0);
  EXPECT_EQ(channels(graphs({{0, 1, 2}}, {{0, 2, 1}})), 1);
}

TEST_F(DescribeGraphs, TellsNothingOfMoreRanksThanPlacesCanBeNumbered) {
  const auto channels = [&](int ranks) {
    std::vector<int> order;
    for (int rank = 0; rank < ranks; ++rank) {
      if (rank >= static_cast<int>(gpus_.size())) gpus_.push_back(machine_.addNode(0, 0, GpuFacts{.rank = rank}));
      order.push_back(rank);
    }
    return describeGraphs(machine_, graphs({order}, {order}), ranks - 1).of(GraphId::Ring).channels;
  };
  EXPECT_EQ(channels(kMostLocalRanks), 1);
  EXPECT_EQ(channels(kMostLocalRanks + 1), 0);
}

TEST_F(DescribeGraphs, TellsOfAsManyChannelsAsAGraphFileMayHave) {
  std::vector<std::vector<int>> many(63, {0, 1, 2});
  many.push_back({2, 0, 1});
  const GraphReport words = describeGraphs(machine_, graphs(many, many), 1);
  EXPECT_EQ(words.of(GraphId::Ring).channels, 64);
  EXPECT_EQ(words.ringPlace[62], 1);
  EXPECT_EQ(words.treePlace[63], 2);
}

}  // namespace
}  // namespace tutti::topo
