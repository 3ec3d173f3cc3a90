#include "topo/xml/topology_xml.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "support/log_capture.h"

namespace tutti::topo {
namespace {

constexpr const char* kOrigin = "t.xml";

/// A topology file with that in its one <cpu> of line 2, beginning in line 3.
std::string inCpu(const std::string& content) {
  return "<system version=\"1\">\n<cpu numaid=\"0\">\n" + content + "</cpu></system>";
}

std::string inGpu(const std::string& content) {
  return inCpu("<pci busid=\"0000:1b:00.0\">\n<gpu dev=\"0\">\n" + content + "</gpu></pci>");
}

std::string inNic(const std::string& content) {
  return inCpu("<nic>\n" + content + "</nic>");
}

struct Broken {
  std::string text;
  const char* message;
};

class BrokenTopology : public testing::TestWithParam<Broken> {};

TEST_P(BrokenTopology, IsRefusedWithPlaceAndReason) {
  test::expectLog(GetParam().message);
  EXPECT_EQ(parseTopology(GetParam().text, kOrigin).status().code(), ncclInvalidUsage);
}

INSTANTIATE_TEST_SUITE_P(
    System, BrokenTopology,
    testing::Values(Broken{"<systems/>", "t.xml, line 1, <systems>: the root of a topology file is <system>"},
                    Broken{"<graphs version=\"1\"/>", "this is a graph file (NCCL_GRAPH_FILE)"},
                    Broken{"<system/>", "t.xml, line 1, <system>: the attribute 'version' is missing"},
                    Broken{"<system version=\"2\"/>", "t.xml, line 1, <system>: version=\"2\": files of version 1"},
                    Broken{"<system version=\"one\"/>", "<system>: version=\"one\" is not an integer"},
                    Broken{"<system version=\"1.0\"/>", "<system>: version=\"1.0\" is not an integer"}));

INSTANTIATE_TEST_SUITE_P(
    Cpu, BrokenTopology,
    testing::Values(
        Broken{"<system version=\"1\">\n<cpu/></system>", "t.xml, line 2, <cpu>: the attribute 'numaid' is missing"},
        Broken{"<system version=\"1\"><cpu numaid=\"\"/></system>", "<cpu>: numaid=\"\" is not an integer"},
        Broken{"<system version=\"1\"><cpu numaid=\"99999999999\"/></system>",
               "<cpu>: numaid=\"99999999999\" is not within -2147483648 and 2147483647"},
        Broken{"<system version=\"1\"><cpu numaid=\"99999999999999999999\"/></system>", "is not an integer"},
        Broken{"<system version=\"1\"><cpu numaid=\"0\" host_hash=\"0x123456789abcdef01\"/></system>",
               "<cpu>: host_hash=\"0x123456789abcdef01\" is not a hexadecimal number of up to 64 bits"},
        Broken{"<system version=\"1\"><cpu numaid=\"0\" host_hash=\"-1\"/></system>", "host_hash=\"-1\" is not a hex"},
        Broken{"<system version=\"1\"><cpu numaid=\"0\" affinity=\"ff,,ff\"/></system>",
               "<cpu>: affinity=\"ff,,ff\" is not a list of 32-bit hexadecimal words"},
        Broken{"<system version=\"1\"><cpu numaid=\"0\" affinity=\"123456789\"/></system>", "is not a list of 32-bit"},
        Broken{"<system version=\"1\"><cpu numaid=\"0\" familyid=\"six\"/></system>", "familyid=\"six\" is not an"}));

INSTANTIATE_TEST_SUITE_P(
    Pci, BrokenTopology,
    testing::Values(
        Broken{inCpu("<pci/>"), "t.xml, line 3, <pci>: the attribute 'busid' is missing"},
        Broken{inCpu("<pci busid=\"1b\"/>"), "<pci>: busid=\"1b\" is not a bus id like 0000:1b:00.0"},
        Broken{inCpu("<pci busid=\"0000:1b:00:0\"/>"), "<pci>: busid=\"0000:1b:00:0\" is not a bus id"},
        Broken{inCpu("<pci busid=\"0000:1g:00.0\"/>"), "<pci>: busid=\"0000:1g:00.0\" is not a bus id"},
        Broken{inCpu("<pci busid=\"-000:1b:00.0\"/>"), "<pci>: busid=\"-000:1b:00.0\" is not a bus id"},
        Broken{inCpu("<pci busid=\":1b:00.0\"/>"), "<pci>: busid=\":1b:00.0\" is not a bus id"},
        Broken{inCpu("<pci busid=\"0000:1b:00.0\"/>\n<pci busid=\"0:1B:00.0\"/>"),
               "t.xml, line 4, <pci>: busid=\"0:1B:00.0\" is already that of t.xml, line 3, <pci>"},
        Broken{inCpu("<pci busid=\"0000:1b:00.0\"><pci busid=\"0000:1b:00.0\"/></pci>"), "is already that of"},
        Broken{inCpu("<pci busid=\"0000:1b:00.0\" link_width=\"-1\"/>"), "link_width=\"-1\" is not within 0 and 1024"},
        Broken{inCpu("<pci busid=\"0000:1b:00.0\" vendor=\"NVIDIA\"/>"), "vendor=\"NVIDIA\" is not a hexadecimal"},
        Broken{inCpu("<pci busid=\"0000:1b:00.0\" device=\"0x10000\"/>"), "device=\"0x10000\" has more than 16 bits"},
        Broken{inCpu("<pci busid=\"0000:1b:00.0\"><pcilink/></pci>"), "<pcilink>: the attribute 'target' is missing"}));

INSTANTIATE_TEST_SUITE_P(
    Gpu, BrokenTopology,
    testing::Values(
        Broken{inCpu("<pci busid=\"0000:1b:00.0\"><gpu/></pci>"), "<gpu>: the attribute 'dev' is missing"},
        Broken{inCpu("<pci busid=\"0000:1b:00.0\"><gpu dev=\"-1\"/></pci>"), "dev=\"-1\" is not within 0 and 65535"},
        Broken{inCpu("<pci busid=\"0000:1b:00.0\"><gpu dev=\"0\" sm=\"8.0\"/></pci>"), "sm=\"8.0\" is not an integer"},
        Broken{inGpu("<nvlink count=\"1\"/>"), "t.xml, line 5, <nvlink>: the attribute 'target' is missing"},
        Broken{inGpu("<nvlink target=\"0000:1c:00.0\"/>"), "t.xml, line 5, <nvlink>: the attribute 'count' is missing"},
        Broken{inGpu("<nvlink target=\"NVS\" count=\"1\"/>"), "<nvlink>: target=\"NVS\" is not a bus id"},
        Broken{inGpu("<nvlink target=\"0000:1c:00.0\" count=\"2000000000\"/>"), "is not within 0 and 1024"},
        Broken{inGpu("<c2c count=\"1\"/>"), "<c2c>: the attribute 'bw' is missing"},
        Broken{inGpu("<c2c bw=\"1\"/>"), "<c2c>: the attribute 'count' is missing"},
        Broken{inGpu("<c2c bw=\"-1\" count=\"1\"/>"), "<c2c>: bw=\"-1\" is not within 0 and 2147483647"}));

INSTANTIATE_TEST_SUITE_P(
    Net, BrokenTopology,
    testing::Values(Broken{inNic("<net dev=\"mlx5_0\"/>"), "t.xml, line 4, <net>: dev=\"mlx5_0\" is not an integer"},
                    Broken{inNic("<net speed=\"fast\"/>"), "<net>: speed=\"fast\" is not an integer"},
                    Broken{inNic("<net guid=\"zz\"/>"), "<net>: guid=\"zz\" is not a hexadecimal number"},
                    Broken{inNic("<net latency=\"nan\"/>"), "<net>: latency=\"nan\" is not a number of zero or more"},
                    Broken{inNic("<net latency=\"-1\"/>"), "<net>: latency=\"-1\" is not a number of zero or more"},
                    Broken{inNic("<net latency=\"1e999\"/>"), "<net>: latency=\"1e999\" is not a number"},
                    Broken{inNic("<net rail=\"0x\"/>"), "<net>: rail=\"0x\" is not an integer"}));

TEST(TopologyXml, RefusesMoreElementsThanAnyMachineHas) {
  std::string pcis;
  for (int i = 0; i <= kMaxTopologyChildren; ++i)
    pcis += "<pci busid=\"" + busIdText(static_cast<unsigned>(i)) + "\"/>";
  test::expectLog("t.xml, line 2, <cpu>: 4097 elements in it, at most 4096 are read");
  EXPECT_FALSE(parseTopology(inCpu(pcis), kOrigin).ok());
  std::string nets = "<nic>";
  for (int i = 0; i < kMaxTopologyElements; ++i) nets += "<net/>";
  test::expectLog("t.xml, line 3: more than 65536 elements");
  EXPECT_FALSE(parseTopology(inCpu(nets + "</nic>"), kOrigin).ok());
}

TEST(TopologyXml, RefusesElementsNestedWithoutEnd) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "<pci>";
  test::expectLog("elements more than 64 deep");
  EXPECT_FALSE(parseTopology(text, kOrigin).ok());
}

TEST(TopologyXml, LeavesOutWhatItDoesNotKnowInThatPlace) {
  const auto system = parseTopology(inCpu("<gpu dev=\"x\"><nvlink/></gpu>\n<nic><net dev=\"1\"/><fan/></nic>"
                                          "<pci busid=\"0000:1b:00.0\"><gpu dev=\"0\"><net/></gpu></pci>"),
                                    kOrigin);
  ASSERT_TRUE(system.ok());
  const XmlElement& cpu = system.value().children.at(0);
  ASSERT_EQ(cpu.children.size(), 2u);
  EXPECT_EQ(cpu.children[0].name, "nic");
  EXPECT_EQ(cpu.children[0].children.size(), 1u);
  EXPECT_TRUE(cpu.children[1].children.at(0).children.empty());
}

TEST(TopologyXml, HasNothingBelowTheFunctionOfAGpuOrNic) {
  const auto system =
      parseTopology(inCpu("<pci busid=\"0000:1b:00.0\"><pci busid=\"0000:1c:00.0\"/><gpu dev=\"0\"/><nic/></pci>"
                          "<pci busid=\"0000:1d:00.0\"><pci busid=\"0000:1e:00.0\"/><nic/></pci>"),
                    kOrigin);
  ASSERT_TRUE(system.ok());
  for (const XmlElement& pci : system.value().children.at(0).children) EXPECT_EQ(pci.children.size(), 1u);
}

TEST(TopologyXml, HasNothingBelowWhatIsAGpuOrNicByItsClass) {
  for (const char* pciClass : {"0x030200", "0x020700", "0x060400"}) {
    const auto system = parseTopology(inCpu(std::string("<pci busid=\"0000:1b:00.0\" class=\"") + pciClass +
                                            "\"><pci busid=\"0000:1c:00.0\"><gpu dev=\"0\"/></pci></pci>"),
                                      kOrigin);
    ASSERT_TRUE(system.ok());
    const bool isSwitch = std::string(pciClass) == "0x060400";
    EXPECT_EQ(system.value().children.at(0).children.at(0).children.size(), isSwitch ? 1u : 0u) << pciClass;
  }
}

TEST(TopologyXml, LetsDetectionFillInWhatItCanFind) {
  EXPECT_TRUE(parseTopology(inGpu("<nvlink target=\"fffffff:ff:ff.0\" count=\"18\"/>"), kOrigin).ok());
}

TEST(TopologyXml, TakesAllKnownMachinesAndWritesThemUnchanged) {
  const char* root = std::getenv("TUTTI_TEST_SOURCE_ROOT");
  int machines = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(root ? root : ".") + "/tests/fixtures/topo")) {
    if (file.path().extension() != ".xml") continue;
    ++machines;
    const auto system = readTopologyFile(file.path());
    ASSERT_TRUE(system.ok());
    const auto again = parseTopology(writeXml(system.value()), kOrigin);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(writeXml(again.value()), writeXml(system.value())) << file.path();
  }
  EXPECT_GE(machines, 50);
}

TEST(TopologyXml, TakesEqualBusIdsOnDifferentHosts) {
  EXPECT_TRUE(
      parseTopology("<system version=\"1\"><cpu host_hash=\"0x1\" numaid=\"0\"><pci busid=\"0000:1b:00.0\"/></cpu>"
                    "<cpu host_hash=\"0x2\" numaid=\"0\"><pci busid=\"0000:1b:00.0\"/></cpu></system>",
                    kOrigin)
          .ok());
}

XmlElement withValue(const std::string& value) {
  XmlElement element{.name = "net"};
  element.set("a", value);
  return element;
}

TEST(XmlValues, ReadIntegersAsCDoes) {
  EXPECT_EQ(intAttribute(withValue("0x1F"), "a").value(), 31);
  EXPECT_EQ(intAttribute(withValue("010"), "a").value(), 8);
  EXPECT_EQ(intAttribute(withValue("0"), "a").value(), 0);
  EXPECT_EQ(intAttribute(withValue("-1"), "a").value(), -1);
  EXPECT_EQ(intAttribute(withValue(" 12 "), "a").value(), 12);
  EXPECT_EQ(intAttribute(withValue("12"), "b", 7).value(), 7);
  EXPECT_EQ(hexAttribute(withValue("0xceeA"), "a").value(), 0xceeau);
  EXPECT_EQ(hexAttribute(withValue("12"), "a").value(), 0x12u);
  EXPECT_FLOAT_EQ(floatAttribute(withValue("1.5"), "a").value(), 1.5f);
  EXPECT_EQ(textAttribute(withValue("x"), "b", "y").value(), "y");
  test::expectLog("<net>: a=\"1e\x3f\x3f\" is not an integer");
  EXPECT_FALSE(intAttribute(withValue("1e\x01\x7f"), "a").ok());
}

TEST(XmlValues, TakeAnEmptyValueForNoneWhereThereIsADefault) {
  EXPECT_EQ(intAttribute(withValue(""), "a", 7).value(), 7);
  EXPECT_EQ(hexAttribute(withValue(""), "a", 8).value(), 8u);
  EXPECT_FLOAT_EQ(floatAttribute(withValue(""), "a", 9.0f).value(), 9.0f);
  test::expectLog("<net>: a=\"\" is not an integer");
  EXPECT_FALSE(intAttribute(withValue(""), "a").ok());
  test::expectLog("<net>: a=\" \" is not an integer");
  EXPECT_FALSE(intAttribute(withValue(" "), "a", 7).ok());
}

TEST(XmlValues, ReadAndWriteBusIds) {
  EXPECT_EQ(parseBusId("0000:1b:00.1"), 0x1b001u);
  EXPECT_EQ(parseBusId("fffffff:ff:ff.0"), 0xfffffffffff0u);
  EXPECT_EQ(busIdText(0x1b001), "0000:1b:00.1");
  EXPECT_EQ(busIdText(0x801000), "0008:01:00.0");
  EXPECT_EQ(busIdText(0xfffffffffff0), "fffffff:ff:ff.0");
}

TEST(XmlValues, MatchDictionariesByPrefix) {
  EXPECT_EQ(pciClassOf("0x060400"), PciClass::Switch);
  EXPECT_EQ(pciClassOf("0x068000"), PciClass::NvSwitch);
  EXPECT_EQ(pciClassOf("0x068001"), PciClass::CpuBridge);
  EXPECT_EQ(pciClassOf("0x030200"), PciClass::Gpu);
  EXPECT_EQ(pciClassOf("0x020700"), PciClass::Nic);
  EXPECT_EQ(pciClassOf(""), PciClass::Switch);
  EXPECT_EQ(pciLaneSpeed("16 GT/s"), 120);
  EXPECT_EQ(pciLaneSpeed("64.0 GT/s PCIe"), 480);
  EXPECT_EQ(pciLaneSpeed("32.0 GT/s"), 60);
  EXPECT_EQ(pciLaneSpeed(""), 60);
}

}  // namespace
}  // namespace tutti::topo
