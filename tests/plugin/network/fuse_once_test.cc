// Fusing the devices of a network once for all communicators.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plugin/network/registry_world.h"
#include "plugin/plugin_fixture.h"
#include "plugin/plugin_log.h"

namespace tutti::test {
namespace {

TEST(NetFuseOnce, WhatIsFusedStaysUntilTheLibraryIsUnloaded) {
  const ScopedEnv fault("TEST_NET_FAULT", "ports=4");
  World world(pluginPath(12));
  int asked = 0;
  const auto make = [&](plugin::NetDevices& net, int physical) -> Status {
    ++asked;
    EXPECT_EQ(physical, 4);
    const std::vector<int> group{1, 2, 3};
    EXPECT_EQ(net.makeVirtual(group).device, 4);
    return {};
  };
  for (int turn = 0; turn < 2; ++turn) {
    const auto first = world.lease();
    EXPECT_EQ(first->fuseOnce(plugin::NetPart::Net, make).value(), 4);
    const auto second = world.lease();
    EXPECT_EQ(second->fuseOnce(plugin::NetPart::Net, make).value(), 4);
    EXPECT_EQ(asked, turn + 1) << "once for all communicators, again after the library was unloaded";
    EXPECT_EQ(second->net().devices().value(), 5);
    const plugin::NetProperties fused = second->net().properties(4).value();
    EXPECT_EQ(fused.physical, (std::vector<int>{1, 2, 3}));
    EXPECT_EQ(fused.speedMbps, 3 * second->net().properties(0).value().speedMbps);
  }
}

TEST(NetFuseOnce, FusionThatFailedIsTriedAgain) {
  World world("");
  const auto lease = world.lease();
  int asked = 0;
  const auto make = [&](plugin::NetDevices&, int) -> Status {
    return ++asked == 1 ? Status(ncclInvalidUsage) : Status();
  };
  EXPECT_EQ(lease->fuseOnce(plugin::NetPart::Net, make).status().code(), ncclInvalidUsage);
  EXPECT_TRUE(lease->fuseOnce(plugin::NetPart::Net, make).ok());
  EXPECT_EQ(asked, 2);
}

TEST(NetFuseOnce, NetAndCollNetAreFusedOnceEach) {
  const ScopedEnv fault("TEST_NET_FAULT", "ports=4");
  World world(pluginPath(12));
  const auto make = [](plugin::NetDevices& part, int physical) -> Status {
    EXPECT_EQ(physical, 4);
    const std::vector<int> group = part.kind() == "NET" ? std::vector<int>{0, 1} : std::vector<int>{1, 2, 3};
    EXPECT_EQ(part.makeVirtual(group).device, 4);
    return {};
  };
  const auto first = world.lease();
  const auto second = world.lease();
  for (const auto* lease : {&first, &second}) {
    EXPECT_EQ((*lease)->fuseOnce(plugin::NetPart::Net, make).value(), 4);
    EXPECT_EQ((*lease)->fuseOnce(plugin::NetPart::CollNet, make).value(), 4);
  }
  EXPECT_EQ(countsOf(12)->fusions, 1);
  EXPECT_EQ(countsOf(12)->collFusions, 1);
  EXPECT_EQ(second->net().properties(4).value().physical, (std::vector<int>{0, 1}));
  EXPECT_EQ(second->collNet()->properties(4).value().physical, (std::vector<int>{1, 2, 3}));
}

TEST(NetFuseOnce, ACollNetThatCannotBeCountedIsNoErrorUntilItIsAskedFor) {
  const ScopedEnv fault("TEST_NET_FAULT", "coll-devices@1");
  World world(pluginPath(12));
  const auto lease = world.lease();
  const auto make = [](plugin::NetDevices&, int) -> Status { return {}; };
  const std::string before = lastErrorText();
  EXPECT_EQ(lease->fuseOnce(plugin::NetPart::Net, make).value(), 1);
  EXPECT_EQ(lastErrorText(), before);
  const plugin::PluginIsOptional quiet;
  EXPECT_FALSE(lease->fuseOnce(plugin::NetPart::CollNet, make).ok());
  EXPECT_NE(std::string(lastErrorText()).find("collNet devices: told to fail"), std::string::npos) << lastErrorText();
}

TEST(NetFuseOnce, WhatANetFusedIsNoPhysicalDeviceOfItsCollNet) {
  const ScopedEnv fault("TEST_NET_FAULT", "ports=4,one-list");
  World world(pluginPath(11));
  const auto lease = world.lease();
  const auto make = [](plugin::NetDevices& part, int) -> Status {
    const std::vector<int> group{0, 1};
    if (part.kind() == "NET") {
      EXPECT_EQ(part.makeVirtual(group).device, 4);
    }
    return {};
  };
  EXPECT_EQ(lease->fuseOnce(plugin::NetPart::Net, make).value(), 4);
  EXPECT_EQ(lease->collNet()->devices().value(), 5);
  EXPECT_EQ(lease->fuseOnce(plugin::NetPart::CollNet, make).value(), 4);
}

}  // namespace
}  // namespace tutti::test
