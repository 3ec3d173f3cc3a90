#include "topo/detect/detect.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "support/log_capture.h"
#include "topo/detect/detect_facts.h"
#include "topo/machine/path_settings.h"

namespace tutti::topo {
namespace {

using namespace tutti::test;

/// A switch 0000:16:00.0 behind root port 0000:15:01.0 of node 1, with a GPU and a NIC at its downstream ports.
HostFacts switchedHost() {
  HostFacts host;
  host.processor = {"x86_64", "GenuineIntel", 6, 143};
  host.numaNodes = {{0, "0000000f"}, {1, "000000f0"}};
  const auto port = [&](const char* busId, const char* parent) {
    host.pci.push_back({busId, parent, 0x060400, 0x1000, 0xc030, 0x1000, 0x0001, "32.0 GT/s PCIe", 16, 1});
  };
  port("0000:15:01.0", "");
  port("0000:16:00.0", "0000:15:01.0");
  port("0000:17:00.0", "0000:16:00.0");
  port("0000:17:01.0", "0000:16:00.0");
  host.pci.push_back(
      {"0000:18:00.0", "0000:17:00.0", 0x030200, 0x10de, 0x2330, 0x10de, 0x16c1, "32.0 GT/s PCIe", 16, 1});
  host.pci.push_back(
      {"0000:19:00.0", "0000:17:01.0", 0x020700, 0x15b3, 0x1021, 0x15b3, 0x0023, "16.0 GT/s PCIe", 8, 1});
  return host;
}

GpuSourceFacts gpuAt(const char* busId, int index) {
  GpuSourceFacts gpu;
  gpu.busId = busId;
  gpu.index = index;
  gpu.sm = 90;
  gpu.gdr = true;
  return gpu;
}

std::string detected(const DetectInput& input) {
  const auto xml = detectTopology(input);
  EXPECT_TRUE(xml.ok());
  return xml.ok() ? writeXml(xml.value()) : std::string();
}

XmlElement parsedText(const std::string& text) {
  auto xml = parseXml(text, "given.xml");
  EXPECT_TRUE(xml.ok());
  return xml.ok() ? xml.value() : XmlElement{};
}

TEST(Detection, NamesSwitchesByTheirUpstreamPort) {
  DetectInput input;
  input.host = switchedHost();
  input.gpus = {gpuAt("00000000:18:00.0", 0)};
  input.gpus[0].nvlinks.assign(18, {NvLinkEnd::Switch, "00000000:C0:00.0"});
  NetDeviceFacts net;
  net.name = "mlx5_0";
  net.pciPath = "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0";
  net.guid = 0x1234;
  net.speed = 400000;
  net.port = 1;
  net.gdr = true;
  input.nets = {net};
  EXPECT_EQ(detected(input),
            "<system version=\"1\">\n"
            "  <cpu numaid=\"1\" affinity=\"000000f0\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" "
            "modelid=\"143\">\n"
            "    <pci busid=\"0000:16:00.0\" class=\"0x060400\" vendor=\"0x1000\" device=\"0xc030\" "
            "subsystem_vendor=\"0x1000\" subsystem_device=\"0x0001\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
            "      <pci busid=\"0000:18:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" "
            "subsystem_vendor=\"0x10de\" subsystem_device=\"0x16c1\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
            "        <gpu dev=\"0\" sm=\"90\" gdr=\"1\">\n"
            "          <nvlink target=\"fffffff:ff:ff.0\" count=\"18\" tclass=\"0x068000\"/>\n"
            "        </gpu>\n"
            "      </pci>\n"
            "      <pci busid=\"0000:19:00.0\" class=\"0x020700\" vendor=\"0x15b3\" device=\"0x1021\" "
            "subsystem_vendor=\"0x15b3\" subsystem_device=\"0x0023\" link_speed=\"16.0 GT/s PCIe\" link_width=\"8\">\n"
            "        <nic>\n"
            "          <net name=\"mlx5_0\" dev=\"0\" speed=\"400000\" port=\"1\" latency=\"0.000000\" guid=\"0x1234\" "
            "maxconn=\"65536\" gdr=\"1\"/>\n"
            "        </nic>\n"
            "      </pci>\n"
            "    </pci>\n"
            "  </cpu>\n"
            "</system>\n");
}

TEST(Detection, HangsWhatIsHiddenAtTheFirstCpu) {
  DetectInput input;
  input.host.processor = {"arm64", "", -1, -1};
  input.host.numaNodes = {{0, "0000000f"}, {1, "000000f0"}};
  input.gpus = {gpuAt("0000:18:00.0", 0)};
  input.gpus[0].pcieGeneration = 4;
  input.gpus[0].pcieWidth = 8;
  NetDeviceFacts net;
  net.name = "eth0";
  net.pciPath = "/sys/devices/virtual/net/eth0";
  input.nets = {net};
  EXPECT_EQ(detected(input),
            "<system version=\"1\">\n"
            "  <cpu numaid=\"0\" affinity=\"0000000f\" arch=\"arm64\">\n"
            "    <pci busid=\"0000:18:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" link_width=\"8\">\n"
            "      <gpu dev=\"0\" sm=\"90\" gdr=\"1\"/>\n"
            "    </pci>\n"
            "    <nic>\n"
            "      <net name=\"eth0\" dev=\"0\" speed=\"10000\" port=\"0\" latency=\"0.000000\" guid=\"0x0\" "
            "maxconn=\"65536\" gdr=\"0\"/>\n"
            "    </nic>\n"
            "  </cpu>\n"
            "</system>\n");
}

TEST(Detection, TakesAnUnknownNodeForTheFirstCpu) {
  DetectInput input;
  input.host = switchedHost();
  for (PciFacts& pci : input.host.pci) pci.numa = 7;
  input.gpus = {gpuAt("0000:18:00.0", 0)};
  EXPECT_NE(detected(input).find("<cpu numaid=\"0\""), std::string::npos);
  EXPECT_EQ(detected(input).find("<cpu numaid=\"7\""), std::string::npos);
}

TEST(Detection, HangsSoftwareInterfacesNearTheGpus) {
  DetectInput input;
  input.host = switchedHost();
  input.gpus = {gpuAt("0000:18:00.0", 0)};
  NetDeviceFacts net;
  net.name = "br0";
  net.pciPath = "/sys/devices/virtual/net/br0";
  input.nets = {net};
  const std::string text = detected(input);
  EXPECT_EQ(text.find("<cpu numaid=\"0\""), std::string::npos) << text;
  EXPECT_NE(text.find("    <nic>\n      <net name=\"br0\""), std::string::npos) << text;
}

TEST(Detection, ShowsAllCpusWhereThereIsNothingElse) {
  DetectInput input;
  input.host = switchedHost();
  const std::string text = detected(input);
  EXPECT_NE(text.find("<cpu numaid=\"0\""), std::string::npos);
  EXPECT_NE(text.find("<cpu numaid=\"1\""), std::string::npos);
  EXPECT_EQ(text.find("<pci"), std::string::npos);
}

TEST(Detection, CountsLinksByTarget) {
  DetectInput input;
  input.host = switchedHost();
  input.host.pci.push_back({"0000:c0:00.0", "", 0x068000, 0x10de, 0x22a3, 0, 0, "", 0, -1});
  input.gpus = {gpuAt("0000:18:00.0", 0), gpuAt("0000:1a:00.0", 1)};
  input.gpus[0].nvlinks = {{NvLinkEnd::Gpu, "00000000:1A:00.0"},     {NvLinkEnd::Switch, "0000:c0:00.0"},
                           {NvLinkEnd::Unknown, "00000000:1A:00.0"}, {NvLinkEnd::Cpu, "0004:04:00.0"},
                           {NvLinkEnd::Unknown, "0000:c0:00.0"},     {NvLinkEnd::Unknown, ""}};
  const std::string text = detected(input);
  EXPECT_NE(text.find("<nvlink target=\"0000:1a:00.0\" count=\"2\" tclass=\"0x030200\"/>"), std::string::npos) << text;
  EXPECT_NE(text.find("<nvlink target=\"0000:c0:00.0\" count=\"2\" tclass=\"0x068000\"/>"), std::string::npos) << text;
  EXPECT_NE(text.find("<nvlink target=\"0004:04:00.0\" count=\"1\" tclass=\"0x068001\"/>"), std::string::npos) << text;
  EXPECT_NE(text.find("<nvlink target=\"fffffff:ff:ff.0\" count=\"1\" tclass=\"0x068000\"/>"), std::string::npos)
      << text;
}

TEST(Detection, LeavesLinksOfDividedGpusOut) {
  DetectInput input;
  input.host = switchedHost();
  input.gpus = {gpuAt("0000:18:00.0", 0), gpuAt("0000:1a:00.0", 1)};
  input.gpus[0].nvlinks = {{NvLinkEnd::Gpu, "0000:1a:00.0"}};
  input.gpus[1].nvlinks = {{NvLinkEnd::Gpu, "0000:18:00.0"}};
  input.gpus[1].mig = true;
  EXPECT_EQ(detected(input).find("<nvlink"), std::string::npos) << "neither from it nor to it";
}

TEST(Detection, GivesGpusWithoutANumberOneThatIsFree) {
  DetectInput input;
  input.gpus = {gpuAt("0000:18:00.0", -1), gpuAt("0000:1a:00.0", 0), gpuAt("0000:1c:00.0", -1),
                gpuAt("0000:1e:00.0", 2)};
  const std::string text = detected(input);
  EXPECT_NE(text.find("<pci busid=\"0000:18:00.0\""), std::string::npos);
  for (const char* dev : {"dev=\"0\"", "dev=\"1\"", "dev=\"2\"", "dev=\"3\""}) {
    EXPECT_NE(text.find(dev), std::string::npos) << dev << text;
    EXPECT_EQ(text.find(dev), text.rfind(dev)) << dev << text;
  }
}

TEST(Detection, GivesAMachineAlsoOfLittle) {
  DetectInput input;
  input.host.processor.arch = "x86_64";
  input.gpus = {gpuAt("0000:18:00.0", -1), gpuAt("0000:1a:00.0", -1)};
  input.gpus[0].sm = 0;
  const auto found = detectTopology(input);
  ASSERT_TRUE(found.ok());
  const auto topology = buildTopology(found.value(), {}, {});
  ASSERT_TRUE(topology.ok()) << writeXml(found.value());
  EXPECT_EQ(topology.value().machine.nodes(NodeKind::Gpu).size(), 2u);
}

TEST(Detection, EndsWhereBridgesGoInACircle) {
  DetectInput input;
  input.host.pci = {{"0000:01:00.0", "0000:02:00.0", 0x060400}, {"0000:02:00.0", "0000:01:00.0", 0x060400}};
  input.gpus = {gpuAt("0000:01:00.0", 0)};
  const std::string text = detected(input);
  const std::size_t first = text.find("busid=\"0000:01:00.0\"");
  EXPECT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("busid=\"0000:01:00.0\"", first + 1), std::string::npos) << "it stands there twice: " << text;
  EXPECT_NE(test::capturedText().find(
                "0000:01:00.0 stands below bridge 0000:02:00.0, which stands below 0000:01:00.0: a circle"),
            std::string::npos)
      << test::capturedText();
}

TEST(GivenFile, IsCompletedAndKeepsWhatItSays) {
  DetectInput input;
  input.host = switchedHost();
  input.gpus = {gpuAt("0000:18:00.0", 3)};
  input.given = parsedText(
      "<system version=\"1\">\n<cpu numaid=\"1\" arch=\"x86_64\" vendor=\"AuthenticAMD\">\n"
      "<pci busid=\"0000:18:00.0\" link_width=\"4\">\n<gpu dev=\"0\" gdr=\"0\"/>\n</pci>\n</cpu>\n</system>");
  const std::string text = detected(input);
  EXPECT_NE(text.find("vendor=\"AuthenticAMD\""), std::string::npos) << text;
  EXPECT_NE(text.find("affinity=\"000000f0\""), std::string::npos) << "added: " << text;
  EXPECT_NE(text.find("link_width=\"4\""), std::string::npos) << text;
  EXPECT_NE(text.find("class=\"0x030200\""), std::string::npos) << "added: " << text;
  EXPECT_NE(text.find("<gpu dev=\"3\" gdr=\"0\" sm=\"90\"/>"), std::string::npos) << "its number here: " << text;
  EXPECT_EQ(text.find("0000:16:00.0"), std::string::npos) << "the GPU stays where the file has it";
}

TEST(GivenFile, IsCompletedHoweverItWritesBusIds) {
  DetectInput input;
  input.host = switchedHost();
  input.gpus = {gpuAt("0000:18:00.0", 3)};
  input.gpus[0].pcieGeneration = 3;
  input.gpus[0].pcieWidth = 8;
  input.given = parsedText(
      "<system version=\"1\"><cpu numaid=\"1\"><pci busid=\"00000000:18:00.0\"><gpu dev=\"0\"/></pci></cpu></system>");
  const std::string text = detected(input);
  EXPECT_NE(text.find("link_speed=\"32.0 GT/s PCIe\" link_width=\"16\""), std::string::npos)
      << "what /sys knows, not NVML's answer: " << text;
}

TEST(GivenFile, LosesGpusThatAreNotThereWhereAllAreKnown) {
  DetectInput input;
  input.host = switchedHost();
  input.gpus = {gpuAt("0000:18:00.0", 0)};
  input.given = parsedText(
      "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:77:00.0\" class=\"0x030200\"><gpu dev=\"0\"/></pci>"
      "</cpu></system>");
  const std::string before = detected(input);
  EXPECT_NE(before.find("<gpu"), before.rfind("<gpu")) << "others may know the file's: " << before;
  input.gpusComplete = true;
  const std::string text = detected(input);
  EXPECT_NE(text.find("<gpu dev=\"0\" sm=\"90\""), std::string::npos) << "the one that is there was added: " << text;
  EXPECT_EQ(text.find("<gpu"), text.rfind("<gpu")) << text;
}

TEST(GivenFile, KeepsNetsThatPluginsKnowByName) {
  DetectInput input;
  input.given = parsedText(
      "<system version=\"1\"><cpu numaid=\"0\"><nic><net name=\"b\" dev=\"0\" speed=\"5\"/><net name=\"gone\" "
      "dev=\"1\"/>"
      "</nic></cpu></system>");
  EXPECT_NE(detected(input).find("gone"), std::string::npos) << "nobody was asked";
  NetDeviceFacts a;
  a.name = "a";
  NetDeviceFacts b;
  b.name = "b";
  input.nets = {a, b};
  const std::string text = detected(input);
  EXPECT_EQ(text.find("gone"), std::string::npos) << text;
  EXPECT_NE(text.find("<net name=\"b\" dev=\"1\" speed=\"5\""), std::string::npos) << text;
  EXPECT_NE(text.find("<net name=\"a\" dev=\"0\" speed=\"10000\""), std::string::npos) << text;
}

TEST(GivenFile, MustBeATopology) {
  DetectInput input;
  input.given = parsedText("<graphs version=\"1\"/>");
  input.givenOrigin = "given.xml";
  test::expectLog("given.xml, line 1, <graphs>: a topology file begins with <system version=");
  EXPECT_EQ(detectTopology(input).status().code(), ncclInvalidUsage);
}

TEST(BusIds, AreBroughtIntoOneForm) {
  EXPECT_EQ(normalBusId("00000000:1B:00.0"), "0000:1b:00.0");
  EXPECT_EQ(normalBusId("0008:01:00.0"), "0008:01:00.0");
  EXPECT_EQ(normalBusId("00010000:01:1f.7"), "10000:01:1f.7");
  EXPECT_EQ(normalBusId("1b:00.0"), "0000:1b:00.0");
  for (const char* wrong : {"", "eth0", "pci0000:15", "0000:1b:00", "0000:1b:00.0x", "0000:100:00.0", "0000:1b:20.0",
                            "0000:1b:00.8", "-001:1b:00.0", "0000:1b:00.0/net", "0000000000:1b:00.0"}) {
    EXPECT_EQ(normalBusId(wrong), "") << wrong;
  }
}

TEST(BusIds, AreFoundAtTheEndOfPaths) {
  EXPECT_EQ(lastBusId("/sys/devices/pci0000:15/0000:15:01.0/0000:19:00.0"), "0000:19:00.0");
  EXPECT_EQ(lastBusId("/sys/devices/pci0000:15/0000:19:00.0/net/eth0/"), "0000:19:00.0");
  EXPECT_EQ(lastBusId("/sys/devices/virtual/net/lo"), "");
  EXPECT_EQ(lastBusId(""), "");
}

/// Facts about every known machine give that machine.
class KnownMachine : public testing::TestWithParam<std::string> {};

TEST_P(KnownMachine, IsDetectedFromItsFacts) {
  const XmlElement machine = test::machineFile(GetParam());
  DetectInput input;
  input.host = test::hostFactsOf(machine);
  input.gpus = test::gpuFactsOf(machine);
  input.nets = test::netFactsOf(machine);
  const auto found = detectTopology(input);
  ASSERT_TRUE(found.ok());
  for (const bool interNode : {false, true}) {
    EXPECT_EQ(test::differenceOfWays(machine, found.value(), interNode), "") << writeXml(found.value());
  }
}

/// Software interfaces hang nowhere. In these files they stand at the CPU of a bonded NIC, and at the CPU of each rank.
bool hasInterfacesElsewhere(const std::string& name) {
  return name == "notes_a6000x2_spr" || name == "sugarlxn_4090x4";
}

std::vector<std::string> allMachines() {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(test::fixture("topo"), error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().stem().string();
    if (entry->path().extension() == ".xml" && !hasInterfacesElsewhere(name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Detection, KnownMachine, testing::ValuesIn(allMachines()),
                         [](const auto& machine) { return machine.param; });

}  // namespace
}  // namespace tutti::topo
