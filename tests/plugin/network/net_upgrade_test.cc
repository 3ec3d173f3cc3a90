// What devices of old plugins look like to the library.
#include "plugin/network/net_upgrade.h"

#include <gtest/gtest.h>

#include "plugin/network/net_versions.h"

namespace tutti::test {
namespace {

constexpr std::size_t kGiB = std::size_t{1} << 30;

template <int V>
typename plugin::NetVersion<V>::Properties sample() {
  static char name[] = "nic7";
  static char path[] = "/sys/devices/pci0000:00/0000:00:01.0";
  typename plugin::NetVersion<V>::Properties said{};
  said.name = name;
  said.pciPath = path;
  said.guid = 77;
  said.ptrSupport = NCCL_PTR_HOST | NCCL_PTR_CUDA;
  said.speed = 25000;
  said.port = 2;
  said.latency = 1.5F;
  said.maxComms = 100;
  said.maxRecvs = 8;
  if constexpr (V >= 7) {
    said.netDeviceType = NCCL_NET_DEVICE_UNPACK;
    said.netDeviceVersion = NCCL_NET_DEVICE_UNPACK_VERSION;
  }
  if constexpr (V >= 8) said.regIsGlobal = 1;
  if constexpr (V >= 9) {
    said.forceFlush = 1;
    said.vProps = {2, {4, 5}};
    said.maxP2pBytes = 123456;
    said.maxCollBytes = 654321;
  }
  if constexpr (V >= 11) said.maxMultiRequestSize = 3;
  if constexpr (V >= 12) {
    said.railId = 6;
    said.planeId = 9;
  }
  return said;
}

/// One column of the table of defaults.
struct Column {
  int version;
  plugin::NetProperties got;
  bool saysDevice, saysGlobal, saysFused, saysMulti, saysRail;
};

std::vector<Column> columns() {
  return {{6, plugin::upgraded(sample<6>(), 3), false, false, false, false, false},
          {7, plugin::upgraded(sample<7>(), 3), true, false, false, false, false},
          {8, plugin::upgraded(sample<8>(), 3), true, true, false, false, false},
          {9, plugin::upgraded(sample<9>(), 3), true, true, true, false, false},
          {10, plugin::upgraded(sample<10>(), 3), true, true, true, false, false},
          {11, plugin::upgraded(sample<11>(), 3), true, true, true, true, false},
          {12, plugin::upgraded(sample<12>(), 3), true, true, true, true, true}};
}

TEST(NetUpgrade, TakesWhatEveryVersionSays) {
  for (const Column& c : columns()) {
    SCOPED_TRACE(c.version);
    EXPECT_EQ(c.got.name, "nic7");
    EXPECT_EQ(c.got.pciPath, "/sys/devices/pci0000:00/0000:00:01.0");
    EXPECT_EQ(c.got.guid, 77U);
    EXPECT_EQ(c.got.ptrSupport, 3);
    EXPECT_EQ(c.got.speedMbps, 25000);
    EXPECT_EQ(c.got.port, 2);
    EXPECT_EQ(c.got.latencyUs, 1.5F);
    EXPECT_EQ(c.got.maxComms, 100);
    EXPECT_EQ(c.got.maxRecvs, 8);
  }
}

TEST(NetUpgrade, FillsInWhatAVersionCannotSay) {
  for (const Column& c : columns()) {
    SCOPED_TRACE(c.version);
    EXPECT_EQ(c.got.deviceType, c.saysDevice ? NCCL_NET_DEVICE_UNPACK : NCCL_NET_DEVICE_HOST);
    EXPECT_EQ(c.got.deviceVersion, c.saysDevice ? NCCL_NET_DEVICE_UNPACK_VERSION : 0);
    EXPECT_EQ(c.got.regIsGlobal, c.saysGlobal);
    EXPECT_EQ(c.got.forceFlush, c.saysFused);
    EXPECT_EQ(c.got.physical, c.saysFused ? (std::vector<int>{4, 5}) : std::vector<int>{3});
    EXPECT_EQ(c.got.maxP2pBytes, c.saysFused ? 123456U : kGiB);
    EXPECT_EQ(c.got.maxCollBytes, c.saysFused ? 654321U : kGiB / 2);
    EXPECT_EQ(c.got.maxMultiRequestSize, c.saysMulti ? 3 : 1);
    EXPECT_EQ(c.got.railId, c.saysRail ? 6 : -1);
    EXPECT_EQ(c.got.planeId, c.saysRail ? 9 : -1);
  }
}

TEST(NetUpgrade, LetsTheHostDriveCollNetsBeforeVersion9) {
  EXPECT_EQ(plugin::upgradedForCollNet(sample<6>(), 0).deviceType, NCCL_NET_DEVICE_HOST);
  EXPECT_EQ(plugin::upgradedForCollNet(sample<7>(), 0).deviceType, NCCL_NET_DEVICE_HOST);
  EXPECT_EQ(plugin::upgradedForCollNet(sample<8>(), 0).deviceType, NCCL_NET_DEVICE_HOST);
  EXPECT_EQ(plugin::upgradedForCollNet(sample<9>(), 0).deviceType, NCCL_NET_DEVICE_UNPACK);
  EXPECT_EQ(plugin::upgradedForCollNet(sample<8>(), 0).deviceVersion, 0);
}

TEST(NetUpgrade, GivesCollNetsTheSameDefaultsAndListsAsNetworks) {
  const struct {
    int version;
    plugin::NetProperties got;
  } rows[] = {{6, plugin::upgradedForCollNet(sample<6>(), 3)},   {7, plugin::upgradedForCollNet(sample<7>(), 3)},
              {8, plugin::upgradedForCollNet(sample<8>(), 3)},   {9, plugin::upgradedForCollNet(sample<9>(), 3)},
              {10, plugin::upgradedForCollNet(sample<10>(), 3)}, {11, plugin::upgradedForCollNet(sample<11>(), 3)},
              {12, plugin::upgradedForCollNet(sample<12>(), 3)}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.version);
    EXPECT_EQ(row.got.physical, row.version >= 9 ? (std::vector<int>{4, 5}) : std::vector<int>{3});
    EXPECT_EQ(row.got.maxCollBytes, row.version >= 9 ? 654321U : kGiB / 2);
    EXPECT_EQ(row.got.railId, row.version >= 12 ? 6 : -1);
    EXPECT_EQ(row.got.planeId, row.version >= 12 ? 9 : -1);
    EXPECT_EQ(row.got.name, "nic7");
  }
}

TEST(NetUpgrade, TakesListsOfDevicesOnlyAsFarAsTheyReach) {
  auto said = sample<11>();
  said.vProps = {9, {1, 2, 3, 4}};
  EXPECT_EQ(plugin::upgraded(said, 0).physical, (std::vector<int>{1, 2, 3, 4}));
  said.vProps.ndevs = -1;
  EXPECT_EQ(plugin::upgraded(said, 7).physical, std::vector<int>{7});
  auto newest = sample<12>();
  newest.vProps = {8, {1, 2, 3, 4, 5, 6, 7, 8}};
  EXPECT_EQ(plugin::upgraded(newest, 0).physical.size(), 8U);
}

TEST(NetUpgrade, TakesMissingSpeedAndNames) {
  auto said = sample<12>();
  said.speed = 0;
  said.pciPath = nullptr;
  said.maxRecvs = 0;
  const plugin::NetProperties p = plugin::upgraded(said, 0);
  EXPECT_EQ(p.speedMbps, 10000);
  EXPECT_EQ(p.pciPath, "");
  EXPECT_EQ(p.maxRecvs, 1);
}

TEST(NetUpgrade, SaysWhyADeviceCannotBeUsed) {
  auto good = sample<12>();
  good.netDeviceType = NCCL_NET_DEVICE_HOST;
  EXPECT_EQ(plugin::unusableBecause(plugin::upgraded(good, 0)), "");
  const auto why = [&](auto change) {
    auto said = good;
    change(said);
    return plugin::unusableBecause(plugin::upgraded(said, 0));
  };
  EXPECT_EQ(why([](auto& p) { p.name = nullptr; }), "it has no name");
  EXPECT_NE(why([](auto& p) { p.netDeviceType = NCCL_NET_DEVICE_UNPACK; }).find("unpacked by kernels"),
            std::string::npos);
  EXPECT_NE(why([](auto& p) { p.netDeviceType = NCCL_NET_DEVICE_GIN_GPI; }).find("Unknown device code index 4"),
            std::string::npos);
  EXPECT_NE(why([](auto& p) { p.maxP2pBytes = 0; }).find("maxP2pBytes is 0"), std::string::npos);
  EXPECT_NE(why([](auto& p) { p.maxP2pBytes = 1024 * kGiB + 1; }).find("maxP2pBytes"), std::string::npos);
  EXPECT_EQ(why([](auto& p) { p.maxP2pBytes = 1024 * kGiB; }), "");
  EXPECT_NE(why([](auto& p) { p.maxRecvs = -1; }).find("maxRecvs is -1"), std::string::npos);
  EXPECT_NE(why([](auto& p) { p.maxComms = -5; }).find("maxComms is -5"), std::string::npos);
}

}  // namespace
}  // namespace tutti::test
