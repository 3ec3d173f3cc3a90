#include "comm/network/gpu_direct.h"

#include <gtest/gtest.h>

#include "comm/network/network.h"
#include "comm/network/nics.h"
#include "comm/settings/network_settings.h"
#include "plugin/network/net.h"
#include "topo/detect/detect.h"
#include "topo/machine/path_settings.h"
#include "topo/search/search.h"
#include "topo/search/topology.h"
#include "topo/xml/topology_xml.h"

namespace tutti::comm {
namespace {

plugin::NetProperties deviceWith(int ptrSupport, bool forceFlush = false) {
  plugin::NetProperties device;
  device.ptrSupport = ptrSupport;
  device.forceFlush = forceFlush;
  return device;
}

constexpr int kHostMemory = 1, kGpuMemory = 2, kDmaBufs = 4;
constexpr NicAccess kNear{.device = 0, .reads = true, .writes = true, .apartFromCpu = false};

/// A receiver on an H100 with a near NIC.
net::SlotPlace placeFor(int ptrSupport, GpuDirectSettings settings = {}, std::optional<NicAccess> access = kNear,
                        bool dmaBufs = false, int computeCapability = 90,
                        device::Direction direction = device::Direction::Recv) {
  const plugin::NetProperties device = deviceWith(ptrSupport);
  return slotPlaceFor({.device = device,
                       .access = access,
                       .direction = direction,
                       .computeCapability = computeCapability,
                       .softGpu = false,
                       .dmaBufs = dmaBufs},
                      settings);
}

TEST(GpuDirect, TakesADeviceThatReachesGpuMemory) {
  EXPECT_FALSE(placeFor(kHostMemory).onDevice);
  EXPECT_TRUE(placeFor(kHostMemory | kGpuMemory).onDevice);
  EXPECT_FALSE(placeFor(kHostMemory | kGpuMemory).dmaBuf);
  EXPECT_FALSE(placeFor(kHostMemory | kDmaBufs).onDevice) << "the driver gives no dma-bufs";
  EXPECT_TRUE(placeFor(kHostMemory | kDmaBufs, {}, kNear, true).dmaBuf);
  EXPECT_TRUE(placeFor(kHostMemory | kGpuMemory | kDmaBufs, {}, kNear, true).dmaBuf)
      << "they need no module of the kernel";
}

TEST(GpuDirect, DirectionsAreDecidedApart) {
  const NicAccess writesOnly{.device = 0, .reads = false, .writes = true, .apartFromCpu = false};
  EXPECT_TRUE(placeFor(kGpuMemory, {}, writesOnly).onDevice);
  EXPECT_FALSE(placeFor(kGpuMemory, {}, writesOnly, false, 90, device::Direction::Send).onDevice);
  EXPECT_TRUE(placeFor(kGpuMemory, {}, kNear, false, 90, device::Direction::Send).onDevice);
}

TEST(GpuDirect, FlushesWhereCountersMayOvertakeData) {
  EXPECT_FALSE(placeFor(kGpuMemory).flushes);
  EXPECT_TRUE(placeFor(kGpuMemory, {}, kNear, false, 80).flushes);
  EXPECT_FALSE(placeFor(kGpuMemory, {}, kNear, false, 80, device::Direction::Send).flushes) << "nothing is received";
  EXPECT_TRUE(placeFor(kGpuMemory, {.alwaysFlush = true}).flushes);
  EXPECT_FALSE(placeFor(kGpuMemory, {.alwaysFlush = true, .neverFlush = true}, kNear, false, 80).flushes);
  EXPECT_TRUE(
      placeFor(kGpuMemory, {}, NicAccess{.device = 0, .reads = true, .writes = true, .apartFromCpu = true}).flushes);
  EXPECT_FALSE(placeFor(kHostMemory, {}, kNear, false, 80).flushes);
  const plugin::NetProperties careful = deviceWith(kGpuMemory, true);
  EXPECT_TRUE(
      slotPlaceFor({.device = careful, .access = kNear, .direction = device::Direction::Recv, .computeCapability = 90},
                   {})
          .flushes);
}

TEST(GpuDirect, WithoutAMachineOnlyASoftwareGpuUsesIt) {
  const plugin::NetProperties device = deviceWith(kGpuMemory);
  GpuDirectQuestion question{
      .device = device, .access = {}, .direction = device::Direction::Send, .computeCapability = 90};
  EXPECT_FALSE(slotPlaceFor(question, {}).onDevice);
  question.softGpu = true;
  EXPECT_TRUE(slotPlaceFor(question, {}).onDevice);
  EXPECT_FALSE(slotPlaceFor(question, {.level = topo::PathType::Loc}).onDevice);
  EXPECT_TRUE(slotPlaceFor(question, {.level = topo::PathType::Sys}).onDevice);
  EXPECT_FALSE(slotPlaceFor(question, {.read = 0}).onDevice);
  question.direction = device::Direction::Recv;
  EXPECT_TRUE(slotPlaceFor(question, {.read = 0}).onDevice);
}

/// A GPU with one NIC beside it under a switch and one at the CPU.
constexpr const char* kTwoNics = R"(<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143" affinity="ff">
    <pci busid="0000:01:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:02:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="75" rank="0" gdr="1"/>
      </pci>
      <pci busid="0000:03:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="1" sm="75" rank="1" gdr="1"/>
      </pci>
      <pci busid="0000:04:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16">
        <nic><net name="near" dev="0" speed="200000" port="1" guid="0x1" gdr="1" maxconn="131072"/></nic>
      </pci>
    </pci>
    <pci busid="0000:06:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16">
      <nic><net name="far" dev="1" speed="200000" port="1" guid="0x2" gdr="1" maxconn="131072"/></nic>
    </pci>
  </cpu>
</system>
)";

std::vector<NicAccess> accessWith(topo::PathSettings settings) {
  topo::TopologyUse use;
  use.interNode = true;
  const topo::Topology topology =
      topo::buildTopology(topo::parseTopology(kTwoNics, "test").value(), use, settings).value();
  return nicsOf(topology, topo::Graph{}, topology.machine.nodes(topo::NodeKind::Gpu).front(), settings).access;
}

TEST(GpuDirect, TheLevelSaysHowFarANicMayBe) {
  topo::PathSettings settings;
  settings.gdrRead = 1;
  const std::vector<NicAccess> usual = accessWith(settings);
  ASSERT_EQ(usual.size(), 2u);
  EXPECT_TRUE(usual[0].reads && usual[0].writes) << "PIX";
  EXPECT_FALSE(usual[1].reads || usual[1].writes) << "PHB";
  settings.gdrLevel = topo::PathType::Sys;
  EXPECT_TRUE(accessWith(settings)[1].writes);
  settings.gdrLevel = topo::PathType::Loc;
  EXPECT_FALSE(accessWith(settings)[0].writes);
}

TEST(GpuDirect, OldGpusAreNotReadByThemselves) {
  const std::vector<NicAccess> usual = accessWith({});
  EXPECT_TRUE(usual[0].writes);
  EXPECT_FALSE(usual[0].reads) << "before Ampere, without NVLink";
}

TEST(GpuDirect, TheMachineIsAskedAboutTheNicOfTheConnection) {
  const std::vector<int> devices{0, 1};
  OwnNics nics{
      {1}, {0}, {0}, {{.device = 0, .reads = true, .writes = true}, {.device = 1, .reads = false, .writes = true}}};
  using device::ConnKind;
  const auto access = [&](device::Direction direction) {
    return accessFor(nics, {devices, 0, 0, device::ConnKind::Graph, direction});
  };
  EXPECT_TRUE(access(device::Direction::Send)->reads);
  EXPECT_FALSE(access(device::Direction::Recv)->reads);
  EXPECT_FALSE(accessFor({}, {devices, 0, 0, device::ConnKind::Graph, device::Direction::Send}));
}

TEST(GpuDirect, TheTopologyHearsOfDmaBufsWhereTheDriverGivesThem) {
  const std::vector<plugin::NetProperties> devices{deviceWith(kHostMemory), deviceWith(kGpuMemory),
                                                   deviceWith(kDmaBufs)};
  const std::vector<int> all{0, 1, 2};
  const auto without = factsOf(devices, all, {}, false);
  EXPECT_FALSE(without[0].gdr);
  EXPECT_TRUE(without[1].gdr);
  EXPECT_FALSE(without[2].gdr);
  EXPECT_TRUE(factsOf(devices, all, {}, true)[2].gdr);
}

}  // namespace
}  // namespace tutti::comm
