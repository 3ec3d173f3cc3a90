#include "comm/network/device_table.h"

#include <gtest/gtest.h>

#include "comm/network/network.h"
#include "plugin/network/idle_net.h"
#include "support/log_capture.h"
#include "topo/detect/detect.h"
#include "topo/xml/topology_xml.h"

namespace tutti::comm {
namespace {

plugin::NetProperties deviceOfTable(const std::string& name, std::vector<int> parts) {
  plugin::NetProperties properties;
  properties.name = name;
  properties.pciPath = "/sys/devices/pci0000:00/0000:1b:00.0";
  properties.physical = std::move(parts);
  return properties;
}

/// Two ports, and perhaps what was made of them.
DeviceTable twoPorts(bool fused) {
  DeviceTable table{{deviceOfTable("a0", {0}), deviceOfTable("a1", {1})}, {0, 1}};
  if (!fused) return table;
  table.all.push_back(deviceOfTable("a0+a1", {0, 1}));
  table.usable = {2};
  return table;
}

class TableNet final : public test::IdleNet {
 public:
  explicit TableNet(std::vector<plugin::NetProperties> devices) : devices_(std::move(devices)) {}
  Result<int> devices() override { return static_cast<int>(devices_.size()); }
  Result<plugin::NetProperties> properties(int device) override {
    const plugin::NetProperties& said = devices_[static_cast<std::size_t>(device)];
    if (said.name.empty()) return fail(ncclInternalError, "device {} has no name", device);
    return said;
  }

 private:
  std::vector<plugin::NetProperties> devices_;
};

TEST(DeviceTable, HoldsWhatANetworkSays) {
  TableNet net(twoPorts(true).all);
  EXPECT_EQ(readDevices(net).value().usable, (std::vector<int>{0, 1, 2})) << "nothing was fused by anybody";
  EXPECT_EQ(readDevices(net, 2).value().usable, std::vector<int>{2});
  EXPECT_EQ(readDevices(net, 2).value().all[2].name, "a0+a1");
  TableNet nameless({deviceOfTable("a0", {0}), deviceOfTable("", {1})});
  test::expectLog("device 1 has no name");
  EXPECT_EQ(readDevices(nameless).status().code(), ncclInternalError);
}

TEST(DeviceTable, DevicesOfNetAndCollNetAreTheSameByName) {
  EXPECT_EQ(sameDevices(twoPorts(false), twoPorts(false)), (std::vector<int>{0, 1}));
  EXPECT_EQ(sameDevices(twoPorts(true), twoPorts(true)), (std::vector<int>{-1, -1, 2}));
  EXPECT_EQ(sameDevices(twoPorts(true), twoPorts(false)), (std::vector<int>{-1, -1, -1}))
      << "the parts of what the network fused are no devices of it any more";
  EXPECT_EQ(sameDevices(twoPorts(false), twoPorts(true)), (std::vector<int>{-1, -1}));
  EXPECT_EQ(sameDevices(twoPorts(false), {}), (std::vector<int>{-1, -1}));
  DeviceTable reversed = twoPorts(false);
  std::swap(reversed.all[0], reversed.all[1]);
  EXPECT_EQ(sameDevices(twoPorts(false), reversed), (std::vector<int>{1, 0}));
}

TEST(DeviceTable, TheReportOfACollNetNamesItsDevices) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(collNetLines(twoPorts(true), twoPorts(true)), Lines{"collectives can run in the network of a0+a1"});
  EXPECT_EQ(collNetLines(twoPorts(true), twoPorts(false)),
            (Lines{"a0, a1 not used: the network, which must have devices of the same names, has a0+a1",
                   "no device is left for collectives"}));
  DeviceTable reversed = twoPorts(false);
  std::swap(reversed.all[0], reversed.all[1]);
  EXPECT_EQ(collNetLines(twoPorts(false), reversed), (Lines{"device a0 has number 1 here and 0 in the network",
                                                            "device a1 has number 0 here and 1 in the network",
                                                            "collectives can run in the network of a0, a1"}));
}

TEST(DeviceTable, TheTopologyShowsWhichFusedDevicesDoCollectives) {
  DeviceTable net = twoPorts(true);
  net.all.push_back(deviceOfTable("b0", {3}));
  net.usable = {2, 3};
  topo::DetectInput input;
  input.nets = factsOf(net.all, net.usable, sameDevices(net, twoPorts(true)), false);
  const std::string elements = topo::writeXml(topo::detectTopology(input).value());
  const auto lineOf = [&](const std::string& name) {
    const std::size_t at = elements.find("<net name=\"" + name + "\"");
    return at == std::string::npos ? "" : elements.substr(at, elements.find('\n', at) - at);
  };
  EXPECT_NE(lineOf("a0+a1").find("coll=\"1\""), std::string::npos) << elements;
  EXPECT_NE(lineOf("a0+a1").find("dev=\"2\""), std::string::npos) << "the network's number";
  EXPECT_NE(lineOf("b0"), "");
  EXPECT_EQ(lineOf("b0").find("coll="), std::string::npos) << elements;
  EXPECT_EQ(lineOf("a0"), "");
}

}  // namespace
}  // namespace tutti::comm
