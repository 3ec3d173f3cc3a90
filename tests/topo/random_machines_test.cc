// What must hold on any machine, tried on many that were drawn by lot.
#include "topo/random_machines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "topo/search.h"
#include "topo/validate.h"

namespace tutti {
namespace {

using test::buildSketch;
using test::describe;
using test::drawMachine;
using test::Lot;
using test::MachineSketch;

constexpr std::uint64_t kMachines = 150;
constexpr double kRounding = 1e-3;

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

SearchSettings settingsOf(const Topology& topology) {
  SearchSettings settings;
  settings.interNode = topology.interNode;
  settings.collNet = topology.interNode;
  return settings;
}

GraphSet search(const Topology& topology) {
  return searchGraphs(topology.machine, topology.paths, settingsOf(topology));
}

std::array<const Graph*, 5> all(const GraphSet& set) {
  return {&set.ring, &set.tree, &set.collNetChain, &set.collNetDirect, &set.nvls};
}

double intraOf(const Graph& graph) {
  return graph.nChannels() * static_cast<double>(graph.bwIntra);
}
double interOf(const Graph& graph) {
  return graph.nChannels() * static_cast<double>(graph.bwInter);
}

std::string textOf(const Graph& graph) {
  std::string text = std::string(graphName(graph.id)) + " " + patternName(graph.pattern) + " " +
                     std::to_string(graph.nChannels()) + " x " + std::to_string(graph.bwIntra) + "/" +
                     std::to_string(graph.bwInter) + " " + pathTypeName(graph.typeIntra) + "/" +
                     pathTypeName(graph.typeInter) + " crossNic " + std::to_string(graph.crossNic) + " same " +
                     std::to_string(graph.sameChannels);
  for (const GraphChannel& channel : graph.channels) {
    text += "\n  " + std::to_string(channel.netIn);
    for (const int gpu : channel.gpus) text += " " + std::to_string(gpu);
    text += " " + std::to_string(channel.netOut);
  }
  return text;
}

/// Calls `body(sketch, interNode)` for every machine of the lot, alone and as one of several.
template <typename Body>
void forAllMachines(const Body& body) {
  for (std::uint64_t seed = 0; seed < kMachines; ++seed) {
    const MachineSketch sketch = drawMachine(seed);
    for (const bool interNode : {false, true}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + (interNode ? ", several: " : ", one: ") + describe(sketch));
      body(sketch, interNode);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(RandomMachines, CarryEveryGraphThatIsFound) {
  forAllMachines([](const MachineSketch& sketch, bool interNode) {
    const Result<Topology> built = buildSketch(sketch, interNode);
    ASSERT_TRUE(built.ok());
    const Topology& topology = built.value();
    const GraphSet graphs = search(topology);
    for (const Graph* graph : all(graphs)) {
      const auto faults = validateGraph(topology.machine, topology.paths, *graph, topology.interNode);
      EXPECT_TRUE(faults.empty()) << joined(faults) << textOf(*graph);
    }
    EXPECT_EQ(graphs.ring.nChannels(), graphs.tree.nChannels());
  });
}

TEST(RandomMachines, NeverCarryMoreThanTheBound) {
  forAllMachines([](const MachineSketch& sketch, bool interNode) {
    const Result<Topology> built = buildSketch(sketch, interNode);
    ASSERT_TRUE(built.ok());
    const Topology& topology = built.value();
    const SearchSettings settings = settingsOf(topology);
    const GraphSet graphs = searchGraphs(topology.machine, topology.paths, settings);
    for (const Graph* graph : all(graphs)) {
      if (graph->nChannels() == 0) continue;
      const GraphRequest request{graph->id, graph->pattern, 1, 64};
      const double bound = bandwidthBound(topology.machine, topology.paths, request, settings);
      const double carried = topology.interNode ? std::min(intraOf(*graph), interOf(*graph)) : intraOf(*graph);
      EXPECT_LE(carried, bound * (1 + kRounding)) << textOf(*graph);
    }
  });
}

TEST(RandomMachines, GiveTheSameGraphsEveryTime) {
  forAllMachines([](const MachineSketch& sketch, bool interNode) {
    std::array<std::string, 2> texts;
    for (std::string& text : texts) {
      const Result<Topology> built = buildSketch(sketch, interNode);
      ASSERT_TRUE(built.ok());
      const GraphSet graphs = search(built.value());
      for (const Graph* graph : all(graphs)) text += textOf(*graph) + "\n";
    }
    EXPECT_EQ(texts[0], texts[1]);
  });
}

TEST(RandomMachines, NeverCarryLessWithAnNvLinkMore) {
  forAllMachines([](const MachineSketch& sketch, bool interNode) {
    MachineSketch more = sketch;
    Lot lot(7);
    if (!test::addNvLink(more, lot)) return;
    const Result<Topology> before = buildSketch(sketch, interNode);
    const Result<Topology> after = buildSketch(more, interNode);
    ASSERT_TRUE(before.ok() && after.ok());
    const GraphSet old = search(before.value());
    const GraphSet now = search(after.value());
    EXPECT_GE(intraOf(now.ring), intraOf(old.ring) * (1 - kRounding)) << textOf(old.ring) << "\n" << textOf(now.ring);
    if (!before.value().interNode) return;
    EXPECT_GE(interOf(now.ring), interOf(old.ring) * (1 - kRounding)) << textOf(old.ring) << "\n" << textOf(now.ring);
  });
}

TEST(RandomMachines, CarryTheSameHoweverTheirGpusAreNumbered) {
  forAllMachines([](const MachineSketch& sketch, bool interNode) {
    MachineSketch renumbered = sketch;
    Lot lot(11);
    test::renumberGpus(renumbered, lot);
    const Result<Topology> before = buildSketch(sketch, interNode);
    const Result<Topology> after = buildSketch(renumbered, interNode);
    ASSERT_TRUE(before.ok() && after.ok());
    if (before.value().groupOf != after.value().groupOf) return;  // another group's machine
    const GraphSet old = search(before.value());
    const GraphSet now = search(after.value());
    EXPECT_NEAR(intraOf(now.ring), intraOf(old.ring), kRounding * intraOf(old.ring));
    EXPECT_NEAR(interOf(now.ring), interOf(old.ring), kRounding * interOf(old.ring));
  });
}

}  // namespace
}  // namespace tutti
