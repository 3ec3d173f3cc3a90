#include "topo/search/topology.h"

#include <algorithm>

#include "support/log_capture.h"
#include "topo/machine/machine_text.h"
#include "topo/machine/path_settings.h"

namespace tutti::topo {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

std::vector<int> devsByRank(const Topology& topology) {
  std::vector<std::pair<int, int>> byRank;
  for (const int gpu : topology.machine.nodes(NodeKind::Gpu)) {
    const auto& facts = topology.machine.facts<GpuFacts>(gpu);
    byRank.emplace_back(facts.rank, facts.dev);
  }
  std::sort(byRank.begin(), byRank.end());
  std::vector<int> devs;
  for (const auto& [rank, dev] : byRank) devs.push_back(dev);
  return devs;
}

TEST(Topology, AllGpusOfAFileAreUsedUnlessSomeAreNamed) {
  EXPECT_EQ(devsByRank(test::topologyOf("own_dgx_h100")), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(devsByRank(test::topologyOf("own_dgx_h100", {.gpus = {5, 0, 3}})), (std::vector<int>{5, 0, 3}));
}

TEST(Topology, SaysWhichGpuThereIsNot) {
  test::expectLog("GPU 8 is asked for, but there are only 0, 1, 2, 3, 4, 5, 6, 7");
  EXPECT_EQ(buildTopology(test::known("own_dgx_h100"), {.gpus = {1, 8}}, {}).status().code(), ncclInvalidArgument);
  test::expectLog("Rank 8 is asked for");
  EXPECT_EQ(buildTopology(test::known("own_dgx_h100"), {.rank = 8}, {}).status().code(), ncclInvalidArgument);
  test::expectLog("there is no <gpu>");
  EXPECT_EQ(buildTopology(test::parsed(test::system(test::cpu(test::kIntel, ""))), {}, {}).status().code(),
            ncclInvalidUsage);
}

TEST(Topology, SaysThatGpusStandWhereNobodyLooksForThem) {
  const std::string below = test::pci("10", "<nic>" + test::net(0) + "</nic>" + test::gpu("11", 0));
  test::expectLog("t.xml, line 1, <system>: 1 of 2 GPUs in use stand below a <pci> that is a NIC or another GPU");
  EXPECT_EQ(buildTopology(test::parsed(test::system(test::cpu(test::kIntel, below + test::gpu("12", 1)))), {}, {})
                .status()
                .code(),
            ncclInvalidUsage);
  test::expectLog("1 of 1 GPUs in use");
  EXPECT_EQ(buildTopology(test::parsed(test::system(test::cpu(test::kIntel, below))), {}, {}).status().code(),
            ncclInvalidUsage);
}

TEST(Topology, AHostStaysWholeHoweverItsHashIsWritten) {
  const std::string both = test::cpu(std::string(test::kAmd) + " host_hash=\"0xAB\"", test::gpu("11", 0)) +
                           test::cpu(std::string(test::kAmd) + " host_hash=\"0xab\"", test::nic("21", test::net(0)), 1);
  const auto topology = buildTopology(test::parsed(test::system(both)), {.interNode = true}, {});
  ASSERT_TRUE(topology.ok());
  EXPECT_EQ(topology.value().machine.nodes(NodeKind::Net).size(), 1U);
}

TEST(Topology, AGpuNamedTwiceIsTheNextElementOfThatNumber) {
  const std::string two = test::pci("11", "<gpu dev=\"0\" sm=\"80\"/><gpu dev=\"0\" sm=\"80\"/>");
  const auto topology = buildTopology(test::parsed(test::system(test::cpu(test::kIntel, two))), {.gpus = {0, 0}}, {});
  ASSERT_TRUE(topology.ok());
  EXPECT_EQ(topology.value().machine.nodes(NodeKind::Gpu).size(), 2U);
  EXPECT_EQ(topology.value().groupOf, (std::vector<int>{0, 0}));
}

TEST(Topology, RanksOfTheDescriptionTellGpusOfOneNumberApart) {
  const auto ranked = [](const char* busId, const char* rank) {
    return test::pci(busId, std::string("<gpu dev=\"0\" sm=\"80\" rank=\"") + rank + "\"/>");
  };
  const XmlElement xml =
      test::parsed(test::system(test::cpu(test::kIntel, ranked("11", "9") + ranked("12", "7") + ranked("13", "8"))));
  const auto topology = buildTopology(xml, {.ranks = {7, 9}}, {});
  ASSERT_TRUE(topology.ok());
  const Machine& machine = topology.value().machine;
  ASSERT_EQ(machine.nodes(NodeKind::Gpu).size(), 2U);
  EXPECT_EQ(machine.node(test::at(machine, NodeKind::Gpu, 0)).id, 0x11000U);
  EXPECT_EQ(machine.facts<GpuFacts>(test::at(machine, NodeKind::Gpu, 0)).rank, 1);
  EXPECT_EQ(machine.facts<GpuFacts>(test::at(machine, NodeKind::Gpu, 1)).rank, 0);
  test::expectLog("t.xml, line 1, <system>: there is no <gpu> of rank 6");
  EXPECT_EQ(buildTopology(xml, {.ranks = {7, 6}}, {}).status().code(), ncclInvalidArgument);
}

TEST(Topology, LeavesOutWhatLeadsNowhere) {
  const Topology part = test::topologyOf("own_pcie8_v100_switch_1nic", {.gpus = {0}});
  EXPECT_EQ(part.machine.nodes(NodeKind::Device).size(), 1U);
  const auto topology = buildTopology(
      test::parsed(test::system(test::cpu(test::kIntel, test::pci("10", test::pci("20", test::gpu("21", 0)) +
                                                                            test::pci("30", test::gpu("31", 1)))) +
                                test::cpu(test::kIntel, test::gpu("41", 2), 1))),
      {.gpus = {1}}, {});
  ASSERT_TRUE(topology.ok());
  EXPECT_EQ(topology.value().machine.nodes(NodeKind::Switch).size(), 2U);
  EXPECT_EQ(topology.value().machine.nodes(NodeKind::Cpu).size(), 1U);
}

TEST(Topology, KeepsTheLinksOfADeviceWhoseFirstRankIsNotUsed) {
  const std::string two = test::pci("11",
                                    "<gpu dev=\"0\" sm=\"80\"><nvlink target=\"0000:77:00.0\" count=\"12\" "
                                    "tclass=\"0x068000\"/></gpu><gpu dev=\"1\" sm=\"80\"/>");
  const auto topology = buildTopology(test::parsed(test::system(test::cpu(test::kIntel, two))), {.gpus = {1}}, {});
  ASSERT_TRUE(topology.ok());
  EXPECT_EQ(topology.value().machine.nodes(NodeKind::NvSwitch).size(), 1U);
}

TEST(Topology, CopiesOfAHostAreJoinedByNvlinkOnly) {
  const Topology two = test::topologyOf("own_gb200_tray", {.hosts = 2});
  EXPECT_EQ(two.machine.systems(), 2);
  ASSERT_EQ(two.machine.nodes(NodeKind::Gpu).size(), 8U);
  EXPECT_EQ(two.machine.nodes(NodeKind::NvSwitch).size(), 1U);
  EXPECT_EQ(two.groupOf, std::vector<int>(8, 0));
  const auto& first = two.machine.facts<NetFacts>(test::at(two.machine, NodeKind::Net, 0));
  const auto& second = two.machine.facts<NetFacts>(test::at(two.machine, NodeKind::Net, 4));
  EXPECT_EQ(first.dev, second.dev);
  EXPECT_NE(first.guid, second.guid);
  const int gpu = test::at(two.machine, NodeKind::Gpu, 0);
  EXPECT_EQ(two.paths.of(gpu, test::at(two.machine, NodeKind::Gpu, 7)).type, PathType::Nvl);
  EXPECT_EQ(two.paths.of(gpu, test::at(two.machine, NodeKind::Net, 4)).type, PathType::Dis);
}

TEST(Topology, CopiesAreAsManyAsCanBeBuilt) {
  const auto copies = [](int hosts) {
    return buildTopology(test::known("own_gb200_tray"), {.hosts = hosts}, {}).status().code();
  };
  test::expectLog("0 copies of a machine are asked for");
  EXPECT_EQ(copies(0), ncclInvalidArgument);
  test::expectLog("100000 copies of a machine are asked for");
  EXPECT_EQ(copies(100000), ncclInvalidArgument);
  test::expectLog("the machine has more than");
  EXPECT_EQ(copies(200), ncclInvalidUsage);
}

TEST(Topology, ATrayFallsIntoItsHostsWithoutNvlink) {
  const Topology two = test::topologyOf("own_ws_pcie2_amd", {.hosts = 2, .rank = 3});
  EXPECT_EQ(two.groupOf, (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(two.group, 1);
  EXPECT_TRUE(two.interNode);
  EXPECT_EQ(two.machine.systems(), 1);
}

TEST(Topology, MarksNicsForCollectivesWhenAsked) {
  const auto collective = [](bool asked) {
    const Topology topology = test::topologyOf("own_dgx_h100", {.interNode = true, .collNet = asked});
    return topology.machine.facts<NetFacts>(test::at(topology.machine, NodeKind::Net, 0)).collective;
  };
  EXPECT_TRUE(collective(true));
  EXPECT_FALSE(collective(false));
}

TEST(Groups, FormWhereTheNetworkIsFasterThanTheBus) {
  const auto groups = [](const char* name, const std::vector<int>& gpus = {}) {
    const Topology topology = test::topologyOf(name, {.gpus = gpus});
    EXPECT_EQ(topology.interNode, topology.groupOf.back() > 0) << name;
    return topology.groupOf;
  };
  EXPECT_EQ(groups("own_dgx_h100"), std::vector<int>(8, 0));
  EXPECT_EQ(groups("rtpllm_l20x8_cx8"), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(groups("yccl_l20x16"), (std::vector<int>{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(groups("yccl_l20x16", {0, 1, 2, 3}), (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(groups("own_pcie8_l40s_2switch_4nic"), (std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(groups("own_pcie8_rtx6000bw_2switch_4nic", {0, 7}), (std::vector<int>{0, 1}));
  EXPECT_EQ(groups("own_dgx1v", {0, 7}), (std::vector<int>{0, 1}));
}

TEST(Groups, AreSeenByEachOfTheirRanks) {
  const Topology second = test::topologyOf("own_pcie8_l40s_2switch_4nic", {.rank = 5});
  EXPECT_EQ(second.group, 1);
  EXPECT_EQ(devsByRank(second), (std::vector<int>{4, 5, 6, 7}));
  EXPECT_EQ(second.machine.facts<GpuFacts>(test::at(second.machine, NodeKind::Gpu, 0)).rank, 4);
}

TEST(Groups, EndWithTheSettingThatForbidsTheNetwork) {
  PathSettings settings;
  settings.netDisableIntra = true;
  const Topology topology = test::topologyOf("rtpllm_l20x8_cx8", {}, settings);
  EXPECT_EQ(topology.groupOf, std::vector<int>(8, 0));
  EXPECT_FALSE(topology.interNode);
}

TEST(Topology, GpusThatAreNotUsedRelayNothing) {
  const auto link = [](const char* to) {
    return std::string("<nvlink target=\"0000:") + to + ":00.0\" count=\"1\" tclass=\"0x030200\"/>";
  };
  const std::string text = test::system(test::cpu(test::kIntel, test::pci("10", test::gpu("11", 0, link("12")))) +
                                        test::cpu(test::kIntel, test::gpu("12", 1, link("11") + link("13")), 1) +
                                        test::cpu(test::kIntel, test::pci("30", test::gpu("13", 2, link("12"))), 2));
  const auto whole = buildTopology(test::parsed(text), {}, {});
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(
      whole.value()
          .paths
          .of(test::at(whole.value().machine, NodeKind::Gpu, 0), test::at(whole.value().machine, NodeKind::Gpu, 2))
          .type,
      PathType::Nvb);
  const auto part = buildTopology(test::parsed(text), {.gpus = {0, 2}}, {});
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(
      part.value()
          .paths.of(test::at(part.value().machine, NodeKind::Gpu, 0), test::at(part.value().machine, NodeKind::Gpu, 1))
          .type,
      PathType::Sys);
}

}  // namespace
}  // namespace tutti::topo
