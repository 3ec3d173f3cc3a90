// hwloc and /sys say the same of every machine.
#include "topo/detect/hwloc.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "base/hwloc/calls.h"
#include "support/log_capture.h"
#include "topo/detect/detect_facts.h"
#include "topo/detect/sysfs.h"
#include "topo/xml/values.h"

namespace tutti::topo {
namespace {

using namespace tutti::test;

namespace files = std::filesystem;

std::string fixtureText(const std::string& part) {
  std::ifstream file(test::fixture(part));
  EXPECT_TRUE(file.good()) << part;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// All of them, a line each. Where the system does not say to which node a function belongs, hwloc says that it belongs
/// to the only one there is: that makes no difference.
std::string textOf(const HostFacts& facts) {
  const ProcessorFacts& cpu = facts.processor;
  std::string text = fmt::format("processor {} {} {} {}\n", cpu.arch, cpu.vendor, cpu.family, cpu.model);
  std::set<int> nodes;
  for (const NumaNodeFacts& node : facts.numaNodes) {
    nodes.insert(node.id);
    text += fmt::format("node {} {}\n", node.id, node.affinity);
  }
  for (const PciFacts& pci : facts.pci) {
    const int numa = nodes.size() == 1 ? *nodes.begin() : nodes.count(pci.numa) != 0 ? pci.numa : -1;
    text += fmt::format("{} below \"{}\": {:06x} {:04x}:{:04x} {:04x}:{:04x} {} x{} at {}\n", pci.busId, pci.parent,
                        pci.classCode, pci.vendor, pci.device, pci.subsystemVendor, pci.subsystemDevice, pci.linkSpeed,
                        pci.linkWidth, numa);
  }
  for (const OsDeviceFacts& device : facts.devices) text += fmt::format("{} is {}\n", device.name, device.busId);
  return text;
}

/// The file of the machine in which every function that could be one has a GPU or a NIC.
std::string machineOf(const HostFacts& facts) {
  DetectInput input;
  input.host = facts;
  input.nets.emplace();
  for (const PciFacts& pci : facts.pci) {
    if (pci.classCode >> 16 == 3) input.gpus.push_back({.busId = pci.busId, .sm = 90});
    if (pci.classCode >> 16 == 2) input.nets->push_back({.name = pci.busId, .pciPath = "/sys/devices/" + pci.busId});
  }
  for (const OsDeviceFacts& device : facts.devices) input.nets->push_back({.name = device.name});
  const auto found = detectTopology(input);
  EXPECT_TRUE(found.ok());
  return found.ok() ? writeXml(found.value()) : std::string();
}

constexpr const char* kNotAll = "hwloc does not show all NUMA nodes and PCI functions, or not where they are";

class HwlocTest : public testing::Test {
 protected:
  void SetUp() override {
    if (Hwloc::instance().calls() == nullptr) GTEST_SKIP() << Hwloc::instance().text();
  }
};

/// The folder is what hwloc takes for the root of the system while this lives.
class TakenForRoot {
 public:
  explicit TakenForRoot(const std::string& folder) { ::setenv("HWLOC_FSROOT", folder.c_str(), 1); }
  TakenForRoot(const TakenForRoot&) = delete;
  ~TakenForRoot() { ::unsetenv("HWLOC_FSROOT"); }
};

/// Trees that hwloc reads, of the machines that are named; gone when it goes. Thousands of small files: in memory where
/// there is room.
class Trees {
 public:
  explicit Trees(const std::string& machines) {
    constexpr std::uintmax_t kRoom = 512 << 20;
    std::error_code error;
    const bool inMemory = files::space("/dev/shm", error).available > kRoom && !error;
    folder_ = (inMemory ? "/dev/shm/" : testing::TempDir()) + "tutti-trees-XXXXXX";
    EXPECT_NE(::mkdtemp(folder_.data()), nullptr) << folder_;
    const std::string generator = test::fixture("detect/from_topology.py");
    const std::string command = "python3 " + generator + " --trees " + folder_ + " " + machines;
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
  Trees(const Trees&) = delete;
  ~Trees() {
    std::error_code ignored;
    files::remove_all(folder_, ignored);
  }

  std::vector<std::string> roots() const {
    std::vector<std::string> all;
    for (const auto& entry : files::directory_iterator(folder_)) all.push_back(entry.path().string());
    std::sort(all.begin(), all.end());
    return all;
  }
  std::string root(const std::string& machine) const { return folder_ + "/" + machine; }

 private:
  std::string folder_;
};

std::optional<HostFacts> byHwloc(const std::string& root) {
  const TakenForRoot taken(root);
  std::string why;
  std::optional<HostFacts> facts = readHwloc(root, why);
  EXPECT_TRUE(facts) << root << ": " << why;
  return facts;
}

TEST_F(HwlocTest, GivesEveryRecordedMachineAsSysfsDoes) {
  const Trees trees(test::fixture("topo/*.xml") + " " + test::fixture("detect/*.sys"));
  const std::vector<std::string> roots = trees.roots();
  EXPECT_GT(roots.size(), 55u);
  std::size_t read = 0;
  for (const std::string& root : roots) {
    const TakenForRoot taken(root);
    std::string why;
    const std::optional<HostFacts> facts = readHwloc(root, why);
    if (!facts) {
      // Files that a VM's provider wrote, or somebody made up: buses that no system numbers like that.
      EXPECT_EQ(why, kNotAll) << root;
      continue;
    }
    ++read;
    EXPECT_EQ(textOf(*facts), textOf(readSysfs(root))) << root;
    EXPECT_EQ(machineOf(*facts), machineOf(readSysfs(root))) << root;
  }
  EXPECT_GE(read, roots.size() / 2);
}

TEST_F(HwlocTest, GivesThisMachineAsSysfsDoes) {
  std::string why;
  const std::optional<HostFacts> facts = readHwloc({}, why);
  ASSERT_TRUE(facts) << why;
  EXPECT_EQ(textOf(*facts), textOf(readSysfs()));
  EXPECT_EQ(machineOf(*facts), machineOf(readSysfs()));
  EXPECT_NE(facts->processor.arch, "");
}

TEST_F(HwlocTest, FindsServersByItself) {
  const Trees trees(test::fixture("detect/dgx_h100.sys") + " " + test::fixture("detect/ws_pcie4.sys") + " " +
                    test::fixture("detect/gb200_tray.sys"));
  expectMachine(*byHwloc(trees.root("dgx_h100")), "own_dgx_h100");
  expectMachine(*byHwloc(trees.root("ws_pcie4")), "own_ws_pcie4_intel");
  expectMachine(*byHwloc(trees.root("gb200_tray")), "own_gb200_tray");
}

/// Why hwloc is not believed.
std::string complaintOf(const std::string& root) {
  const TakenForRoot taken(root);
  std::string why;
  EXPECT_FALSE(readHwloc(root, why)) << root;
  return why;
}

TEST_F(HwlocTest, IsNotBelievedWhereItShowsLess) {
  const Trees trees(test::fixture("detect/ws_pcie4.sys"));
  const std::string root = trees.root("ws_pcie4");
  // A domain of more than 16 bits, which hwloc leaves out.
  const std::string at = "/sys/devices/pci10000:e0/10000:e0:01.0";
  files::create_directories(root + at);
  files::create_symlink("../../.." + at.substr(4), root + "/sys/bus/pci/devices/10000:e0:01.0");
  std::ofstream(root + at + "/class") << "0x010802\n";
  EXPECT_TRUE(byHwloc(root)) << "a disk behind such a domain is no matter";
  std::ofstream(root + at + "/class") << "0x030200\n";
  EXPECT_EQ(complaintOf(root), kNotAll);
}

TEST_F(HwlocTest, IsNotBelievedWhereItPutsFunctionsElsewhere) {
  const Trees trees(test::fixture("detect/dgx_h100.sys"));
  const std::string root = trees.root("dgx_h100");
  EXPECT_TRUE(byHwloc(root));
  for (const auto& entry : files::directory_iterator(root + "/sys/bus/pci/devices")) {
    files::remove(entry.path() / "config");
  }
  EXPECT_EQ(complaintOf(root), kNotAll);
}

TEST_F(HwlocTest, IsNotAskedWhereItWouldEndTheProcess) {
  const Trees trees(test::fixture("detect/dgx_h100.sys"));
  const std::string root = trees.root("dgx_h100");
  const TakenForRoot taken(root);
  const std::string online = root + "/sys/devices/system/node/online";
  test::allowLog("node/online is no list of NUMA nodes");
  for (const char* list : {"", "\n", "1,0", "0-", "0,,1", "1-0", "x", "0,1-1,1", "0;1"}) {
    std::ofstream(online) << list;
    std::string why;
    EXPECT_FALSE(readHwloc(root, why)) << list;
    EXPECT_NE(why.find("node/online is no list of NUMA nodes"), std::string::npos) << why;
  }
  std::string why;
  std::ofstream(online) << "0-1\n";
  EXPECT_TRUE(readHwloc(root, why)) << why;
  files::remove(online);
  EXPECT_TRUE(readHwloc(root, why)) << why;
  files::remove_all(root + "/sys/devices/system/node");
  files::create_directories(root + "/sys/devices/system/node");
  EXPECT_FALSE(readHwloc(root, why));
}

TEST_F(HwlocTest, IsNotAskedForAFolderThatItDoesNotRead) {
  std::string why;
  EXPECT_FALSE(readHwloc("/nonexistent", why));
  EXPECT_EQ(why, "HWLOC_FSROOT does not name it");
}

TEST_F(HwlocTest, IsNotBelievedOfAnotherMachine) {
  ::setenv("HWLOC_SYNTHETIC", "node:2 pu:4", 1);
  std::string why;
  EXPECT_FALSE(readHwloc({}, why));
  ::unsetenv("HWLOC_SYNTHETIC");
  EXPECT_NE(why.find("names another machine"), std::string::npos) << why;
}

TEST(NetDevice, WithoutAPathIsTheSystemsOfThatName) {
  DetectInput input;
  input.host = readSysfs(test::RecordedSystem("dgx_h100").root());
  input.nets = {{.name = "mlx5_2"}, {.name = "veth7"}};
  const auto found = detectTopology(input);
  ASSERT_TRUE(found.ok());
  const std::string text = writeXml(found.value());
  const std::size_t function = text.find("busid=\"0000:3b:00.0\"");
  ASSERT_NE(function, std::string::npos) << text;
  EXPECT_NE(text.find("name=\"mlx5_2\"", function), std::string::npos) << text;
  EXPECT_NE(text.find("    <nic>\n      <net name=\"veth7\""), std::string::npos) << "a virtual one: " << text;
}

class HwlocFile : public HwlocTest, public testing::WithParamInterface<std::pair<const char*, const char*>> {};

TEST_P(HwlocFile, GivesTheMachine) {
  std::string why;
  const auto host = readHwlocXml(fixtureText(fmt::format("detect/{}.hwloc.xml", GetParam().first)), why);
  ASSERT_TRUE(host) << why;
  expectMachine(*host, GetParam().second);
}

INSTANTIATE_TEST_SUITE_P(Hwloc, HwlocFile,
                         testing::Values(std::pair("dgx_h100", "own_dgx_h100"),
                                         std::pair("ws_pcie4", "own_ws_pcie4_intel"),
                                         std::pair("gb200_tray", "own_gb200_tray"),
                                         std::pair("vm_a6000x2", "ncclminer_a6000x2_vm")),
                         [](const auto& machine) { return machine.param.first; });

TEST_F(HwlocTest, SaysInAFileWhatSysfsSays) {
  HostFacts sysfs = readSysfs(test::RecordedSystem("dgx_h100").root());
  std::string why;
  std::optional<HostFacts> file = readHwlocXml(fixtureText("detect/dgx_h100.hwloc.xml"), why);
  ASSERT_TRUE(file) << why;
  EXPECT_EQ(file->processor.vendor, sysfs.processor.vendor);
  EXPECT_EQ(file->processor.model, sysfs.processor.model);
  ASSERT_EQ(file->numaNodes.size(), 2u);
  EXPECT_EQ(file->numaNodes[1].affinity, sysfs.numaNodes[1].affinity);
  std::map<std::string, PciFacts> byId;
  for (PciFacts& pci : file->pci) byId.emplace(pci.busId, pci);
  for (const PciFacts& pci : sysfs.pci) {
    const auto other = byId.find(pci.busId);
    ASSERT_NE(other, byId.end()) << pci.busId;
    EXPECT_EQ(other->second.parent, pci.parent) << pci.busId;
    EXPECT_EQ(other->second.classCode, pci.classCode) << pci.busId;
    EXPECT_EQ(other->second.vendor, pci.vendor) << pci.busId;
    EXPECT_EQ(other->second.numa, pci.numa) << pci.busId;
    if (pci.parent.empty()) continue;  // a root port, faster than what runs behind it
    EXPECT_EQ(other->second.linkSpeed, pci.linkSpeed) << pci.busId;
    EXPECT_EQ(other->second.linkWidth, pci.linkWidth) << pci.busId;
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

TEST_F(HwlocTest, ReadsNumbersAlikeInAllLocales) {
  const CommaLocale locale;
  if (!locale.isSet()) GTEST_SKIP() << "a locale with decimal commas cannot be made here";
  ASSERT_EQ(std::strtod("1,5", nullptr), 1.5);
  std::string why;
  const auto host = readHwlocXml(fixtureText("detect/ws_pcie4.hwloc.xml"), why);
  ASSERT_TRUE(host) << why;
  const auto gpu =
      std::find_if(host->pci.begin(), host->pci.end(), [](const auto& pci) { return pci.classCode >> 16 == 3; });
  ASSERT_NE(gpu, host->pci.end());
  EXPECT_EQ(gpu->linkWidth, 16) << "31.5 GB/s, of which 31 are something else";
  EXPECT_EQ(gpu->linkSpeed, "16.0 GT/s PCIe");
  EXPECT_EQ(std::strtod("1,5", nullptr), 1.5) << "the application's locale is as it was";
}

TEST_F(HwlocTest, TakesTimeByTheSizeOfTheFile) {
  std::string text = fixtureText("detect/ws_pcie4.hwloc.xml");
  std::string devices;
  for (unsigned i = 0; i < 20000; ++i) {
    devices += fmt::format(
        "<object type=\"PCIDev\" gp_index=\"{}\" pci_busid=\"{:04x}:{:02x}:00.0\" pci_type=\"0302 [10de:2330] "
        "[10de:16c1] a1\" pci_link_speed=\"1.0\"/>",
        5000 + i, 1 + i / 256, i % 256);
  }
  text.insert(text.rfind("</object>"), devices);
  const std::clock_t begin = std::clock();
  std::string why;
  const auto host = readHwlocXml(text, why);
  ASSERT_TRUE(host) << why;
  EXPECT_GT(host->pci.size(), 20000u);
  EXPECT_LT(std::clock() - begin, 10 * CLOCKS_PER_SEC);
}

}  // namespace
}  // namespace tutti::topo
