#include "topo/machine/build.h"

#include <filesystem>

#include "support/log_capture.h"
#include "topo/machine/machine_text.h"
#include "topo/machine/speeds.h"

namespace tutti::topo {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

std::size_t count(const Machine& machine, NodeKind kind) {
  return machine.nodes(kind).size();
}

std::string nvlink(const std::string& target, int links, const std::string& pciClass) {
  return "<nvlink target=\"" + target + "\" count=\"" + std::to_string(links) + "\" tclass=\"" + pciClass + "\"/>";
}

TEST(MachineBuild, ChildrenDecideWhatAPciFunctionIs) {
  const Machine machine = test::built(test::system(
      test::cpu(test::kIntel, test::pci("10", test::gpu("11", 0) + test::nic("12", test::net(0) + test::net(1))))));
  EXPECT_EQ(count(machine, NodeKind::Cpu), 1U);
  EXPECT_EQ(count(machine, NodeKind::Switch), 1U);
  EXPECT_EQ(count(machine, NodeKind::Device), 1U);
  EXPECT_EQ(count(machine, NodeKind::Gpu), 1U);
  EXPECT_EQ(count(machine, NodeKind::Nic), 1U);
  EXPECT_EQ(count(machine, NodeKind::Net), 2U);
  EXPECT_EQ(nodeName(machine, test::at(machine, NodeKind::Gpu, 0)), "GPU/0-11000");
}

TEST(MachineBuild, UnusedFunctionsVanishAndSwitchesStay) {
  const std::string unusedGpu = test::pci("11", "<gpu dev=\"0\" sm=\"80\"/>");
  const std::string emptyNic =
      "<pci busid=\"0000:12:00.0\" class=\"0x020000\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"/>";
  const Machine machine =
      test::built(test::system(test::cpu(test::kIntel, test::pci("10", unusedGpu + emptyNic) + "<gpu dev=\"1\"/>")));
  EXPECT_EQ(machine.nodeCount(), 2);
  EXPECT_EQ(count(machine, NodeKind::Switch), 1U);
}

TEST(MachineBuild, NetsWithoutNumberOrForOtherUsesAreLeftOut) {
  const Machine machine = test::built(test::system(
      test::cpu(test::kIntel,
                test::gpu("11", 0) + test::nic("12", "<net name=\"a\"/>" + test::net(3) + test::net(4, "net=\"0\"")))));
  ASSERT_EQ(count(machine, NodeKind::Net), 1U);
  EXPECT_EQ(machine.facts<NetFacts>(test::at(machine, NodeKind::Net, 0)).dev, 3);
}

TEST(MachineBuild, NetsHaveTheDefaultsOfTheirFormat) {
  const Machine machine = test::built(test::system(test::cpu(test::kIntel, test::nic("12", "<net dev=\"3\"/>"))));
  const auto& facts = machine.facts<NetFacts>(test::at(machine, NodeKind::Net, 0));
  EXPECT_EQ(facts.speed, 1.25F);
  EXPECT_EQ(facts.guid, 3U);
  EXPECT_EQ(facts.maxConnections, 64);
  EXPECT_FALSE(facts.gdr);
  EXPECT_FALSE(facts.collective);
  EXPECT_EQ(facts.rail, -1);
}

TEST(MachineBuild, PciLinksAreAsFastAsSpeedAndWidthSay) {
  EXPECT_EQ(pciBandwidth("8.0 GT/s PCIe", 16), 12);
  EXPECT_EQ(pciBandwidth("16.0 GT/s PCIe", 16), 24);
  EXPECT_EQ(pciBandwidth("32 GT/s", 8), 24);
  EXPECT_EQ(pciBandwidth("64.0 GT/s PCIe", 16), 96);
  EXPECT_EQ(pciBandwidth("", 0), 12);
  EXPECT_EQ(pciBandwidth("32.0 GT/s", 16), 12);
  const Machine machine = test::built(test::system(test::cpu(test::kIntel, test::gpu("11", 0))));
  EXPECT_EQ(test::bandwidth(machine, test::at(machine, NodeKind::Device, 0), test::at(machine, NodeKind::Cpu, 0),
                            LinkKind::Pci),
            24);
  EXPECT_EQ(test::bandwidth(machine, test::at(machine, NodeKind::Cpu, 0), test::at(machine, NodeKind::Device, 0),
                            LinkKind::Pci),
            24);
}

TEST(MachineBuild, NvlinksAreAsFastAsTheirGeneration) {
  const std::pair<int, float> known[] = {{52, 20}, {60, 18},    {70, 20},     {80, 20},    {86, 12},
                                         {89, 20}, {90, 20.6F}, {100, 40.1F}, {121, 40.1F}};
  for (const auto& [sm, speed] : known) EXPECT_EQ(nvlinkBandwidth(sm), speed) << sm;
}

TEST(MachineBuild, AllNvSwitchesAreOneNode) {
  const std::string toSwitches = nvlink("0000:a1:00.0", 6, "0x068000") + nvlink("fffffff:ff:ff.0", 6, "0x068000");
  const Machine machine = test::built(
      test::system(test::cpu(test::kIntel, test::gpu("11", 0, toSwitches) + test::gpu("12", 1, toSwitches))));
  ASSERT_EQ(count(machine, NodeKind::NvSwitch), 1U);
  const int nvSwitch = test::at(machine, NodeKind::NvSwitch, 0);
  for (const int device : machine.nodes(NodeKind::Device)) {
    EXPECT_EQ(test::bandwidth(machine, device, nvSwitch, LinkKind::NvLink), 240);
    EXPECT_EQ(test::bandwidth(machine, nvSwitch, device, LinkKind::NvLink), 240);
  }
}

TEST(MachineBuild, NvlinksBetweenGpusAreListedByBothEnds) {
  const std::string first = nvlink("0000:12:00.0", 2, "0x030200") + nvlink("0000:12:00.0", 1, "0x030200") +
                            nvlink("0000:11:00.0", 4, "0x030200") + nvlink("0000:13:00.0", 4, "0x030200");
  const Machine machine =
      test::built(test::system(test::cpu(test::kIntel, test::gpu("11", 0, first) + test::gpu("12", 1))));
  const int a = test::at(machine, NodeKind::Device, 0);
  const int b = test::at(machine, NodeKind::Device, 1);
  EXPECT_EQ(test::bandwidth(machine, a, b, LinkKind::NvLink), 60);
  EXPECT_EQ(test::bandwidth(machine, b, a, LinkKind::NvLink), 0);
  EXPECT_EQ(machine.findLink(a, a, LinkKind::NvLink), -1);
}

TEST(MachineBuild, NvlinkAndC2cReachTheCpuAboveTheGpu) {
  const std::string toCpu = nvlink("0004:00:00.0", 3, "0x068001");
  const std::string c2c = "<c2c bw=\"44712\" count=\"10\"/>";
  const Machine machine =
      test::built(test::system(test::cpu("arch=\"ppc64\"", test::gpu("11", 0, toCpu, 70), 0) +
                               test::cpu("arch=\"ppc64\"", test::pci("20", test::gpu("21", 1, c2c, 90)), 8)));
  EXPECT_EQ(test::bandwidth(machine, test::at(machine, NodeKind::Device, 0), test::at(machine, NodeKind::Cpu, 0),
                            LinkKind::NvLink),
            60);
  EXPECT_EQ(test::bandwidth(machine, test::at(machine, NodeKind::Cpu, 0), test::at(machine, NodeKind::Device, 0),
                            LinkKind::NvLink),
            60);
  EXPECT_NEAR(test::bandwidth(machine, test::at(machine, NodeKind::Device, 1), test::at(machine, NodeKind::Cpu, 1),
                              LinkKind::C2c),
              447.12, 0.01);
}

TEST(MachineBuild, TheTwoLevelsOfABroadcomSwitchAreOne) {
  const auto broadcom = [](const char* device, const char* subsystem) {
    return std::string("vendor=\"0x1000\" device=\"") + device + "\" subsystem_vendor=\"0x1000\" subsystem_device=\"" +
           subsystem + "\"";
  };
  const auto switches = [&](const std::string& upper, const std::string& lower) {
    const Machine machine = test::built(
        test::system(test::cpu(test::kIntel, test::pci("10", test::pci("11", test::gpu("12", 0), lower), upper))));
    const int device = test::at(machine, NodeKind::Device, 0);
    EXPECT_EQ(test::bandwidth(machine, device, machine.nodes(NodeKind::Switch).back(), LinkKind::Pci), 24);
    return count(machine, NodeKind::Switch);
  };
  EXPECT_EQ(switches(broadcom("0xc010", "0xa096"), broadcom("0xc010", "0xa032")), 1U);
  EXPECT_EQ(switches(broadcom("0xc030", "0x0072"), broadcom("0xc030", "0x1003")), 1U);
  EXPECT_EQ(switches(broadcom("0xc030", "0x1003"), broadcom("0xc030", "0x1003")), 2U);
  EXPECT_EQ(switches(broadcom("0xc010", "0xa096"), broadcom("0xc030", "0x1003")), 2U);
  EXPECT_EQ(switches("", ""), 2U);
}

TEST(MachineBuild, PeerLinkedSwitchesHaveALinkInTheDirectionListed) {
  const Machine machine = test::built(
      test::system(test::cpu(test::kIntel, test::pci("10", test::gpu("11", 0) + "<pcilink target=\"0000:20:00.0\"/>" +
                                                               "<pcilink target=\"0000:99:00.0\"/>") +
                                               test::pci("20", test::gpu("21", 1)))));
  const int first = test::at(machine, NodeKind::Switch, 0);
  const int second = test::at(machine, NodeKind::Switch, 1);
  EXPECT_EQ(test::bandwidth(machine, first, second, LinkKind::Local), kLocalBandwidth);
  EXPECT_EQ(machine.findLink(second, first, LinkKind::Local), -1);
}

TEST(MachineBuild, SeveralRanksShareADevice) {
  const std::string two = test::pci("11",
                                    "<gpu dev=\"4\" sm=\"80\" rank=\"0\"><nvlink target=\"0000:77:00.0\" count=\"1\" "
                                    "tclass=\"0x068000\"/></gpu><gpu dev=\"4\" sm=\"80\" rank=\"1\"/>");
  const Machine machine = test::built(test::system(test::cpu(test::kIntel, two)));
  EXPECT_EQ(count(machine, NodeKind::Device), 1U);
  ASSERT_EQ(count(machine, NodeKind::Gpu), 2U);
  EXPECT_EQ(machine.node(test::at(machine, NodeKind::Gpu, 1)).id, 0x11000U + (std::uint64_t{1} << 40));
  EXPECT_EQ(machine.facts<GpuFacts>(test::at(machine, NodeKind::Gpu, 1)).rank, 1);
  EXPECT_EQ(count(machine, NodeKind::NvSwitch), 1U);
}

TEST(MachineBuild, PartitionsOfAGpuAreJoinedMoreSlowly) {
  const std::string two = test::pci("11",
                                    "<gpu dev=\"0\" sm=\"100\" rank=\"0\" mlopart=\"0\"/>"
                                    "<gpu dev=\"1\" sm=\"100\" rank=\"1\" mlopart=\"1\"/>");
  const Machine machine = test::built(test::system(test::cpu(test::kIntel, two)));
  EXPECT_EQ(test::bandwidth(machine, test::at(machine, NodeKind::Gpu, 0), test::at(machine, NodeKind::Device, 0),
                            LinkKind::Local),
            kPartitionBandwidth);
  EXPECT_EQ(machine.facts<DeviceFacts>(test::at(machine, NodeKind::Device, 0)).partition, 0);
}

TEST(MachineBuild, VirtualNicsHangUnderTheCpu) {
  const Machine machine = test::built(test::system(
      test::cpu(test::kIntel, test::gpu("11", 0) + "<nic>" + test::net(0) + "</nic><nic>" + test::net(1) + "</nic>")));
  ASSERT_EQ(count(machine, NodeKind::Nic), 2U);
  const int nic = test::at(machine, NodeKind::Nic, 1);
  EXPECT_EQ(test::bandwidth(machine, nic, test::at(machine, NodeKind::Cpu, 0), LinkKind::Local), kLocalBandwidth);
  EXPECT_EQ(test::bandwidth(machine, nic, test::at(machine, NodeKind::Net, 1), LinkKind::Net), 25);
}

TEST(MachineBuild, CpusOfAHostAreLinkedAsFastAsTheFirstOne) {
  const auto host = [](const char* hash, int numa) {
    return test::cpu(std::string(test::kAmd) + " host_hash=\"" + hash + "\"", "", numa);
  };
  const Machine machine = test::built(test::system(host("0x7", 0) + host("0x7", 1) + host("0x9", 0) + host("0x7", 2)));
  const auto cpus = machine.nodes(NodeKind::Cpu);
  EXPECT_EQ(machine.systems(), 2);
  EXPECT_EQ(machine.node(cpus[2]).system, 1);
  EXPECT_EQ(test::bandwidth(machine, cpus[0], cpus[1], LinkKind::Sys), 16);
  EXPECT_EQ(test::bandwidth(machine, cpus[3], cpus[1], LinkKind::Sys), 16);
  EXPECT_EQ(machine.node(cpus[2]).links.size(), 0U);
}

TEST(MachineBuild, CpusAreKnownByVendorAndModel) {
  const auto kindOf = [](const std::string& attributes) {
    return test::built(test::system(test::cpu(attributes, ""))).cpuKind();
  };
  const auto intel = [&](const char* family, const char* model) {
    return kindOf(std::string("arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"") + family + "\" modelid=\"" +
                  model + "\"");
  };
  EXPECT_EQ(intel("6", "79"), CpuKind::IntelBroadwell);
  EXPECT_EQ(intel("6", "0x55"), CpuKind::IntelSkylake);
  EXPECT_EQ(intel("6", "0x8f"), CpuKind::IntelSapphireRapids);
  EXPECT_EQ(intel("6", "207"), CpuKind::IntelEmeraldRapids);
  EXPECT_EQ(kindOf(test::kAmd), CpuKind::Amd);
  EXPECT_EQ(kindOf("arch=\"arm64\""), CpuKind::Arm);
  EXPECT_EQ(kindOf("arch=\"x86_64\" vendor=\"HygonGenuine\""), CpuKind::OtherX86);
  const std::string zhaoxin = "arch=\"x86_64\" vendor=\"  Shanghai  \" familyid=\"7\" modelid=\"";
  EXPECT_EQ(kindOf(zhaoxin + "91\""), CpuKind::ZhaoxinYongfeng);
  EXPECT_EQ(kindOf(zhaoxin + "59\""), CpuKind::Zhaoxin);
  EXPECT_EQ(cpuBandwidth(CpuKind::IntelSapphireRapids), 22);
  EXPECT_EQ(cpuBandwidth(CpuKind::IntelEmeraldRapids), 40);
  EXPECT_EQ(cpuBandwidth(CpuKind::OtherX86), 5000);
}

TEST(MachineBuild, SaysWhichElementIsWrong) {
  const auto refused = [](const std::string& text, const char* message) {
    test::expectLog(message);
    EXPECT_EQ(buildMachine(test::parsed(text)).status().code(), ncclInvalidUsage) << text;
  };
  refused("<system version=\"2\"/>", "version=\"2\"");
  refused("<graphs version=\"1\"/>", "<graphs>");
  refused(test::system("\n" + test::cpu("arch=\"x86_64\"", "")), "line 2, <cpu>: the attribute 'vendor' is missing");
  refused(test::system(test::cpu("arch=\"mips\"", "")), "arch=\"mips\"");
  refused(test::system(test::cpu("arch=\"" + std::string(100000, 'm') + "\"", "")), "mmm...\" is none of x86_64");
  refused(test::system(test::cpu(test::kIntel, test::gpu("11", 0) + test::gpu("11", 1))), "busid=\"0000:11:00.0\" too");
  refused(test::system(test::cpu(test::kIntel, test::pci("11", "<gpu dev=\"0\" rank=\"0\"/>"))), "'sm' is missing");
  refused(test::system(test::cpu(test::kIntel, test::gpu("11", 0, nvlink("0000:12:00.0", -1, "0x03")))),
          "count=\"-1\"");
  refused(test::system(test::cpu(test::kIntel, "<pci busid=\"0000:11:00.0\" class=\"0x060400\"/>")),
          "'link_speed' is missing");
}

TEST(MachineBuild, RefusesMachinesThatNobodyHas) {
  std::string nets;
  for (int i = 0; i < kMaxNodes; ++i) nets += test::net(i);
  test::expectLog("more than 2048 nodes");
  EXPECT_EQ(buildMachine(test::parsed(test::system(test::cpu(test::kIntel, test::nic("11", nets))))).status().code(),
            ncclInvalidUsage);
  std::string cpus;
  for (int i = 0; i <= kMaxCpus + 1; ++i) cpus += test::cpu(test::kIntel, "", i);
  test::expectLog("or 512 CPUs");
  EXPECT_EQ(buildMachine(test::parsed(test::system(cpus))).status().code(), ncclInvalidUsage);
}

void expectRefused(const std::string& cpus, const char* reason) {
  test::expectLog(reason);
  EXPECT_EQ(buildMachine(test::parsed(test::system(cpus))).status().code(), ncclInvalidUsage) << reason;
}

TEST(MachineBuild, CountsVirtualNicsAndEachCpu) {
  std::string nics;
  for (int i = 0; i < kMaxNodes; ++i) nics += "<nic/>";
  expectRefused(test::cpu(test::kIntel, nics), "more than 2048 nodes");
  std::string cpus;
  for (int i = 0; i <= kMaxCpus; ++i)
    cpus += test::cpu(std::string(test::kIntel) + " host_hash=\"" + std::to_string(i) + "\"", "");
  expectRefused(cpus, "or 512 CPUs");
}

TEST(MachineBuild, RefusesWhatWouldTakeMinutes) {
  std::string cpus;
  for (int i = 0; i <= kMaxCpusOfHost; ++i) cpus += test::cpu(test::kIntel, "", i);
  expectRefused(cpus, "a host has more than 64 CPUs");
  const auto busId = [](int i) { return std::to_string(10 + i); };
  std::string deep;
  for (int i = 0; i <= kMaxPciDepth; ++i) deep = test::pci(busId(i), deep);
  expectRefused(test::cpu(test::kIntel, deep), "it stands in 16 others");
  std::string wide;
  for (int i = 1; i <= kMaxBandwidths; ++i) {
    wide += "<pci busid=\"" + busId(i) + ":00:00.0\" class=\"0x060400\" link_speed=\"\" link_width=\"" +
            std::to_string(i) + "\"/>";
  }
  EXPECT_EQ(test::built(test::system(test::cpu(test::kIntel, wide))).nodes(NodeKind::Switch).size(), 100U);
  expectRefused(test::cpu(test::kIntel, wide) + test::cpu(test::kIntel, "", 1), "101 different bandwidths");
}

TEST(MachineBuild, AHostIsTheNumberOfItsHashHoweverWritten) {
  const std::string amd(test::kAmd);
  const Machine machine = test::built(test::system(test::cpu(amd + " host_hash=\"0xAB\"", "") +
                                                   test::cpu(amd + " host_hash=\"ab\"", "", 1) +
                                                   test::cpu(amd + " host_hash=\"0xac\"", "")));
  EXPECT_EQ(machine.systems(), 2);
  EXPECT_EQ(machine.linkCount(), 2);
}

TEST(MachineBuild, EveryKnownMachineCanBeBuilt) {
  int machines = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test::fixtures())) {
    if (entry.path().extension() != ".xml") continue;
    ++machines;
    const Machine machine = test::knownMachine(entry.path().stem().string());
    EXPECT_GE(count(machine, NodeKind::Gpu), 1U) << entry.path();
    EXPECT_EQ(count(machine, NodeKind::Gpu), count(machine, NodeKind::Device)) << entry.path();
    EXPECT_GE(count(machine, NodeKind::Net), 1U) << entry.path();
    for (int i = 0; i < machine.linkCount(); ++i) EXPECT_GT(machine.link(i).bandwidth, 0) << entry.path();
  }
  EXPECT_GE(machines, 50);
}

}  // namespace
}  // namespace tutti::topo
