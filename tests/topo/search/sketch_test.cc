// What the search makes of machines that are sketched for one question each.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "topo/search/search.h"
#include "topo/search/sketch.h"
#include "topo/search/validate.h"

namespace tutti::topo {
namespace {

TEST(Search, FallsBackToOneSlowChannelWhereNothingConnects) {
  test::Sketch sketch(CpuKind::Amd);
  for (int i = 0; i < 3; ++i) sketch.addGpu(sketch.cpu, 80, 24);
  const PathTable none(sketch.machine.nodeCount());
  const GraphSet alone = searchGraphs(sketch.machine, none, {});
  ASSERT_EQ(alone.ring.nChannels(), 1);
  EXPECT_FLOAT_EQ(alone.ring.bwIntra, 0.1f);
  EXPECT_EQ(alone.ring.typeIntra, PathType::Sys);
  const GraphSet several = searchGraphs(sketch.machine, none, {.interNode = true, .collNet = true});
  EXPECT_FLOAT_EQ(several.ring.bwInter, 0);
  EXPECT_EQ(several.ring.typeInter, PathType::Dis);
  EXPECT_EQ(several.tree.nChannels(), 1);
  EXPECT_EQ(several.collNetDirect.nChannels(), 0);
}

TEST(Search, HasNoGraphsOfNoGpus) {
  const Machine nothing;
  const GraphSet graphs = searchGraphs(nothing, PathTable(0), {});
  EXPECT_EQ(graphs.ring.nChannels(), 0);
  EXPECT_EQ(graphs.tree.nChannels(), 0);
}

TEST(Search, DoesNotLoadAPortBeyondItsSpeedThatIsListedTwice) {
  test::Sketch sketch(CpuKind::Amd);
  sketch.addSwitch(24);
  for (int i = 0; i < 2; ++i) sketch.addGpu(sketch.switches[0], 80, 24);
  for (int i = 0; i < 2; ++i) sketch.addNet(sketch.switches[0], 10, {0x500, 1});
  const PathTable paths = sketch.paths();
  const Graph ring = searchGraphs(sketch.machine, paths, {.interNode = true}).ring;
  EXPECT_NEAR(ring.nChannels() * ring.bwInter, 10, 0.01);
  EXPECT_TRUE(validateGraph(sketch.machine, paths, ring, true).empty());
}

TEST(Search, DoesNotSendBetweenPlanes) {
  test::Sketch sketch(CpuKind::Amd);
  sketch.addSwitch(24);
  for (int i = 0; i < 4; ++i) sketch.addGpu(sketch.switches[0], 80, 24);
  for (int i = 0; i < 4; ++i) sketch.addNet(sketch.switches[0], 5, {0x500u + static_cast<unsigned>(i), 1, -1, i / 2});
  const PathTable paths = sketch.paths();
  for (int crossNic : {0, 1, 2}) {
    const Graph ring = searchGraphs(sketch.machine, paths, {.interNode = true, .crossNic = crossNic}).ring;
    EXPECT_TRUE(validateGraph(sketch.machine, paths, ring, true).empty());
    EXPECT_NEAR(ring.nChannels() * ring.bwInter, 20, 0.01);
  }
}

TEST(Search, GivesTheSlowestNicABandwidth) {
  // 1 Mb/s, shared by many channels.
  test::Sketch sketch(CpuKind::Amd);
  sketch.addSwitch(24);
  for (int i = 0; i < 4; ++i) sketch.addGpu(sketch.switches[0], 80, 24);
  sketch.addNet(sketch.switches[0], 0.000125f, {0x500, 1});
  const PathTable paths = sketch.paths();
  for (const int channels : {1, 32}) {
    const SearchSettings settings{.interNode = true, .maxChannels = channels, .minChannels = channels};
    const Graph ring = searchGraphs(sketch.machine, paths, settings).ring;
    EXPECT_NEAR(ring.nChannels() * ring.bwInter, 0.000125, 1e-7);
    EXPECT_EQ(validateGraph(sketch.machine, paths, ring, true), std::vector<std::string>{});
  }
}

TEST(RingSearch, NeverJoinsNicsOfDifferentPlanes) {
  test::Sketch sketch(CpuKind::Amd);
  for (int i = 0; i < 2; ++i) {
    sketch.addSwitch(24);
    sketch.addGpu(sketch.switches[static_cast<std::size_t>(i)], 80, 24);
  }
  // The first one has no plane: it goes with either of the others, but these do not go with each other.
  sketch.addNet(sketch.cpu, 1, {0x500, 1});
  for (int i = 0; i < 2; ++i) {
    sketch.addNet(sketch.switches[static_cast<std::size_t>(i)], 24, {0x600U + static_cast<unsigned>(i), 1, -1, i});
  }
  const PathTable paths = shortestPaths(sketch.machine, {});
  const Graph ring = searchGraphs(sketch.machine, paths, {.interNode = true}).ring;
  EXPECT_EQ(validateGraph(sketch.machine, paths, ring, true), std::vector<std::string>{});
  EXPECT_GT(ring.bwInter, 1);
}

TEST(Search, CountsWhatRanksOfOneDeviceShare) {
  for (const float local : {5000.0f, 2618.0f}) {
    test::Sketch sketch(CpuKind::Amd);
    sketch.addSwitch(24);
    const int device = sketch.machine.addNode(0, 0x6000, DeviceFacts{0, 90, -1, true});
    sketch.machine.connect(device, sketch.switches[0], LinkKind::Pci, 24);
    for (int i = 0; i < 2; ++i) {
      sketch.gpus.push_back(sketch.machine.addNode(0, 0x6000, GpuFacts{0, i, device, 90, true}));
      sketch.machine.connect(sketch.gpus.back(), device, LinkKind::Local, local);
    }
    sketch.addNet(sketch.switches[0], 25, {0x500, 1});
    const PathTable paths = sketch.paths();
    for (const bool interNode : {false, true}) {
      const SearchSettings settings{.interNode = interNode, .collNet = interNode};
      const GraphSet graphs = searchGraphs(sketch.machine, paths, settings);
      for (const Graph* graph : {&graphs.ring, &graphs.tree, &graphs.collNetChain, &graphs.collNetDirect}) {
        EXPECT_EQ(validateGraph(sketch.machine, paths, *graph, interNode), std::vector<std::string>{});
        if (graph->channels.empty()) continue;
        const float bound = bandwidthBound(sketch.machine, paths, {graph->id, graph->pattern, 1, 64}, settings);
        const float bandwidth = interNode ? std::min(graph->bwIntra, graph->bwInter) : graph->bwIntra;
        EXPECT_LE(static_cast<float>(graph->nChannels()) * bandwidth, bound * 1.001f) << graphName(graph->id);
      }
    }
  }
}

TEST(LastResort, UsesNoNicWhereARingCannotLeave) {
  // Two hosts joined by NVLink, of which one has a NIC: a tree is possible, a ring is not.
  test::Sketch sketch(CpuKind::Amd);
  Machine& machine = sketch.machine;
  const int fabric = machine.addNode(0, 0, NvSwitchFacts{});
  const int cpus[] = {sketch.cpu, machine.addNode(1, 0, CpuFacts{CpuKind::Amd, 0, ""})};
  for (const int cpu : cpus) {
    sketch.addGpu(cpu, 80, 24);
    machine.connect(sketch.devices.back(), fabric, LinkKind::NvLink, 240);
  }
  sketch.addNet(cpus[0], 24, {0x500U, 1});
  const PathTable paths = shortestPaths(machine, {});
  const GraphSet graphs = searchGraphs(machine, paths, {.interNode = true});
  EXPECT_EQ(validateGraph(machine, paths, graphs.ring, true), std::vector<std::string>{});
  EXPECT_EQ(graphs.ring.channels[0].netOut, -1);
  EXPECT_EQ(validateGraph(machine, paths, graphs.tree, true), std::vector<std::string>{});
  EXPECT_GT(graphs.tree.bwInter, 1);
}

TEST(LastResort, UsesNoNicWhereNoneIsReached) {
  // Both GPUs are under one CPU, the NICs under another that nothing joins to it.
  test::Sketch sketch(CpuKind::Amd);
  for (int i = 0; i < 2; ++i) sketch.addGpu(sketch.cpu, 90, 24);
  sketch.nvLink(0, 1, 100);
  const int other = sketch.machine.addNode(0, 1, CpuFacts{CpuKind::Amd, 1, ""});
  for (unsigned i = 0; i < 2; ++i) sketch.addNet(other, 24, {0x500U + i, 1});
  const PathTable paths = sketch.paths();
  for (const int crossNic : {0, 1, 2}) {
    const SearchSettings settings{.interNode = true, .collNet = true, .crossNic = crossNic};
    EXPECT_EQ(bandwidthBound(sketch.machine, paths, {}, settings), 0);
    const GraphSet graphs = searchGraphs(sketch.machine, paths, settings);
    for (const Graph* graph : {&graphs.ring, &graphs.tree}) {
      EXPECT_EQ(validateGraph(sketch.machine, paths, *graph, true), std::vector<std::string>{});
      EXPECT_EQ(graph->nChannels(), 1);
      EXPECT_EQ(graph->typeInter, PathType::Dis);
    }
    EXPECT_EQ(graphs.collNetChain.nChannels() + graphs.collNetDirect.nChannels(), 0);
  }
}

/// Hosts with a GPU each, joined by NVLink, and with a NIC of such a plane, or none.
test::Sketch hostsOnNvLink(const std::vector<std::optional<int>>& planes) {
  test::Sketch sketch(CpuKind::Amd);
  Machine& machine = sketch.machine;
  const int fabric = machine.addNode(0, 0, NvSwitchFacts{});
  for (std::size_t host = 0; host < planes.size(); ++host) {
    const auto number = static_cast<int>(host);
    const int cpu = host == 0 ? sketch.cpu : machine.addNode(number, 0, CpuFacts{CpuKind::Amd, 0, ""});
    sketch.addGpu(cpu, 80, 24);
    machine.connect(sketch.devices.back(), fabric, LinkKind::NvLink, 240);
    if (planes[host]) sketch.addNet(cpu, 24, {0x500U + host, 1, -1, *planes[host]});
  }
  return sketch;
}

TEST(LastResort, StaysInAPlane) {
  const test::Sketch sketch = hostsOnNvLink({0, 1, 1});
  const PathTable paths = shortestPaths(sketch.machine, {});
  const Graph ring = searchGraphs(sketch.machine, paths, {.interNode = true, .maxChannels = 1}).ring;
  EXPECT_EQ(validateGraph(sketch.machine, paths, ring, true), std::vector<std::string>{});
  EXPECT_NE(ring.channels[0].netIn, sketch.nets[0]);
}

TEST(LastResort, EntersAndLeavesWhereThereAreNics) {
  // No ring stays on one rail.
  const Machine machine = hostsOnNvLink({std::nullopt, -1, -1}).machine;
  const PathTable paths = shortestPaths(machine, {});
  const GraphSet graphs = searchGraphs(machine, paths, {.interNode = true, .crossNic = 0, .maxChannels = 1});
  for (const Graph* graph : {&graphs.ring, &graphs.tree}) {
    EXPECT_EQ(validateGraph(machine, paths, *graph, true), std::vector<std::string>{});
  }
}

}  // namespace
}  // namespace tutti::topo
