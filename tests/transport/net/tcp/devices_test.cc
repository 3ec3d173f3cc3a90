#include "transport/net/tcp/devices.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/log_capture.h"
#include "transport/net/tcp/socket_pair.h"
#include "transport/net/tcp/streams.h"

namespace tutti::net::tcp {
namespace {

namespace fs = std::filesystem;
using namespace test;

/// A folder like /sys/class/net, with one card.
class FakeSysfs {
 public:
  FakeSysfs() : root_(fs::temp_directory_path() / ("tutti-sysfs-" + std::to_string(::getpid()))) {
    fs::create_directories(card());
    fs::create_directories(root_ / "net/eth9");
  }
  ~FakeSysfs() { fs::remove_all(root_); }
  fs::path card() const { return root_ / "devices/pci0000:3a/0000:3b:00.1/virtio2"; }
  void link() const { fs::create_symlink(card(), root_ / "net/eth9/device"); }
  void write(const fs::path& file, const std::string& text) const { std::ofstream(root_ / file) << text << "\n"; }
  SocketDevice describe() const {
    NetInterface interface { .name = "eth9", .address = Address::loopback(AF_INET) };
    return describeSocketDevice(interface, (root_ / "net").string());
  }

 private:
  fs::path root_;
};

TEST(SocketDevices, PathEndsAtThePciFunction) {
  FakeSysfs sysfs;
  sysfs.link();
  const SocketDevice device = sysfs.describe();
  EXPECT_TRUE(device.pciPath.ends_with("/devices/pci0000:3a/0000:3b:00.1")) << device.pciPath;
}

TEST(SocketDevices, VirtualInterfacesHaveNoPath) {
  EXPECT_EQ(FakeSysfs().describe().pciPath, "");
}

TEST(SocketDevices, SpeedIsTheSystemsOrTenGigabits) {
  FakeSysfs sysfs;
  EXPECT_EQ(sysfs.describe().speedMbps, 10000);
  sysfs.write("net/eth9/speed", "-1");
  EXPECT_EQ(sysfs.describe().speedMbps, 10000);
  sysfs.write("net/eth9/speed", "100000");
  EXPECT_EQ(sysfs.describe().speedMbps, 100000);
}

TEST(SocketDevices, VendorsDecideAboutThreadsAndSockets) {
  FakeSysfs sysfs;
  sysfs.link();
  const auto sockets = [&] {
    const SocketOptions options = socketOptions(Params(), sysfs.describe().vendor);
    return std::pair(options.threads, options.streams);
  };
  EXPECT_EQ(sockets(), std::pair(0, 0));
  sysfs.write(sysfs.card() / "vendor", "0x1d0f");
  EXPECT_EQ(sockets(), std::pair(2, 16));
  sysfs.write(sysfs.card() / "vendor", "0x1ae0");
  EXPECT_EQ(sockets(), std::pair(4, 4));
}

TEST(SocketDevices, AConnectionMayTakeAsLongAsAllTriesAndHalfAMinute) {
  Params params;
  EXPECT_EQ(socketOptions(params, SocketVendor::Other).setup, milliseconds(34 * 35 / 2 * 100 + 30'000));
  params.sockets.retryCount = 1'000'000;
  params.sockets.retrySleepMs = 3'600'000;
  EXPECT_EQ(socketOptions(params, SocketVendor::Other).setup, std::chrono::hours(24) + milliseconds(30'000));
}

TEST(SocketDevices, SocketsAreAtMostSixtyFour) {
  test::expectLog("64: 60 sockets are used");
  Params params = test::loopbackParams();
  params.sockets.nThreads = 12;
  params.sockets.socketsPerThread = 64;
  test::SocketSide side(params);
}

TEST(SocketDevices, LoopbackIsSaidToBeAHostDeviceOfItsOwn) {
  test::SocketSide side;
  ASSERT_EQ(side.net->devices().value(), 1);
  const plugin::NetProperties one = side.net->properties(0).value();
  EXPECT_EQ(one.name, "lo");
  EXPECT_EQ(one.pciPath, "");
  EXPECT_EQ(one.guid, 0u);
  EXPECT_EQ(one.ptrSupport, 1);
  EXPECT_EQ(one.maxRecvs, 1);
  EXPECT_EQ(one.maxComms, 65536);
  EXPECT_EQ(one.speedMbps, 10000);
  EXPECT_EQ(one.maxP2pBytes, std::size_t{1} << 40);
  EXPECT_EQ(one.physical, std::vector<int>{0});
  EXPECT_FALSE(side.net->fuses());
}

TEST(SocketDevices, AHostWithoutAFittingInterfaceHasNone) {
  Params params;
  params.sockets.ifname = "=nothing-like-it";
  test::SocketSide side(params);
  EXPECT_EQ(side.net->devices().value(), 0);
}

TEST(SocketDevices, TheLineNamesThemAll) {
  const NetInterface first{.name = "eth0", .address = Address::loopback(AF_INET)};
  const NetInterface second{.name = "eth1", .address = Address::loopback(AF_INET6)};
  EXPECT_EQ(socketDevicesText({{.interface = first}, {.interface = second}}), "[0]eth0:127.0.0.1<0> [1]eth1:::1<0>");
}

TEST(SocketStreams, PiecesCoverTheMessageAndAreNotTooSmall) {
  for (const std::size_t bytes : {1u, 4096u, 65535u, 65536u, 131072u, 1000000u, 16777216u}) {
    for (const std::size_t streams : {1u, 2u, 3u, 64u}) {
      const std::size_t piece = socketPieceBytes(bytes, streams, 65536);
      EXPECT_GE(piece * streams, bytes);
      EXPECT_TRUE(piece >= 65536 || piece >= bytes);
    }
  }
}

}  // namespace
}  // namespace tutti::net::tcp
