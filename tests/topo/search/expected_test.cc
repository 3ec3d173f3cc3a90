// Every known machine in every use: as much bandwidth as the reference reaches, carried by the machine, and what our
// own table says.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "topo/search/known_machines.h"
#include "topo/search/search.h"
#include "topo/search/validate.h"
#include "topo/search/validate_loads.h"

namespace tutti::topo {
namespace {

using test::Expectation;
using test::KnownUse;

constexpr double kRounding = 1e-4;

/// Under a sanitizer, which makes a search thirty times as long, one use of so many is checked; elsewhere every one.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kOneUseOf = 7;
#else
constexpr std::size_t kOneUseOf = 1;
#endif
constexpr const char* kRegenerate =
    "build/tests/topo/print_graphs tests/fixtures/topo > new && mv new tests/fixtures/topo/expected.tsv";

const test::KnownTable& table() {
  static const test::KnownTable kTable = test::readKnownTable(TOPO_FIXTURES);
  return kTable;
}

std::vector<std::string> machines() {
  std::vector<std::string> names;
  for (const test::KnownUse& use : table().uses) {
    if (names.empty() || names.back() != use.machine) names.push_back(use.machine);
  }
  return names;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

void checkAgainstReference(const Topology& topology, const test::Expectation& row, const Graph& graph) {
  EXPECT_GE(graph.nChannels() * graph.bwIntra, row.floorIntra * (1 - kRounding)) << row.graph << " inside the machine";
  if (!topology.interNode) return;
  EXPECT_GE(graph.nChannels() * graph.bwInter, row.floorInter * (1 - kRounding)) << row.graph << " to the network";
}

/// The graph, made wrong in one way after the other, is refused.
void checkRefusals(const Topology& topology, const Graph& good) {
  const auto refused = [&](const char* how, const auto& spoil) {
    Graph bad = good;
    spoil(bad);
    EXPECT_FALSE(validateGraph(topology.machine, topology.paths, bad, topology.interNode).empty())
        << graphName(good.id) << " " << how;
  };
  refused("without a GPU", [](Graph& graph) { graph.channels.back().gpus.pop_back(); });
  refused("with a GPU twice", [](Graph& graph) { graph.channels[0].gpus.push_back(graph.channels[0].gpus[0]); });
  refused("with a CPU for a GPU",
          [&](Graph& graph) { graph.channels[0].gpus[0] = topology.machine.nodes(NodeKind::Cpu)[0]; });
  if (good.channels[0].gpus.size() > 1) {
    refused("a thousand times as fast inside", [](Graph& graph) { graph.bwIntra *= 1000; });
    refused("over no way at all", [](Graph& graph) { graph.typeIntra = PathType::Loc; });
  }
  if (!topology.interNode || good.channels[0].netIn < 0) return;
  refused("a thousand times as fast outside", [](Graph& graph) { graph.bwInter *= 1000; });
  refused("without a NIC", [](Graph& graph) { graph.channels.back().netIn = -1; });
  refused("next to its NICs", [](Graph& graph) { graph.typeInter = PathType::Nvl; });
}

void checkUse(const XmlElement& xml, const test::KnownUse& use) {
  SCOPED_TRACE(use.machine + " " + use.name);
  const Result<Topology> built = test::buildKnown(xml, use);
  ASSERT_TRUE(built.ok());
  const Topology& topology = built.value();
  const GraphSet graphs = searchGraphs(topology.machine, topology.paths, test::searchSettingsOf(use, topology));
  for (const Graph* graph : test::foundGraphs(graphs)) {
    const auto faults = validateGraph(topology.machine, topology.paths, *graph, topology.interNode);
    EXPECT_TRUE(faults.empty()) << joined(faults);
    checkRefusals(topology, *graph);
    const bool listed = std::any_of(use.graphs.begin(), use.graphs.end(), [&](const test::Expectation& row) {
      return test::graphNamed(graphs, row.graph) == graph;
    });
    EXPECT_TRUE(listed) << "new in the table: " << test::rowText(use, *graph, nullptr) << "\n" << kRegenerate;
  }
  for (const test::Expectation& row : use.graphs) {
    const Graph* graph = test::graphNamed(graphs, row.graph);
    ASSERT_NE(graph, nullptr) << row.graph;
    checkAgainstReference(topology, row, *graph);
    EXPECT_EQ(test::foundText(*graph), row.found) << row.graph << " is now\n"
                                                  << test::rowText(use, *graph, &row) << "\n"
                                                  << kRegenerate;
  }
}

/// Calls `body` for the uses of a machine that are checked: the first, and each kOneUseOf-th after it.
template <typename Body>
void forUsesOf(const std::string& machine, const Body& body) {
  std::size_t seen = 0;
  for (const test::KnownUse& use : table().uses) {
    if (use.machine == machine && seen++ % kOneUseOf == 0) body(use);
  }
}

class KnownMachine : public testing::TestWithParam<std::string> {};

TEST_P(KnownMachine, GetsAsMuchAsTheReferenceAndCanCarryIt) {
  const Result<XmlElement> xml = readXmlFile(std::string(TOPO_FIXTURES) + "/" + GetParam() + ".xml");
  ASSERT_TRUE(xml.ok());
  forUsesOf(GetParam(), [&](const test::KnownUse& use) { checkUse(xml.value(), use); });
}

/// Charges of one stream as the search sees them and as the validator does: two pieces of code, one set of rules.
void checkCharges(const Topology& topology, int from, int to) {
  const Machine& machine = topology.machine;
  std::vector<double> ours(static_cast<std::size_t>(machine.linkCount()), 0);
  for (const LinkLoad& load : loadsOf(machine, topology.paths, from, to)) {
    ours[static_cast<std::size_t>(load.link)] += load.factor;
  }
  const std::vector<LinkUse> use = linkUse(machine, topology.paths, {Stream{0, from, to, 1, false}});
  for (std::size_t link = 0; link < use.size(); ++link) {
    EXPECT_NEAR(ours[link], use[link].load, 1e-6)
        << "link " << link << " from " << nodeName(machine, from) << " to " << nodeName(machine, to);
  }
}

void checkWays(const Topology& topology) {
  const Machine& machine = topology.machine;
  for (const int gpu : machine.nodes(NodeKind::Gpu)) {
    for (const NodeKind kind : {NodeKind::Gpu, NodeKind::Net, NodeKind::Cpu, NodeKind::NvSwitch}) {
      for (const int other : machine.nodes(kind)) {
        for (const auto& [from, to] : {std::pair(gpu, other), std::pair(other, gpu)}) {
          if (topology.paths.of(from, to).type >= PathType::Net) continue;
          EXPECT_EQ(routeFault(machine, topology.paths, Stream{0, from, to, 1, false}), "")
              << nodeName(machine, from) << " to " << nodeName(machine, to);
          checkCharges(topology, from, to);
        }
      }
    }
  }
}

TEST_P(KnownMachine, HasWaysThatAreWhatTheySayAndCostTheSameToSearchAndValidator) {
  const Result<XmlElement> xml = readXmlFile(std::string(TOPO_FIXTURES) + "/" + GetParam() + ".xml");
  ASSERT_TRUE(xml.ok());
  forUsesOf(GetParam(), [&](const test::KnownUse& use) {
    if (use.hosts > 4) return;
    SCOPED_TRACE(use.machine + " " + use.name);
    const Result<Topology> built = test::buildKnown(xml.value(), use);
    ASSERT_TRUE(built.ok());
    checkWays(built.value());
  });
}

INSTANTIATE_TEST_SUITE_P(All, KnownMachine, testing::ValuesIn(machines()),
                         [](const testing::TestParamInfo<std::string>& machine) { return machine.param; });

TEST(KnownMachines, AreThereWithAllTheirUses) {
  EXPECT_EQ(table().error, "");
  EXPECT_GE(machines().size(), 56U);
  EXPECT_GE(table().uses.size(), 540U);
}

}  // namespace
}  // namespace tutti::topo
