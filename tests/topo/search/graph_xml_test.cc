#include "topo/search/graph_xml.h"

#include <gtest/gtest.h>

#include "support/log_capture.h"
#include "topo/machine/lines.h"

namespace tutti::topo {
namespace {

/// `hosts` of two GPUs (NVML 2 and 5) and two NICs (0 and 1) each; ranks continue from host to host.
Machine twoGpuHosts(int hosts) {
  Machine machine;
  const int nvSwitch = machine.addNode(0, 0, NvSwitchFacts{});
  for (int host = 0; host < hosts; ++host) {
    const int cpu = machine.addNode(host, 0, CpuFacts{.kind = CpuKind::IntelSkylake});
    for (int i = 0; i < 2; ++i) {
      const int dev = i == 0 ? 2 : 5;
      const auto busId = static_cast<std::uint64_t>(0x10000 * (i + 1));
      const int bridge = machine.addNode(host, busId, SwitchFacts{.deviceId = 0xabc});
      const int device = machine.addNode(host, busId + 0x1000, DeviceFacts{.dev = dev, .sm = 90, .gdr = true});
      const int gpu =
          machine.addNode(host, busId + 0x1000, GpuFacts{.rank = host * 2 + i, .dev = dev, .device = device, .sm = 90});
      const int nic = machine.addNode(host, busId + 0x2000, NicFacts{});
      const int net =
          machine.addNode(host, static_cast<std::uint64_t>(i), NetFacts{.name = "mlx5_0", .dev = i, .guid = 7});
      machine.connect(cpu, bridge, LinkKind::Pci, 48);
      machine.connect(bridge, device, LinkKind::Pci, 48);
      machine.connect(device, gpu, LinkKind::Local, 5000);
      machine.connect(device, nvSwitch, LinkKind::NvLink, 370.8f);
      machine.connect(bridge, nic, LinkKind::Pci, 48);
      machine.connect(nic, net, LinkKind::Net, 50);
    }
  }
  machine.sortLinks();
  return machine;
}

std::vector<int> gpusOf(const Machine& machine) {
  const std::span<const int> gpus = machine.nodes(NodeKind::Gpu);
  return {gpus.begin(), gpus.end()};
}

/// A set as a search over two nodes gives it: two rings, two trees, heads for NVLS.
GraphSet someGraphs(const Machine& machine) {
  const std::vector<int> gpus = gpusOf(machine);
  const std::vector<int> back(gpus.rbegin(), gpus.rend());
  const std::span<const int> nets = machine.nodes(NodeKind::Net);
  GraphSet set;
  set.ring = {.id = GraphId::Ring,
              .pattern = Pattern::Ring,
              .crossNic = 2,
              .bwIntra = 45.1f,
              .bwInter = 0.24f,
              .latencyInter = 1.5f,
              .typeIntra = PathType::Nvl,
              .typeInter = PathType::P2c,
              .channels = {{gpus, nets[0], nets[1]}, {back, nets[1], nets[0]}}};
  set.tree = {.id = GraphId::Tree,
              .pattern = Pattern::BalancedTree,
              .sameChannels = true,
              .bwIntra = 20,
              .bwInter = 12,
              .typeIntra = PathType::Sys,
              .typeInter = PathType::Pxn,
              .channels = {{back, nets[1], nets[1]}}};
  set.collNetChain = {.id = GraphId::CollNetChain, .pattern = Pattern::Tree};
  set.collNetDirect = {.id = GraphId::CollNetDirect, .pattern = Pattern::CollNetDirect};
  set.nvls = {.id = GraphId::Nvls,
              .pattern = Pattern::Nvls,
              .bwIntra = 60,
              .bwInter = 48,
              .typeIntra = PathType::Nvl,
              .channels = {{gpus, nets[0], nets[0]}}};
  return set;
}

void expectEqualGraphs(const Graph& a, const Graph& b) {
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.pattern, b.pattern);
  EXPECT_EQ(a.crossNic, b.crossNic);
  EXPECT_EQ(a.sameChannels, b.sameChannels);
  EXPECT_FLOAT_EQ(a.bwIntra, b.bwIntra);
  EXPECT_FLOAT_EQ(a.bwInter, b.bwInter);
  EXPECT_FLOAT_EQ(a.latencyInter, b.latencyInter);
  EXPECT_EQ(a.typeIntra, b.typeIntra);
  EXPECT_EQ(a.typeInter, b.typeInter);
  ASSERT_EQ(a.nChannels(), b.nChannels());
  for (std::size_t c = 0; c < a.channels.size(); ++c) {
    EXPECT_EQ(a.channels[c].gpus, b.channels[c].gpus);
    EXPECT_EQ(a.channels[c].netIn, b.channels[c].netIn);
    EXPECT_EQ(a.channels[c].netOut, b.channels[c].netOut);
  }
}

TEST(GraphXml, ReadsWhatItWrote) {
  for (const int hosts : {1, 2}) {
    const Machine machine = twoGpuHosts(hosts);
    const GraphSet set = someGraphs(machine);
    const auto written = writeGraphs(machine, set);
    ASSERT_TRUE(written.ok());
    const auto xml = parseXml(writeXml(written.value()), "g.xml");
    ASSERT_TRUE(xml.ok());
    const auto again = readGraphs(machine, xml.value(), true);
    ASSERT_TRUE(again.ok());
    expectEqualGraphs(set.ring, again.value().ring);
    expectEqualGraphs(set.tree, again.value().tree);
    expectEqualGraphs(set.collNetChain, again.value().collNetChain);
    expectEqualGraphs(set.collNetDirect, again.value().collNetDirect);
    expectEqualGraphs(set.nvls, again.value().nvls);
  }
}

TEST(GraphXml, WritesGraphsInNcclsOrderAndShape) {
  const Machine machine = twoGpuHosts(2);
  const auto written = writeGraphs(machine, someGraphs(machine));
  ASSERT_TRUE(written.ok());
  const XmlElement& root = written.value();
  std::string ids;
  for (const XmlElement& graph : root.children) ids += *graph.find("id");
  EXPECT_EQ(ids, "01423");
  const std::string text = writeXml(root);
  const std::string begin =
      "<graphs version=\"1\">\n"
      "  <graph id=\"0\" pattern=\"4\" crossnic=\"2\" nchannels=\"2\" speedintra=\"45.1\" speedinter=\"0.24\" "
      "latencyinter=\"1.5\" typeintra=\"NVL\" typeinter=\"P2C\" samechannels=\"0\">\n"
      "    <channel>\n"
      "      <net dev=\"0\"/>\n"
      "      <gpu dev=\"0x2\" rank=\"0\"/>\n"
      "      <gpu dev=\"0x5\" rank=\"1\"/>\n"
      "      <gpu dev=\"0x100000000000002\" rank=\"2\"/>\n"
      "      <gpu dev=\"0x100000000000005\" rank=\"3\"/>\n"
      "      <net dev=\"0x1\"/>\n"
      "    </channel>\n";
  EXPECT_EQ(text.substr(0, begin.size()), begin);
  EXPECT_NE(text.find("<graph id=\"4\" pattern=\"6\" crossnic=\"0\" nchannels=\"0\""), std::string::npos);
  const XmlElement& head = root.children.at(4).children.at(0);
  EXPECT_EQ(head.children.size(), 3u);  // one GPU between two NICs
}

constexpr const char* kRing =
    "<graph id=\"0\" pattern=\"4\" crossnic=\"0\" nchannels=\"1\" speedintra=\"40\" speedinter=\"40\" "
    "typeintra=\"NVL\" "
    "typeinter=\"PIX\" samechannels=\"1\">\n";

/// A file with one graph that has one channel with that in it, beginning in line 4.
std::string inChannel(const std::string& content, const std::string& graph = kRing) {
  return "<graphs version=\"1\">\n" + graph + "<channel>\n" + content + "</channel></graph></graphs>";
}

Result<GraphSet> readText(const std::string& text, int hosts = 1, bool interNode = false) {
  ASSIGN(const XmlElement xml, parseXml(text, "g.xml"));
  return readGraphs(twoGpuHosts(hosts), xml, interNode);
}

TEST(GraphXml, FindsGpusByIndexWhereAnOlderFileHasNoRanks) {
  const auto set = readText(inChannel("<gpu dev=\"5\"/><gpu dev=\"0x2\"/>"));
  ASSERT_TRUE(set.ok());
  const std::vector<int> gpus = gpusOf(twoGpuHosts(1));
  EXPECT_EQ(set.value().ring.channels.at(0).gpus, (std::vector<int>{gpus[1], gpus[0]}));
  EXPECT_EQ(set.value().ring.channels[0].netIn, -1);
  EXPECT_EQ(set.value().tree.nChannels(), 0);
}

TEST(GraphXml, TakesRanksRatherThanIndices) {
  const auto set = readText(inChannel("<gpu dev=\"0x63\" rank=\"1\"/><gpu rank=\"0\"/>"));
  ASSERT_TRUE(set.ok());
  const std::vector<int> gpus = gpusOf(twoGpuHosts(1));
  EXPECT_EQ(set.value().ring.channels.at(0).gpus, (std::vector<int>{gpus[1], gpus[0]}));
}

TEST(GraphXml, FindsDevicesOfTheRightHost) {
  const auto set = readText(
      inChannel("<net dev=\"0x100000000000000\"/><gpu dev=\"0x100000000000005\"/><gpu dev=\"2\"/><gpu dev=\"5\"/>"
                "<gpu dev=\"0x100000000000002\"/><net dev=\"1\"/>"),
      2, true);
  ASSERT_TRUE(set.ok());
  const Machine machine = twoGpuHosts(2);
  const GraphChannel& channel = set.value().ring.channels.at(0);
  EXPECT_EQ(machine.node(channel.netIn).system, 1);
  EXPECT_EQ(machine.facts<NetFacts>(channel.netOut).dev, 1);
  EXPECT_EQ(machine.facts<GpuFacts>(channel.gpus[0]).rank, 3);
}

TEST(GraphXml, IgnoresWhatItDoesNotKnow) {
  const auto set = readText(
      "<graphs version=\"1\" name=\"x\"><comment/><graph id=\"9\"/>"
      "<graph id=\"1\" pattern=\"2\" crossnic=\"0\" nchannels=\"5\" speedintra=\"1\" speedinter=\"0\" "
      "typeintra=\"FAR\" "
      "typeinter=\"DIS\" samechannels=\"0\"><hint/><channel><gpu rank=\"0\"/><hint/><gpu rank=\"1\"/></channel></graph>"
      "</graphs>");
  ASSERT_TRUE(set.ok());
  EXPECT_EQ(set.value().tree.pattern, Pattern::SplitTree);
  EXPECT_EQ(set.value().tree.nChannels(), 1);
  EXPECT_EQ(set.value().tree.typeIntra, PathType::Loc);
  EXPECT_EQ(set.value().tree.typeInter, PathType::Dis);
}

std::string graphWith(const std::string& attribute, const std::string& value) {
  XmlElement graph{.name = "graph"};
  for (const auto& [name, usual] : std::vector<std::pair<std::string, std::string>>{{"id", "0"},
                                                                                    {"pattern", "4"},
                                                                                    {"crossnic", "0"},
                                                                                    {"nchannels", "1"},
                                                                                    {"speedintra", "40"},
                                                                                    {"speedinter", "40"},
                                                                                    {"typeintra", "NVL"},
                                                                                    {"typeinter", "PIX"},
                                                                                    {"samechannels", "1"}}) {
    if (name != attribute) graph.set(name, usual);
  }
  if (value != "missing") graph.set(attribute, value);
  std::string text = writeXml(graph);
  text.replace(text.find("/>"), 2, ">");
  return text;
}

struct Broken {
  std::string text;
  const char* message;
};

const std::string kBothGpus = "<gpu rank=\"0\"/><gpu rank=\"1\"/>";

class BrokenGraphs : public testing::TestWithParam<Broken> {};

TEST_P(BrokenGraphs, AreRefusedWithPlaceAndReason) {
  test::expectLog(GetParam().message);
  EXPECT_EQ(readText(GetParam().text).status().code(), ncclInvalidUsage);
}

INSTANTIATE_TEST_SUITE_P(
    Files, BrokenGraphs,
    testing::Values(Broken{"<graph/>", "g.xml, line 1, <graph>: the root of a graph file is <graphs>"},
                    Broken{"<system version=\"1\"/>", "this is a topology file (NCCL_TOPO_FILE)"},
                    Broken{"<graphs/>", "<graphs>: the attribute 'version' is missing"},
                    Broken{"<graphs version=\"2\"/>", "<graphs>: version=\"2\": files of version 1 are read"},
                    Broken{"<graphs version=\"1\">\n<graph/></graphs>", "g.xml, line 2, <graph>: the attribute 'id'"},
                    Broken{"<graphs version=\"1\">\n" + std::string(kRing) + "</graph>\n" + kRing + "</graph></graphs>",
                           "g.xml, line 4, <graph>: id=\"0\" is already that of g.xml, line 2, <graph>"}));

INSTANTIATE_TEST_SUITE_P(
    Headers, BrokenGraphs,
    testing::Values(
        Broken{inChannel(kBothGpus, graphWith("pattern", "missing")), "<graph>: the attribute 'pattern' is missing"},
        Broken{inChannel(kBothGpus, graphWith("pattern", "7")), "<graph>: pattern=\"7\" is not within 1 and 6"},
        Broken{inChannel(kBothGpus, graphWith("pattern", "RING")), "<graph>: pattern=\"RING\" is not an integer"},
        Broken{inChannel(kBothGpus, graphWith("pattern", "1")),
               "the ring graph cannot have the pattern 1 (BALANCED_TREE)"},
        Broken{inChannel(kBothGpus, graphWith("crossnic", "3")), "<graph>: crossnic=\"3\" is not within 0 and 2"},
        Broken{inChannel(kBothGpus, graphWith("nchannels", "missing")), "the attribute 'nchannels' is missing"},
        Broken{inChannel(kBothGpus, graphWith("speedintra", "0")), "speedintra=\"0\" of a graph with channels"},
        Broken{inChannel(kBothGpus, graphWith("speedinter", "-2")),
               "speedinter=\"-2\" is not a number of zero or more"},
        Broken{inChannel(kBothGpus, graphWith("typeintra", "missing")), "the attribute 'typeintra' is missing"},
        Broken{inChannel(kBothGpus, graphWith("samechannels", "yes")), "samechannels=\"yes\" is not an integer"}));

INSTANTIATE_TEST_SUITE_P(
    Channels, BrokenGraphs,
    testing::Values(
        Broken{inChannel("<gpu rank=\"0\"/>"), "g.xml, line 3, <channel>: the channel has 1 of 2 GPUs"},
        Broken{inChannel(""), "g.xml, line 3, <channel>: the channel has 0 of 2 GPUs"},
        Broken{inChannel("<gpu rank=\"0\"/>\n<gpu rank=\"0\"/>"),
               "g.xml, line 5, <gpu>: the channel has the GPU of rank 0 twice"},
        Broken{inChannel("<gpu dev=\"2\"/>\n<gpu dev=\"2\"/>"), "<gpu>: the channel has the GPU of dev 0x2 twice"},
        Broken{inChannel("<gpu/>"), "g.xml, line 4, <gpu>: the attribute 'dev' is missing"},
        Broken{inChannel("<gpu rank=\"9\"/>"), "<gpu>: there is no GPU of rank 9 in use on this machine"},
        Broken{inChannel("<gpu dev=\"3\"/>"), "<gpu>: there is no GPU of dev 0x3 in use on this machine"},
        Broken{inChannel("<gpu dev=\"0x100000000000002\"/>"), "there is no GPU of dev 0x100000000000002"},
        Broken{inChannel("<gpu dev=\"GPU-2\"/>"), "<gpu>: dev=\"GPU-2\" is not a hexadecimal number"},
        Broken{inChannel("<net dev=\"7\"/>" + kBothGpus), "<net>: there is no network device with dev 0x7"},
        Broken{inChannel("<net/>" + kBothGpus), "<net>: the attribute 'dev' is missing"},
        Broken{inChannel("<net dev=\"0\"/>" + kBothGpus),
               "<channel>: 1 <net>: a channel has none, or one in and one out"},
        Broken{inChannel("<net dev=\"0\"/>" + kBothGpus + "<net dev=\"1\"/>"),
               "g.xml, line 3, <channel>: the channel has <net>, and the communicator has a single node: remove them"},
        Broken{inChannel(kBothGpus + "</channel>\n<channel><net dev=\"0\"/>" + kBothGpus + "<net dev=\"1\"/>"),
               "g.xml, line 5, <channel>: the channel has <net>, and the communicator has a single node"}));

const std::string kThroughNics = "<net dev=\"0\"/>" + kBothGpus + "<net dev=\"1\"/>";

TEST(GraphXml, NeedsNicsBetweenNodes) {
  EXPECT_TRUE(readText(inChannel(kThroughNics), 1, true).ok());
  test::expectLog("g.xml, line 3, <channel>: the channel has no <net>, and the communicator spans several nodes: name");
  EXPECT_EQ(readText(inChannel(kBothGpus), 1, true).status().code(), ncclInvalidUsage);
  test::expectLog("g.xml, line 5, <channel>: the channel has no <net>");
  EXPECT_FALSE(readText(inChannel(kThroughNics + "</channel>\n<channel>" + kBothGpus), 1, true).ok());
}

TEST(GraphXml, NeedsBandwidthBetweenNodes) {
  const std::string graph = graphWith("speedinter", "0");
  EXPECT_TRUE(readText(inChannel(kBothGpus, graph)).ok());
  test::expectLog("g.xml, line 2, <graph>: speedinter=\"0\" of a graph for several nodes: set what");
  EXPECT_EQ(readText(inChannel(kThroughNics, graph), 1, true).status().code(), ncclInvalidUsage);
}

TEST(GraphXml, DoesWithoutNicsWhereNoneIsReached) {
  std::string graph = graphWith("speedinter", "0");
  graph.replace(graph.find("PIX"), 3, "DIS");
  EXPECT_TRUE(readText(inChannel(kBothGpus, graph), 1, true).ok());
  test::expectLog("g.xml, line 3, <channel>: the channel has <net>, and the graph's typeinter=\"DIS\" and speedinter");
  EXPECT_FALSE(readText(inChannel(kThroughNics, graph), 1, true).ok());
}

TEST(GraphXml, RefusesMoreChannelsThanThereAre) {
  std::string channels;
  for (int c = 0; c < 64; ++c) channels += kBothGpus + "</channel><channel>";
  EXPECT_TRUE(readText(inChannel(channels.substr(0, channels.size() - 19))).ok());
  test::expectLog("the graph has more than 64 channels");
  EXPECT_FALSE(readText(inChannel(channels + kBothGpus)).ok());
}

TEST(GraphXml, NamesDevicesOfAsManyHostsAsThereIsRoomFor) {
  Machine machine;
  for (int host = 0; host < 256; ++host) machine.addNode(host, 0, CpuFacts{});
  EXPECT_TRUE(writeGraphs(machine, {}).ok());
  machine.addNode(256, 0, CpuFacts{});
  test::expectLog("<graphs>: graph files name devices of up to 256 hosts, and NVLink joins 257 here");
  EXPECT_EQ(writeGraphs(machine, {}).status().code(), ncclInvalidUsage);
  test::expectLog("g.xml, line 1, <graphs>: graph files name devices of up to 256 hosts");
  const auto xml = parseXml("<graphs version=\"1\"/>", "g.xml");
  ASSERT_TRUE(xml.ok());
  EXPECT_EQ(readGraphs(machine, xml.value(), false).status().code(), ncclInvalidUsage);
}

TEST(GraphXml, IsReadFromAFileThatIsThere) {
  test::expectLog("cannot read /nowhere/graphs.xml: it cannot be opened: No such file or directory");
  EXPECT_EQ(readGraphFile("/nowhere/graphs.xml", twoGpuHosts(1), false).status().code(), ncclSystemError);
}

TEST(GraphXml, ReplacesASearchWhereItHasChannels) {
  const Machine machine = twoGpuHosts(1);
  GraphSet set = someGraphs(machine);
  EXPECT_TRUE(replacesSearch(set.ring, 2));
  EXPECT_FALSE(replacesSearch(set.collNetChain, 2));
  set.ring.crossNic = 1;
  EXPECT_TRUE(replacesSearch(set.ring, 2));
  EXPECT_FALSE(replacesSearch(set.ring, 0));
}

TEST(GraphLines, HaveTheKnownShape) {
  const Machine machine = twoGpuHosts(1);
  const std::vector<std::string> lines = graphLines(machine, someGraphs(machine).ring);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "Pattern 4, crossNic 2, nChannels 2, bw 45.099998/0.240000, type NVL/P2C, sameChannels 0");
  EXPECT_EQ(lines[1], " 0 : NET/0-0 GPU/0-11000 GPU/0-21000 NET/0-1");
  EXPECT_EQ(lines[2], " 1 : NET/0-1 GPU/0-21000 GPU/0-11000 NET/0-0");
}

TEST(GraphNames, AreThoseOfTheFiles) {
  EXPECT_STREQ(patternName(Pattern::BalancedTree), "BALANCED_TREE");
  EXPECT_STREQ(patternName(Pattern::CollNetDirect), "COLLNET_DIRECT");
  EXPECT_STREQ(graphName(GraphId::CollNetChain), "collnetChain");
}

TEST(MachineLines, ShowEveryNodeOnceBelowItsCpu) {
  const std::vector<std::string> lines = machineLines(twoGpuHosts(1), {.best = 48, .total = 370.8f});
  const std::vector<std::string> expected = {
      "=== System : maxBw 48.0 totalBw 370.8 ===",
      "CPU/0-0 (1/1/2)",
      "+ PCI[48.0] - PCI/0-10000 (abc)",
      "              + PCI[48.0] - DEV/0-11000",
      "                            + LOC[5000.0] - GPU/0-11000 (0)",
      "                            + NVL[370.8] - NVS/0-0",
      "              + PCI[48.0] - NIC/0-12000",
      "                            + NET[50.0] - NET/0-0 (mlx5_0/7/0)",
      "+ PCI[48.0] - PCI/0-20000 (abc)",
      "              + PCI[48.0] - DEV/0-21000",
      "                            + LOC[5000.0] - GPU/0-21000 (1)",
      "                            + NVL[370.8] - NVS/0-0",
      "              + PCI[48.0] - NIC/0-22000",
      "                            + NET[50.0] - NET/0-1 (mlx5_0/7/0)",
      "==========================================",
  };
  EXPECT_EQ(lines, expected);
}

}  // namespace
}  // namespace tutti::topo
