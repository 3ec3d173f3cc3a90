#include "comm/network/nic_fusion.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/settings/params.h"
#include "comm/network/network.h"
#include "comm/settings/network_settings.h"
#include "plugin/network/idle_net.h"
#include "support/log_capture.h"
#include "topo/detect/detect.h"
#include "topo/xml/topology_xml.h"
#include "topo/xml/xml.h"

namespace tutti::comm {
namespace {

using test::expectLog;
using Groups = std::vector<std::vector<int>>;

/// A network that fuses whatever it is told to, but not what contains `refuses`.
class FusingNet final : public test::IdleNet {
 public:
  std::string_view name() const override { return "Fake"; }
  bool fuses() const override { return fusing; }
  int maxFused() const override { return most; }
  plugin::NetFusion makeVirtual(std::span<const int> devices) override {
    ++asked;
    std::vector<int> group(devices.begin(), devices.end());
    if (!fusing || std::find(group.begin(), group.end(), refuses) != group.end()) return {-1, "Fake says no"};
    made.push_back(std::move(group));
    return {100 + static_cast<int>(made.size()), ""};
  }

  bool fusing = true;
  int most = 4;
  int refuses = -1;
  int asked = 0;
  Groups made;
};

plugin::NetProperties device(const std::string& name, const std::string& busId, int port = 1, int rail = -1) {
  plugin::NetProperties properties;
  properties.name = name;
  if (!busId.empty()) properties.pciPath = "/sys/devices/pci0000:00/" + busId;
  properties.port = port;
  properties.railId = rail;
  return properties;
}

std::vector<plugin::NetProperties> twoAdapters() {
  return {device("a0", "0000:1b:00.0"), device("b0", "0000:1c:00.0"), device("a1", "0000:1b:00.1"),
          device("b1", "0000:1c:00.1")};
}

int countOf(const std::vector<plugin::NetProperties>& devices) {
  return static_cast<int>(devices.size());
}

/// What is fused of the devices.
Groups fused(const std::vector<plugin::NetProperties>& devices, const FusionSettings& settings, FusingNet net = {},
             const topo::XmlElement* machine = nullptr) {
  EXPECT_TRUE(fuseNics(net, devices, countOf(devices), settings, machine).ok());
  return net.made;
}

/// NICs a0 and a1 of one adapter and b below one switch, c below another one that leads to the same CPU by way of a
/// third, d at the CPU, e at another CPU; f and g are no PCI devices.
constexpr const char* kSwitchedMachine = R"(<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143" affinity="ff">
    <pci busid="0000:01:00.0" class="0x060400">
      <pci busid="0000:02:00.0" class="0x060400">
        <pci busid="0000:03:00.0" class="0x020000"><nic><net name="a0" dev="0"/><net name="a1" dev="1"/></nic></pci>
        <pci busid="0000:04:00.0" class="0x020000"><nic><net name="b" dev="2"/></nic></pci>
      </pci>
      <pci busid="0000:05:00.0" class="0x020000"><nic><net name="c" dev="3"/></nic></pci>
    </pci>
    <pci busid="0000:06:00.0" class="0x020000"><nic><net name="d" dev="4"/></nic></pci>
    <nic><net name="f" dev="6"/><net name="g" dev="7"/></nic>
  </cpu>
  <cpu numaid="1" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143" affinity="ff00">
    <pci busid="0000:86:00.0" class="0x020000"><nic><net name="e" dev="5"/></nic></pci>
  </cpu>
</system>
)";

TEST(NicFusion, DistancesFollowTheMachine) {
  const topo::XmlElement machine = topo::parseTopology(kSwitchedMachine, "test").value();
  const auto distance = [&](const char* a, const char* b) {
    const NicDistance there = nicDistance(device(a, ""), device(b, ""), &machine);
    EXPECT_EQ(there, nicDistance(device(b, ""), device(a, ""), &machine));
    return there;
  };
  EXPECT_EQ(distance("a0", "a1"), NicDistance::Port);
  EXPECT_EQ(distance("a0", "b"), NicDistance::Pix);
  EXPECT_EQ(distance("a0", "c"), NicDistance::Pxb);
  EXPECT_EQ(distance("a0", "d"), NicDistance::Phb);
  EXPECT_EQ(distance("a0", "e"), NicDistance::Apart);
  EXPECT_EQ(distance("f", "g"), NicDistance::Apart) << "NICs that nothing is known of are no ports of one adapter";
  EXPECT_EQ(distance("a0", "nowhere"), NicDistance::Apart);
}

TEST(NicFusion, FunctionsOfOneAdapterAreItsPorts) {
  EXPECT_EQ(nicDistance(device("x", "0000:1b:00.0"), device("y", "0000:1b:00.1"), nullptr), NicDistance::Port);
  EXPECT_EQ(nicDistance(device("x", "0000:1b:00.0", 1), device("y", "0000:1b:00.0", 2), nullptr), NicDistance::Port);
  EXPECT_EQ(nicDistance(device("x", "0000:1b:00.0"), device("y", "0000:1c:00.0"), nullptr), NicDistance::Apart);
  EXPECT_EQ(nicDistance(device("x", ""), device("y", ""), nullptr), NicDistance::Apart);
}

TEST(NicFusion, PortsOfAnAdapterBecomeOneByDefault) {
  EXPECT_EQ(fused(twoAdapters(), {}), (Groups{{0, 2}, {1, 3}}));
  EXPECT_EQ(fused(twoAdapters(), {.farthest = std::nullopt}), Groups{});
}

TEST(NicFusion, FartherOnesBecomeOneWhereTheLevelSaysSo) {
  const topo::XmlElement machine = topo::parseTopology(kSwitchedMachine, "test").value();
  std::vector<plugin::NetProperties> devices;
  for (const char* name : {"a0", "a1", "b", "c", "d", "e"}) devices.push_back(device(name, ""));
  const auto at = [&](NicDistance farthest) { return fused(devices, {.farthest = farthest}, {}, &machine); };
  EXPECT_EQ(at(NicDistance::Port), (Groups{{0, 1}}));
  EXPECT_EQ(at(NicDistance::Pix), (Groups{{0, 1, 2}}));
  EXPECT_EQ(at(NicDistance::Pxb), (Groups{{0, 1, 2, 3}}));
  EXPECT_EQ(at(NicDistance::Phb), (Groups{{0, 1, 2, 3}})) << "no more than the network can fuse";
  FusingNet wide;
  wide.most = 8;
  EXPECT_EQ(fused(devices, {.farthest = NicDistance::Phb}, wide, &machine), (Groups{{0, 1, 2, 3, 4}}));
}

TEST(NicFusion, TheRailPolicyKeepsRailsApart) {
  std::vector<plugin::NetProperties> devices{device("a", "0000:1b:00.0", 1, 0), device("b", "0000:1b:00.1", 1, 1),
                                             device("c", "0000:1b:00.2", 1, 0), device("d", "0000:1b:00.3"),
                                             device("e", "0000:1b:00.4")};
  EXPECT_EQ(fused(devices, {.onlyOfOneRail = true}), (Groups{{0, 2}}));
}

TEST(NicFusion, WhatTheNetworkRefusesStaysApart) {
  FusingNet net;
  net.refuses = 2;
  EXPECT_EQ(fused(twoAdapters(), {}, net), (Groups{{1, 3}}));
  FusingNet unable;
  unable.fusing = false;
  EXPECT_TRUE(fuseNics(unable, twoAdapters(), 4, {}, nullptr).ok());
  EXPECT_EQ(unable.asked, 0);
}

TEST(NicFusion, ForcedGroupsComeFirst) {
  const FusionSettings settings{.forced = "a0,b1:1;b0,a1"};
  EXPECT_EQ(fused(twoAdapters(), settings), (Groups{{0, 3}, {1, 2}}));
  EXPECT_EQ(fused(twoAdapters(), {.forced = "a0,b0"}), (Groups{{0, 1}})) << "a1 and b1 have lost their siblings";
}

/// A library may keep one list for its net and its collNet.
TEST(NicFusion, WhatIsThereAlreadyIsNotMadeAgain) {
  std::vector<plugin::NetProperties> devices = twoAdapters();
  devices.push_back(device("b0+b1", "0000:1c:00.0"));
  devices.back().physical = {3, 1};
  FusingNet net;
  EXPECT_TRUE(fuseNics(net, devices, 4, {}, nullptr).ok());
  EXPECT_EQ(net.made, (Groups{{0, 2}}));
  FusingNet told;
  EXPECT_TRUE(fuseNics(told, devices, 4, {.farthest = std::nullopt, .forced = "b0,b1"}, nullptr).ok());
  EXPECT_EQ(told.asked, 0);
}

TEST(NicFusion, AForcedGroupThatIsNoneIsAnError) {
  test::expectLog("NET/Fake has no device a7, it has a0, b0, a1, b1");
  EXPECT_EQ(forcedGroups("a0,a7", twoAdapters(), "NET/Fake").status().code(), ncclInvalidUsage);
  test::expectLog("a0 stands there twice");
  EXPECT_EQ(forcedGroups("a0,a1;b0,a0", twoAdapters(), "NET/Fake").status().code(), ncclInvalidUsage);
  FusingNet net;
  net.fusing = false;
  test::expectLog("NCCL_NET_FORCE_MERGE=a0,a1: a0, a1 cannot become one device: Fake says no");
  EXPECT_EQ(fuseNics(net, twoAdapters(), 4, {.forced = "a0,a1"}, nullptr).code(), ncclInvalidUsage);
}

TEST(NicFusion, PartsOfWhatWasFusedAreHidden) {
  std::vector<plugin::NetProperties> devices = twoAdapters();
  devices.push_back(device("a0+a1", "0000:1b:00.0"));
  devices.back().physical = {0, 2};
  EXPECT_EQ(devicesToUse(devices, 4, "NET/Fake"), (std::vector<int>{1, 3, 4}));
  devices.back().physical = {4};
  EXPECT_EQ(devicesToUse(devices, 4, "NET/Fake"), (std::vector<int>{0, 1, 2, 3}))
      << "it does not say what it is made of";
}

TEST(NicFusion, TheTopologySeesTheFusedDeviceWithItsSpeed) {
  std::vector<plugin::NetProperties> devices = twoAdapters();
  devices.push_back(device("a0+a1", "0000:1b:00.0"));
  devices.back().physical = {0, 2};
  devices.back().speedMbps = 400000;
  topo::DetectInput input;
  input.nets = factsOf(devices, devicesToUse(devices, 4, "NET/Fake"), {}, false);
  const std::string elements = topo::writeXml(topo::detectTopology(input).value());
  EXPECT_NE(elements.find(R"(<net name="a0+a1" dev="4" speed="400000")"), std::string::npos) << elements;
  EXPECT_NE(elements.find(R"(name="b0" dev="1")"), std::string::npos) << elements;
  EXPECT_EQ(elements.find(R"(name="a0")"), std::string::npos) << elements;
}

TEST(NicFusion, SettingsAreThoseOfTheEnvironment) {
  Params params;
  EXPECT_EQ(fusionSettings(params).farthest, NicDistance::Port);
  params.topology.netMergeLevel = "LOC";
  EXPECT_FALSE(fusionSettings(params).farthest);
  params.topology.netMergeLevel = "PXN";
  EXPECT_EQ(fusionSettings(params).farthest, NicDistance::Pxb);
  params.topology.netMergeLevel = "SYS";
  EXPECT_EQ(fusionSettings(params).farthest, NicDistance::Phb);
  params.topology.netMergePolicy = "RAIL";
  EXPECT_TRUE(fusionSettings(params).onlyOfOneRail);
}

}  // namespace
}  // namespace tutti::comm
