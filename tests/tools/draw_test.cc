#include "tutti_topo/draw.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <pugixml.hpp>
#include <set>

#include "topo/machine/path_settings.h"
#include "topo/search/topology.h"
#include "topo/xml/topology_xml.h"
#include "tutti_topo/draw_channels.h"
#include "tutti_topo/draw_layout.h"
#include "tutti_topo/draw_legend.h"
#include "tutti_topo/draw_text.h"
#include "tutti_topo/draw_tree.h"

namespace tutti::tool {
namespace {

topo::Topology topologyOf(const std::string& name, const topo::TopologyUse& use = {}) {
  const char* root = std::getenv("TUTTI_TEST_SOURCE_ROOT");
  const std::string folder = std::string(root == nullptr ? "." : root) + "/tests/fixtures/topo/";
  Result<topo::XmlElement> xml = topo::readTopologyFile(folder + name + ".xml");
  EXPECT_TRUE(xml.ok()) << name;
  if (!xml.ok()) return {};
  Result<topo::Topology> topology = topo::buildTopology(xml.value(), use, topo::PathSettings{});
  EXPECT_TRUE(topology.ok()) << name;
  return topology.ok() ? std::move(topology).value() : topo::Topology{};
}

/// A ring graph whose channel c begins at GPU c; with NICs where `nets`.
topo::Graph turnedRings(const topo::Machine& machine, int channels, bool nets) {
  topo::Graph graph;
  graph.bwIntra = 20;
  graph.bwInter = 20;
  const auto gpus = machine.nodes(topo::NodeKind::Gpu);
  const auto ports = machine.nodes(topo::NodeKind::Net);
  for (int c = 0; c < channels; ++c) {
    topo::GraphChannel channel;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      channel.gpus.push_back(gpus[(i + static_cast<std::size_t>(c)) % gpus.size()]);
    }
    if (nets && !ports.empty()) channel.netIn = channel.netOut = ports[static_cast<std::size_t>(c) % ports.size()];
    graph.channels.push_back(channel);
  }
  return graph;
}

bool overlap(const Rect& a, const Rect& b) {
  return a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom();
}

bool inside(const Rect& part, const Rect& whole) {
  return part.x >= whole.x && part.y >= whole.y && part.right() <= whole.right() && part.bottom() <= whole.bottom();
}

bool isContainer(const Box& box) {
  return box.kind == BoxKind::Host || box.kind == BoxKind::Socket;
}

void expectTidy(const Layout& layout, const std::string& what) {
  const Rect picture{0, 0, layout.width, layout.height};
  for (std::size_t i = 0; i < layout.boxes.size(); ++i) {
    const Box& a = layout.boxes[i];
    EXPECT_TRUE(inside(a.at, picture)) << what << ": " << a.title;
    for (std::size_t j = i + 1; j < layout.boxes.size(); ++j) {
      const Box& b = layout.boxes[j];
      if (!overlap(a.at, b.at)) continue;
      EXPECT_TRUE(isContainer(a) && inside(b.at, a.at)) << what << ": " << a.title << " and " << b.title << " overlap";
    }
  }
  for (const Wire& wire : layout.wires) {
    for (const Point& point : wire.points) {
      EXPECT_TRUE(inside({point.x, point.y, 0, 0}, picture)) << what << ": " << wire.tip;
    }
  }
}

void expectTextsFit(const Layout& layout, const std::string& what) {
  const Metrics& m = layout.metrics;
  for (const Box& box : layout.boxes) {
    if (box.kind == BoxKind::Host) continue;
    const double size = box.kind == BoxKind::Gpu || box.kind == BoxKind::NvSwitch ? m.titleSize : m.textSize;
    EXPECT_LE(textWidth(box.title, size, true), box.at.w) << what << ": " << box.title;
    EXPECT_LE(textWidth(box.detail, m.textSize), box.at.w) << what << ": " << box.detail;
    EXPECT_LE(textWidth(box.more, m.textSize), box.at.w) << what << ": " << box.more;
  }
}

const std::vector<std::string> kMachines = {"own_dgx1v",
                                            "own_dgx_h100",
                                            "own_dgx_b300",
                                            "own_gb200_tray",
                                            "own_h100_16gpu",
                                            "own_ac922_4gpu",
                                            "azure_ndv4",
                                            "aws_p4d",
                                            "simai_a100x8_5cx6",
                                            "yccl_l20x16",
                                            "yccl_a6000x4",
                                            "sugarlxn_4090x4",
                                            "modal_b200",
                                            "own_single_gpu_socket",
                                            "own_gb10_spark",
                                            "oci_b4_flattened",
                                            "own_pcie8_l40s_2switch_4nic"};

TEST(DrawLayout, PutsNoTwoBoxesOverEachOtherAndAllInsideThePicture) {
  for (const std::string& name : kMachines) {
    const topo::Topology topology = topologyOf(name);
    const topo::Graph graph = turnedRings(topology.machine, 2, true);
    const Layout layout = layoutMachine(topology.machine, hopsOf(graph, graph.channels[0]));
    expectTidy(layout, name);
    expectTextsFit(layout, name);
  }
}

TEST(DrawLayout, IsTidyWithSeventyTwoGpusOfEighteenHosts) {
  const topo::Topology topology = topologyOf("own_gb200_tray", {.hosts = 18});
  const Layout layout = layoutMachine(topology.machine, {});
  EXPECT_EQ(topology.machine.nodes(topo::NodeKind::Gpu).size(), 72u);
  expectTidy(layout, "72 GPUs");
  expectTextsFit(layout, "72 GPUs");
  EXPECT_TRUE(layout.halves);
}

TEST(DrawLayout, HasABoxForEveryGpuAndNic) {
  for (const std::string& name : kMachines) {
    const topo::Topology topology = topologyOf(name);
    const Layout layout = layoutMachine(topology.machine, {});
    for (const topo::NodeKind kind : {topo::NodeKind::Cpu, topo::NodeKind::Switch, topo::NodeKind::Gpu,
                                      topo::NodeKind::Net, topo::NodeKind::NvSwitch}) {
      for (const int node : topology.machine.nodes(kind)) EXPECT_NE(layout.find(node), nullptr) << name << node;
    }
  }
}

TEST(DrawLayout, TurnsTheLowerHalfRoundWhereThatShortensTheRing) {
  const topo::Topology topology = topologyOf("own_dgx_h100");
  const auto gpus = topology.machine.nodes(topo::NodeKind::Gpu);
  const topo::Graph ring = turnedRings(topology.machine, 1, false);
  const Layout turned = layoutMachine(topology.machine, hopsOf(ring, ring.channels[0]));
  EXPECT_DOUBLE_EQ(turned.find(gpus[3])->at.x, turned.find(gpus[4])->at.x);
  const Layout straight = layoutMachine(topology.machine, {{gpus[0], gpus[4]}, {gpus[3], gpus[7]}});
  EXPECT_DOUBLE_EQ(straight.find(gpus[0])->at.x, straight.find(gpus[4])->at.x);
}

TEST(DrawLayout, PutsNicsBeyondTheFirstFewIntoOneBox) {
  const topo::Topology topology = topologyOf("yccl_a6000x4", {.interNode = true});
  const auto nets = topology.machine.nodes(topo::NodeKind::Net);
  ASSERT_EQ(nets.size(), 10u);
  const Layout layout = layoutMachine(topology.machine, {});
  EXPECT_NE(layout.find(nets[0]), layout.find(nets[1]));
  EXPECT_EQ(layout.find(nets[4]), layout.find(nets[9]));
  EXPECT_EQ(layout.find(nets[4])->title, "6 more");
  expectTidy(layout, "many NICs");
}

TEST(DrawLayout, FitsAnyTextIntoItsWidth) {
  EXPECT_EQ(fittingText({"GPU 0", "0"}, 100, 12), "GPU 0");
  EXPECT_EQ(fittingText({"a long name of something", "short"}, 50, 12), "short");
  EXPECT_LE(textWidth(fittingText({"äöüäöüäöüäöüäöü"}, 60, 12), 12), 60);
  EXPECT_EQ(fittingText({"anything"}, 0, 12), "");
}

TEST(DrawText, ReplacesWhatNoTerminalOrDocumentTakes) {
  EXPECT_EQ(cleanText("mlx5_0 ä € 🙂"), "mlx5_0 ä € 🙂");
  EXPECT_EQ(cleanText("a\x1b[31m\n\x7f"), "a?[31m\?\?");
  EXPECT_EQ(cleanText("\xff\xc3(\xe2\x82"), "\?\?(\?\?");
  EXPECT_EQ(cleanText("\xc0\xaf\xed\xa0\x80\xef\xbf\xbf\xc2\x85"), std::string(10, '?'));
}

TEST(DrawChannels, JoinChannelsThatTakeTheSameWay) {
  const topo::Topology topology = topologyOf("own_dgx_h100");
  topo::Graph graph = turnedRings(topology.machine, 2, false);
  graph.channels.push_back(graph.channels[0]);
  const std::vector<Bundle> bundles = bundlesOf(graph, {}, 1000);
  ASSERT_EQ(bundles.size(), 2u);
  EXPECT_EQ(bundles[0].channels, (std::vector<int>{0, 2}));
  EXPECT_FLOAT_EQ(bundles[0].bandwidth, 40);
  EXPECT_EQ(rangesText({0, 1, 2, 5, 7, 8}), "0–2 5 7 8");
}

TEST(DrawChannels, CloseTheRingOnOneMachineAndEndAtNicsOnSeveral) {
  const topo::Topology topology = topologyOf("own_dgx_h100");
  const topo::Graph one = turnedRings(topology.machine, 1, false);
  EXPECT_EQ(hopsOf(one, one.channels[0]).size(), 8u);
  EXPECT_EQ(hopsOf(one, one.channels[0]).back().second, one.channels[0].gpus.front());
  const topo::Graph several = turnedRings(topology.machine, 1, true);
  const Hops hops = hopsOf(several, several.channels[0]);
  EXPECT_EQ(hops.size(), 9u);
  EXPECT_EQ(hops.front().first, several.channels[0].netIn);
  EXPECT_EQ(hops.back().second, several.channels[0].netOut);
}

TEST(DrawChannels, GiveEveryEndAtAGpuAPlaceOfItsOwn) {
  const topo::Topology topology = topologyOf("own_dgx1v");
  const topo::Graph graph = turnedRings(topology.machine, 6, false);
  const std::vector<Bundle> bundles = bundlesOf(graph, {}, 1000);
  const Layout layout = layoutMachine(topology.machine, hopsOf(graph, graph.channels[0]));
  std::set<std::pair<double, double>> ends;
  const std::vector<Curve> curves = curvesOf(layout, graph, bundles, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(curves.size(), 48u);
  for (const Curve& curve : curves) {
    EXPECT_TRUE(ends.insert({curve.points.front().x, curve.points.front().y}).second);
    EXPECT_TRUE(ends.insert({curve.points.back().x, curve.points.back().y}).second);
    for (double t = 0; t <= 1; t += 0.1) {
      const Point at = pointAt(curve.points, t);
      EXPECT_GE(at.y, layout.fabric.y - layout.metrics.pad);
      EXPECT_LE(at.y, layout.fabric.bottom() + layout.metrics.pad);
    }
  }
}

TEST(DrawChannels, HaveColoursOfTheirOwn) {
  std::set<std::string> colours;
  for (std::size_t i = 0; i < 32; ++i) colours.insert(channelColour(i));
  EXPECT_EQ(colours.size(), 32u);
}

pugi::xml_document parsedSvg(const std::string& svg) {
  pugi::xml_document document;
  EXPECT_TRUE(document.load_string(svg.c_str())) << svg.substr(0, 200);
  return document;
}

/// Of the channels' groups: bundle number -> is it shown?
std::map<std::string, bool> shownBundles(const pugi::xml_document& document) {
  std::map<std::string, bool> shown;
  for (const pugi::xpath_node& group : document.select_nodes("//*[@class='c']")) {
    shown[group.node().attribute("data-b").value()] = !group.node().attribute("display");
  }
  return shown;
}

TEST(DrawMachine, WritesWellFormedXmlThatNamesEveryGpu) {
  for (const std::string& name : kMachines) {
    const topo::Topology topology = topologyOf(name);
    const topo::Graph graph = turnedRings(topology.machine, 3, true);
    const std::string svg = drawMachine(topology.machine, {.title = name + " <&\"\x01>", .graph = &graph});
    const pugi::xml_document document = parsedSvg(svg);
    std::set<std::string> texts;
    for (const pugi::xpath_node& text : document.select_nodes("//text")) texts.insert(text.node().child_value());
    for (const int gpu : topology.machine.nodes(topo::NodeKind::Gpu)) {
      EXPECT_TRUE(texts.count("GPU " + gpuLabel(topology.machine, gpu))) << name;
    }
  }
}

TEST(DrawMachine, ShowsTheChannelsThatWereChosenAndKeepsTheOthersHidden) {
  const topo::Topology topology = topologyOf("own_dgx_h100");
  const topo::Graph graph = turnedRings(topology.machine, 4, false);
  const auto all = shownBundles(parsedSvg(drawMachine(topology.machine, {.title = "x", .graph = &graph})));
  EXPECT_EQ(all, (std::map<std::string, bool>{{"0", true}, {"1", true}, {"2", true}, {"3", true}}));
  const auto some =
      shownBundles(parsedSvg(drawMachine(topology.machine, {.title = "x", .graph = &graph, .channels = {1, 3, 99}})));
  EXPECT_EQ(some, (std::map<std::string, bool>{{"0", false}, {"1", true}, {"2", false}, {"3", true}}));
}

TEST(DrawMachine, ShowsOnlyTheFirstChannelsWhereAllWouldHideEachOther) {
  const topo::Topology topology = topologyOf("own_gb200_tray", {.hosts = 18});
  const topo::Graph graph = turnedRings(topology.machine, 16, false);
  const auto shown = shownBundles(parsedSvg(drawMachine(topology.machine, {.title = "rack", .graph = &graph})));
  EXPECT_EQ(shown.size(), 16u);
  EXPECT_TRUE(shown.at("0"));
  EXPECT_FALSE(shown.at("15"));
}

TEST(DrawMachine, DrawsTheMachineAloneWithoutAGraph) {
  const topo::Topology topology = topologyOf("own_dgx1v");
  const std::string svg = drawMachine(topology.machine, {.title = "alone"});
  EXPECT_TRUE(shownBundles(parsedSvg(svg)).empty());
}

TEST(DrawLegend, KeepsItsRowsApartAndInsideThePicture) {
  for (const int hosts : {1, 18}) {
    const topo::Topology topology = topologyOf("own_gb200_tray", {.hosts = hosts});
    const topo::Graph graph = turnedRings(topology.machine, 32, true);
    const DrawOptions options{.title = "a machine with a name that is longer than the legend is wide, by far",
                              .graph = &graph};
    const std::vector<Bundle> bundles = bundlesOf(graph, {}, 100);
    Layout layout = layoutMachine(topology.machine, hopsOf(graph, graph.channels[0]));
    const std::vector<LegendRow> rows = placeLegend(layout, topology.machine, options, bundles);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_TRUE(inside(rows[i].at, {0, 0, layout.width, layout.height})) << rows[i].text;
      for (const Box& box : layout.boxes) EXPECT_FALSE(overlap(box.at, rows[i].at)) << rows[i].text;
      for (std::size_t j = i + 1; j < rows.size(); ++j) EXPECT_FALSE(overlap(rows[i].at, rows[j].at)) << rows[i].text;
      EXPECT_LE(textWidth(rows[i].text, legendTextSize(rows[i].kind)), rows[i].at.w) << rows[i].text;
    }
  }
}

TEST(DrawTree, HangsEveryGpuAndNicUnderACpu) {
  for (const std::string& name : kMachines) {
    const topo::Topology topology = topologyOf(name);
    const MachineTree tree = treeOf(topology.machine);
    for (const topo::NodeKind kind : {topo::NodeKind::Gpu, topo::NodeKind::Net}) {
      for (int node : topology.machine.nodes(kind)) {
        for (int steps = 0; steps < 20 && tree.parent[static_cast<std::size_t>(node)] >= 0; ++steps) {
          node = tree.parent[static_cast<std::size_t>(node)];
        }
        EXPECT_EQ(topology.machine.node(node).kind(), topo::NodeKind::Cpu) << name;
      }
    }
  }
}

TEST(DrawTree, NamesGpusByRankWhereIndicesRepeat) {
  const topo::Topology one = topologyOf("own_gb200_tray", {.gpus = {2, 3}});
  EXPECT_EQ(gpuLabel(one.machine, one.machine.nodes(topo::NodeKind::Gpu)[0]), "2");
  const topo::Topology two = topologyOf("own_gb200_tray", {.hosts = 2});
  EXPECT_EQ(gpuLabel(two.machine, two.machine.nodes(topo::NodeKind::Gpu)[5]), "5");
}

TEST(DrawTree, ShortensLongOrdersInTheMiddle) {
  const topo::Topology topology = topologyOf("own_dgx_h100");
  const auto nodes = topology.machine.nodes(topo::NodeKind::Gpu);
  const std::vector<int> gpus(nodes.begin(), nodes.end());
  EXPECT_EQ(orderText(topology.machine, gpus), "0 1 2 3 4 5 6 7");
  EXPECT_EQ(orderText(topology.machine, gpus, 4), "0 1 … 6 7");
}

}  // namespace
}  // namespace tutti::tool
