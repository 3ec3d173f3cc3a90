// Bounds by cuts, of networks drawn by hand and of known machines.
#include "topo/search/bound.h"

#include <gtest/gtest.h>

#include "topo/search/known_machines.h"
#include "topo/search/sketch.h"

namespace tutti::topo {
namespace {

TEST(FlowNetwork, IsLimitedByTheSmallestCut) {
  FlowNetwork network(4);
  network.addEdge(0, 1, 3);
  network.addEdge(0, 2, 2);
  network.addEdge(1, 2, 5);
  network.addEdge(1, 3, 2);
  network.addEdge(2, 3, 3);
  EXPECT_DOUBLE_EQ(network.maxFlow(0, 3), 5);
  EXPECT_DOUBLE_EQ(network.maxFlow(0, 3), 5) << "a second time";
  EXPECT_DOUBLE_EQ(network.maxFlow(3, 0), 0) << "edges have one direction";
}

TEST(FlowNetwork, SendsBackWhatWentWrong) {
  // The first path through the middle edge has to be taken back.
  FlowNetwork network(6);
  for (const auto& [from, to] : {std::pair{0, 1}, {0, 2}, {1, 3}, {2, 3}, {1, 4}, {3, 5}, {4, 5}}) {
    network.addEdge(from, to, 1);
  }
  EXPECT_DOUBLE_EQ(network.maxFlow(0, 5), 2);
}

float boundOf(const test::Sketch& sketch, const PathTable& paths, GraphId id, Pattern pattern, bool interNode) {
  return bandwidthBound(sketch.machine, paths, {id, pattern, 1, 32}, {.interNode = interNode, .collNet = true});
}

TEST(Bound, OfACircleOfNvlinksIsBothItsDirections) {
  test::Sketch sketch = test::fourGpus();
  const PathTable paths = sketch.paths();
  // Two links of 40 GB/s leave each GPU; a chain needs three of the four GPUs to send.
  EXPECT_FLOAT_EQ(boundOf(sketch, paths, GraphId::Ring, Pattern::Ring, false), 80);
  EXPECT_FLOAT_EQ(boundOf(sketch, paths, GraphId::Tree, Pattern::Tree, false), 320.0f / 3);
}

TEST(Bound, OfSeveralMachinesIsTheirNicsOrPciLinks) {
  test::Sketch sketch = test::fourGpus();
  const PathTable paths = sketch.paths();
  // Two NICs of 25 GB/s behind links of 24.
  EXPECT_FLOAT_EQ(boundOf(sketch, paths, GraphId::Ring, Pattern::Ring, true), 48);
  EXPECT_FLOAT_EQ(boundOf(sketch, paths, GraphId::Tree, Pattern::BalancedTree, true), 48);
}

TEST(Bound, CountsPortsThatAreListedTwiceOnce) {
  test::Sketch sketch = test::fourGpus();
  sketch.addNet(sketch.switches[0], 10, {0x500, 1});
  sketch.addNet(sketch.switches[1], 10, {0x500, 1});
  const PathTable paths = sketch.paths();
  EXPECT_FLOAT_EQ(boundOf(sketch, paths, GraphId::Ring, Pattern::Ring, true), 58);
}

TEST(Bound, OfCollNetIsZeroWithoutNicsThatCanDoIt) {
  test::Sketch sketch = test::fourGpus();
  const PathTable paths = sketch.paths();
  EXPECT_FLOAT_EQ(boundOf(sketch, paths, GraphId::CollNetChain, Pattern::Tree, true), 0);
}

struct KnownBound {
  const char* machine;
  float ring;
};

TEST(Bound, IsWhatLinksOfKnownMachinesAddUpTo) {
  const KnownBound known[] = {
      {"own_dgx1v", 6 * 20.0f}, {"own_dgx_a100", 12 * 20.0f}, {"own_dgx_h100", 18 * 20.6f}, {"own_ws_pcie4_amd", 24}};
  for (const KnownBound& one : known) {
    const Result<Topology> topology = test::buildKnown(TOPO_FIXTURES, {.machine = one.machine, .name = "whole"});
    ASSERT_TRUE(topology.ok()) << one.machine;
    const Topology& built = topology.value();
    EXPECT_NEAR(bandwidthBound(built.machine, built.paths, {}, {}), one.ring, 1e-3 * one.ring) << one.machine;
  }
}

}  // namespace
}  // namespace tutti::topo
