#include "topo/detect/sysfs.h"

#include <gtest/gtest.h>

#include "topo/detect/detect_facts.h"

namespace tutti::topo {
namespace {

using namespace tutti::test;

const PciFacts* find(const HostFacts& facts, const std::string& busId) {
  for (const PciFacts& pci : facts.pci) {
    if (pci.busId == busId) return &pci;
  }
  return nullptr;
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

TEST(Sysfs, KnowsWhichDeviceIsWhichFunction) {
  const test::RecordedSystem system("dgx_h100");
  system.put("sys/class/net/eth0", "of a container");
  const std::vector<OsDeviceFacts> devices = readSysfs(system.root()).devices;
  ASSERT_EQ(devices.size(), 8u);
  EXPECT_EQ(devices[0], (OsDeviceFacts{"mlx5_0", "0000:19:00.0"}));
}

TEST(Sysfs, WritesCpuMapsOfAllKernelsAlike) {
  const test::RecordedSystem system("ws_pcie4");
  system.put("sys/devices/system/node/node0/cpumap", "00000000,00000000,0000ffff\n");
  EXPECT_EQ(readSysfs(system.root()).numaNodes.at(0).affinity, "0000ffff");
}

TEST(Sysfs, PadsShortCpuMaps) {
  const HostFacts host = readSysfs(test::RecordedSystem("vm_no_gpu").root());
  ASSERT_EQ(host.numaNodes.size(), 1u);
  EXPECT_EQ(host.numaNodes[0].affinity, "00000003");
  EXPECT_EQ(host.processor.vendor, "AuthenticAMD");
  EXPECT_NE(find(host, "0000:00:03.0"), nullptr) << "its network function";
}

}  // namespace
}  // namespace tutti::topo
