#include "topo/detect/sysfs.h"

#include <gtest/gtest.h>

#include <clocale>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>

#include "support/log_capture.h"
#include "topo/detect/detect_facts.h"
#include "topo/detect/hwloc.h"
#include "topo/xml/values.h"

namespace tutti::topo {
namespace {

using namespace tutti::test;

std::string hwlocText(const std::string& name) {
  std::ifstream file(test::fixture("detect/" + name + ".hwloc.xml"));
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

const PciFacts* find(const HostFacts& facts, const std::string& busId) {
  for (const PciFacts& pci : facts.pci) {
    if (pci.busId == busId) return &pci;
  }
  return nullptr;
}

/// The same ways as the machine's own file, with what this source says of the host.
void expectMachine(const HostFacts& host, const std::string& machine) {
  const XmlElement system = test::machineFile(machine);
  DetectInput input;
  input.host = host;
  input.gpus = test::gpuFactsOf(system);
  input.nets = test::netFactsOf(system);
  const auto found = detectTopology(input);
  ASSERT_TRUE(found.ok());
  for (const bool interNode : {false, true}) {
    EXPECT_EQ(test::differenceOfWays(system, found.value(), interNode), "") << writeXml(found.value());
  }
}

TEST(Sysfs, GivesAServerWithSwitches) {
  const HostFacts host = readSysfs(test::RecordedSystem("dgx_h100").root());
  EXPECT_EQ(host.numaNodes.size(), 2u);
  EXPECT_EQ(host.processor.vendor, "GenuineIntel");
  EXPECT_EQ(host.processor.model, 143);
  expectMachine(host, "own_dgx_h100");
}

TEST(Sysfs, GivesAServerWithNvlinksBetweenGpus) {
  expectMachine(readSysfs(test::RecordedSystem("dgx1v").root()), "own_dgx1v");
}

TEST(Sysfs, GivesAWorkstation) {
  expectMachine(readSysfs(test::RecordedSystem("ws_pcie4").root()), "own_ws_pcie4_intel");
}

TEST(Sysfs, GivesAnArmMachineAndSkipsNodesOfMemoryAlone) {
  const HostFacts host = readSysfs(test::RecordedSystem("gb200_tray").root());
  EXPECT_EQ(host.processor.arch, "arm64");
  ASSERT_EQ(host.numaNodes.size(), 2u) << "the third has no CPUs";
  EXPECT_EQ(host.numaNodes[1].affinity, "ffff0000,00000000");
  expectMachine(host, "own_gb200_tray");
}

TEST(Sysfs, GivesAVirtualMachineThatHidesPci) {
  const HostFacts host = readSysfs(test::RecordedSystem("vm_a6000x2").root());
  EXPECT_TRUE(host.pci.empty());
  EXPECT_TRUE(host.numaNodes.empty());
  expectMachine(host, "ncclminer_a6000x2_vm");
}

TEST(Sysfs, TakesTheMostOfDeviceAndSlot) {
  const test::RecordedSystem system("ws_pcie4");
  const HostFacts before = readSysfs(system.root());
  const PciFacts* gpu = find(before, "0000:01:00.0");
  ASSERT_NE(gpu, nullptr);
  EXPECT_EQ(gpu->linkSpeed, "16.0 GT/s PCIe") << "neither the slot's nor that of the sleeping link";
  EXPECT_EQ(gpu->linkWidth, 16);
  system.put("sys/bus/pci/devices/" + gpu->parent + "/max_link_speed", "8.0 GT/s PCIe\n");
  system.put("sys/bus/pci/devices/" + gpu->parent + "/max_link_width", "4\n");
  const HostFacts after = readSysfs(system.root());
  EXPECT_EQ(find(after, "0000:01:00.0")->linkSpeed, "8.0 GT/s PCIe");
  EXPECT_EQ(find(after, "0000:01:00.0")->linkWidth, 4);
}

TEST(Sysfs, TakesWhatVirtualBusesSayForUnknown) {
  const test::RecordedSystem system("ws_pcie4");
  system.put("sys/bus/pci/devices/0000:01:00.0/max_link_speed", "Unknown\n");
  system.put("sys/bus/pci/devices/0000:01:00.0/max_link_width", "255\n");
  system.put("sys/bus/pci/devices/0000:01:00.0/numa_node", "-1\n");
  const HostFacts host = readSysfs(system.root());
  const PciFacts* gpu = find(host, "0000:01:00.0");
  ASSERT_NE(gpu, nullptr);
  EXPECT_EQ(gpu->linkSpeed, "");
  EXPECT_EQ(gpu->linkWidth, 0);
  EXPECT_EQ(gpu->numa, -1);
}

TEST(Sysfs, LeavesOutWhatNoTopologyNeeds) {
  const HostFacts host = readSysfs(test::RecordedSystem("dgx_h100").root());
  EXPECT_EQ(find(host, "0000:f0:01.0"), nullptr) << "a disk";
  EXPECT_NE(find(host, "0000:19:00.0"), nullptr);
}

TEST(Sysfs, KnowsNothingWhereThereIsNothing) {
  const HostFacts host = readSysfs("/nonexistent");
  EXPECT_TRUE(host.pci.empty());
  EXPECT_TRUE(host.numaNodes.empty());
  EXPECT_EQ(host.processor.arch, "");
}

TEST(Sysfs, SurvivesRubbish) {
  const test::RecordedSystem system("ws_pcie4");
  system.put("proc/cpuinfo", std::string("\0\n:\nvendor_id\nvendor_id:", 22));
  system.put("sys/devices/system/node/node0/cpumap", "");
  system.put("sys/devices/system/node/nodeX/cpumap", "ff\n");
  system.put("sys/bus/pci/devices/rubbish/class", "0x030000\n");
  system.put("sys/bus/pci/devices/0000:01:00.0/class", "three\n");
  system.put("sys/bus/pci/devices/0000:21:00.0/vendor", std::string(9000, 'f'));
  const HostFacts host = readSysfs(system.root());
  EXPECT_TRUE(host.numaNodes.empty());
  EXPECT_EQ(find(host, "0000:01:00.0"), nullptr);
  EXPECT_NE(find(host, "0000:21:00.0"), nullptr);
}

TEST(Sysfs, TellsArchitecturesApart) {
  const test::RecordedSystem system("vm_a6000x2");
  EXPECT_EQ(readSysfs(system.root()).processor.arch, "x86_64");
  system.put("proc/cpuinfo", "processor\t: 0\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 3800.000000MHz\n");
  EXPECT_EQ(readSysfs(system.root()).processor.arch, "ppc64");
  system.put("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\n");
  EXPECT_EQ(readSysfs(system.root()).processor.arch, "arm64");
}

TEST(Sysfs, GivesThisMachinesCpus) {
  const HostFacts host = readSysfs();
  EXPECT_NE(host.processor.arch, "");
  for (const NumaNodeFacts& node : host.numaNodes) EXPECT_GE(node.affinity.size(), 8u);
}

TEST(Sysfs, PadsShortCpuMaps) {
  const HostFacts host = readSysfs(test::RecordedSystem("vm_no_gpu").root());
  ASSERT_EQ(host.numaNodes.size(), 1u);
  EXPECT_EQ(host.numaNodes[0].affinity, "00000003");
  EXPECT_EQ(host.processor.vendor, "AuthenticAMD");
  EXPECT_NE(find(host, "0000:00:03.0"), nullptr) << "its network function";
}

class HwlocFile : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(HwlocFile, GivesTheMachine) {
  const auto host = readHwlocXml(hwlocText(GetParam().first), GetParam().first);
  ASSERT_TRUE(host.ok());
  expectMachine(host.value(), GetParam().second);
}

INSTANTIATE_TEST_SUITE_P(Hwloc, HwlocFile,
                         testing::Values(std::pair("dgx_h100", "own_dgx_h100"),
                                         std::pair("ws_pcie4", "own_ws_pcie4_intel"),
                                         std::pair("gb200_tray", "own_gb200_tray"),
                                         std::pair("vm_a6000x2", "ncclminer_a6000x2_vm")),
                         [](const auto& machine) { return machine.param.first; });

TEST(Hwloc, SaysTheSameAsSysfs) {
  const HostFacts sysfs = readSysfs(test::RecordedSystem("dgx_h100").root());
  const auto hwloc = readHwlocXml(hwlocText("dgx_h100"), "dgx_h100");
  ASSERT_TRUE(hwloc.ok());
  EXPECT_EQ(hwloc.value().processor.vendor, sysfs.processor.vendor);
  EXPECT_EQ(hwloc.value().processor.model, sysfs.processor.model);
  ASSERT_EQ(hwloc.value().numaNodes.size(), 2u);
  EXPECT_EQ(hwloc.value().numaNodes[1].affinity, sysfs.numaNodes[1].affinity);
  for (const PciFacts& pci : sysfs.pci) {
    const PciFacts* other = find(hwloc.value(), pci.busId);
    ASSERT_NE(other, nullptr) << pci.busId;
    EXPECT_EQ(other->parent, pci.parent) << pci.busId;
    EXPECT_EQ(other->classCode, pci.classCode) << pci.busId;
    EXPECT_EQ(other->vendor, pci.vendor) << pci.busId;
    EXPECT_EQ(other->numa, pci.numa) << pci.busId;
    if (pci.parent.empty()) continue;  // a root port, faster than what runs behind it
    EXPECT_EQ(other->linkSpeed, pci.linkSpeed) << pci.busId;
    EXPECT_EQ(other->linkWidth, pci.linkWidth) << pci.busId;
  }
}

/// Numbers with a comma while it lives, as a program has them that calls setlocale().
class CommaLocale {
 public:
  CommaLocale() {
    const std::string& root = folder_.root();
    folder_.put("numbers", "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \"\"\ngrouping -1\nEND LC_NUMERIC\n");
    // It complains of all that is not in the file.
    const std::string make = "localedef -c -i " + root + "/numbers -f UTF-8 " + root + "/comma.UTF-8 >/dev/null 2>&1";
    if (std::system(make.c_str()) < 0) return;
    ::setenv("LOCPATH", root.c_str(), 1);
    set_ = std::setlocale(LC_NUMERIC, "comma.UTF-8") != nullptr;
  }
  CommaLocale(const CommaLocale&) = delete;
  ~CommaLocale() {
    std::setlocale(LC_NUMERIC, "C");
    ::unsetenv("LOCPATH");
  }
  bool isSet() const { return set_; }

 private:
  test::RecordedSystem folder_{"vm_no_gpu"};
  bool set_ = false;
};

TEST(Hwloc, ReadsNumbersAlikeInAllLocales) {
  const CommaLocale locale;
  if (!locale.isSet()) GTEST_SKIP() << "a locale with decimal commas cannot be made here";
  ASSERT_EQ(std::strtod("1,5", nullptr), 1.5);
  const auto host = readHwlocXml(
      "<topology version=\"2.0\"><object type=\"Machine\"><object type=\"PCIDev\" pci_busid=\"0000:01:00.0\" "
      "pci_type=\"0302 [10de:2330] [10de:16c1] a1\" pci_link_speed=\"1.969231\"/></object></topology>",
      "t.xml");
  ASSERT_TRUE(host.ok());
  ASSERT_EQ(host.value().pci.size(), 1u);
  EXPECT_EQ(host.value().pci[0].linkWidth, 8) << "taken as 1 GB/s it has 4 lanes";
  EXPECT_EQ(host.value().pci[0].linkSpeed, "2.5 GT/s PCIe");
}

TEST(Hwloc, RefusesOtherFiles) {
  test::expectLog("a.xml, line 2: not well formed: ");
  EXPECT_EQ(readHwlocXml("<topology>\n<object", "a.xml").status().code(), ncclInvalidUsage);
  test::expectLog("b.xml: no topology of hwloc 2");
  EXPECT_EQ(readHwlocXml("<system version=\"1\"/>", "b.xml").status().code(), ncclInvalidUsage);
  test::expectLog("c.xml: no topology of hwloc 2");
  EXPECT_EQ(readHwlocXml("<topology><object type=\"Machine\"/></topology>", "c.xml").status().code(), ncclInvalidUsage);
}

TEST(Hwloc, SurvivesDamage) {
  test::allowLog("not well formed");
  test::allowLog("no topology of hwloc 2");
  const std::string whole = hwlocText("ws_pcie4");
  for (std::size_t at = 0; at < whole.size(); at += 31) {
    for (const char wrong : {'\0', '"', '<', '9', '\xff'}) {
      std::string text = whole;
      text[at] = wrong;
      if (const auto host = readHwlocXml(text, "damaged.xml"); host.ok()) {
        DetectInput input;
        input.host = host.value();
        input.gpus.resize(1);
        input.gpus[0].busId = "0000:01:00.0";
        input.gpus[0].sm = 86;
        EXPECT_TRUE(detectTopology(input).ok());
      }
    }
    readHwlocXml(std::string_view(whole).substr(0, at), "cut.xml").status().ignore();
  }
}

TEST(Hwloc, ListsNodesByNumberAndEachOnce) {
  const auto host = readHwlocXml(
      "<topology version=\"2.0\"><object type=\"Machine\"><object type=\"NUMANode\" os_index=\"8\" cpuset=\"0x2\"/>"
      "<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x1\"/><object type=\"NUMANode\" os_index=\"8\" "
      "cpuset=\"0x4\"/></object></topology>",
      "t.xml");
  ASSERT_TRUE(host.ok());
  ASSERT_EQ(host.value().numaNodes.size(), 2u);
  EXPECT_EQ(host.value().numaNodes[0].id, 0);
  EXPECT_EQ(host.value().numaNodes[1].affinity, "00000002");
}

TEST(Hwloc, TakesTimeAndMemoryByTheSizeOfTheFile) {
  // A set of a megabyte that thousands of functions stand in, and thousands of nodes.
  std::string text =
      "<topology version=\"2.0\"><object type=\"Machine\" nodeset=\"" + std::string(1 << 20, '0') + "\">";
  for (int i = 0; i < 20000; ++i) {
    text += "<object type=\"NUMANode\" cpuset=\"0x1\" os_index=\"" + std::to_string(i) + "\" nodeset=\"" +
            std::to_string(i) + "\"/>";
    text += "<object type=\"PCIDev\" pci_busid=\"" + busIdText(static_cast<unsigned>(i) << 12) + "\"/>";
  }
  const std::clock_t begin = std::clock();
  const auto host = readHwlocXml(text + "</object></topology>", "t.xml");
  ASSERT_TRUE(host.ok());
  EXPECT_EQ(host.value().pci.size(), 20000u);
  DetectInput input;
  input.host = host.value();
  EXPECT_TRUE(detectTopology(input).ok());
  EXPECT_LT(std::clock() - begin, 5 * CLOCKS_PER_SEC);
}

TEST(Hwloc, ToleratesWhatIsMissing) {
  const auto host = readHwlocXml(
      "<topology version=\"2.0\"><object type=\"Machine\"><object type=\"PCIDev\" pci_busid=\"x\"/>"
      "<object type=\"PCIDev\" pci_busid=\"0000:01:00.0\" pci_type=\"zz\" pci_link_speed=\"-1\"/>"
      "<object type=\"NUMANode\" cpuset=\"0xf...f\"/></object></topology>",
      "t.xml");
  ASSERT_TRUE(host.ok());
  ASSERT_EQ(host.value().pci.size(), 1u);
  EXPECT_EQ(host.value().pci[0].linkSpeed, "");
  EXPECT_TRUE(host.value().numaNodes.empty());
}

}  // namespace
}  // namespace tutti::topo
