// Whether the slots of a connection fit into a network's messages.
#include "transport/net/lane/path.h"

#include <gtest/gtest.h>

#include <string>

#include "support/log_capture.h"
#include "transport/net/lane/fake_routing.h"
#include "transport/net/sim_kernels.h"

namespace tutti::test {
namespace {

net::NetPath pathWith(const device::SlotBytes& slotBytes) {
  net::NetPath path = pathFor(device::Direction::Send);
  path.link.slotBytes = slotBytes;
  return path;
}

TEST(NetPath, TakesSlotsUpToWhatTheNetworkTakesAtOnce) {
  struct Case {
    device::SlotBytes slotBytes;
    std::size_t longest;
    const char* remedy;  ///< where the network takes a byte less
  };
  for (const auto& [slotBytes, longest, remedy] :
       {Case{{0, 0, 2048}, 2048, "a step has 2048; set NCCL_BUFFSIZE to 12288 or less"},
        Case{{16384, 2048, 512}, 8256, "a step has 8256; set NCCL_LL_BUFFSIZE to 122880 or less"},
        Case{{4096, 8192, 512}, 7744, "a step has 7744; set NCCL_LL128_BUFFSIZE to 49152 or less"},
        Case{{4096, 2048, 8192}, 8192, "a step has 8192; set NCCL_BUFFSIZE to 61440 or less"},
        Case{
            {4096, 0, 2112}, 2112, "a step has 2112; set NCCL_BUFFSIZE to 16384, NCCL_LL_BUFFSIZE to 24576 or less"}}) {
    FakeNet net;
    EXPECT_TRUE(net::checkSlotsFit(pathWith(slotBytes), net, 0).ok()) << "a network without a bound";
    net.maxBytes = longest;
    EXPECT_TRUE(net::checkSlotsFit(pathWith(slotBytes), net, 0).ok()) << longest;
    net.maxBytes = longest - 1;
    expectLog("at most " + std::to_string(longest - 1) + " bytes at once, " + remedy + " on all ranks");
    EXPECT_EQ(net::checkSlotsFit(pathWith(slotBytes), net, 0).code(), ncclInvalidUsage);
  }
}

TEST(NetPath, SaysWhoseNumbersRanksHaveWhereSeveralCommunicatorsUseIt) {
  net::NetPath path = pathFor(device::Direction::Send);
  EXPECT_EQ(path.text().find("in communicator"), std::string::npos);
  path.numbering = "communicator 0x5c";
  path.farewells = farewells([](int) { return true; });
  EXPECT_NE(path.text().find("send to rank 3 (host hostb, device 0, in communicator 0x5c) by"), std::string::npos)
      << path.text();
  EXPECT_NE(path.text().find(" of rank 0 (host hosta, device 0, in communicator 0x5c)"), std::string::npos)
      << path.text();
  EXPECT_NE(path.departureText().find("has left all communicators that use this connection"), std::string::npos);
}

TEST(NetPath, SaysOfWhichConnectionTheDeviceDoesNotAnswer) {
  FakeNet net({.failing = "properties"});
  expectLog("Fake: the cable is cut");
  expectLog("of rank 0 (host hosta, device 0) failed in asking for the device's properties: Fake: the cable is cut");
  EXPECT_EQ(net::checkSlotsFit(pathWith(kSlots), net, 0).code(), ncclSystemError);
}

TEST(NetPath, NamesASizeThatFits) {
  const device::SlotBytes slots{131072, 614400, 524288};
  for (const std::size_t most : {100000u, 70000u, 65536u, 9000u}) {
    for (std::size_t p = 0; p < slots.size(); ++p) {
      device::SlotBytes one{};
      one[p] = slots[p];
      FakeNet net;
      net.maxBytes = most;
      const std::size_t before = capturedLog().size();
      allowLog("or less on all ranks");
      if (net::checkSlotsFit(pathWith(one), net, 0).ok()) continue;
      const std::string line = capturedLog().at(before);
      const auto value = static_cast<std::uint32_t>(std::stoul(line.substr(line.find("SIZE to ") + 8)));
      one[p] = value / device::kSteps;
      EXPECT_TRUE(net::checkSlotsFit(pathWith(one), net, 0).ok()) << line;
      one[p] += 2048;
      EXPECT_FALSE(net::checkSlotsFit(pathWith(one), net, 0).ok()) << line;
    }
  }
}

}  // namespace
}  // namespace tutti::test
