// Whether the slots of a connection fit into a network's messages.
#include "transport/net/net_path.h"

#include <gtest/gtest.h>

#include <string>

#include "support/log_capture.h"
#include "transport/net/sim_kernels.h"

namespace tutti::test {
namespace {

net::NetPath pathWith(const device::SlotBytes& slotBytes) {
  net::NetPath path = pathFor(net::Side::Sender);
  path.link.slotBytes = slotBytes;
  return path;
}

TEST(NetPath, TakesSlotsUpToWhatTheNetworkTakesAtOnce) {
  const std::size_t linesOfLL = net::messageRoom(Protocol::LL, kSlots[0]);
  const std::size_t linesOfLL128 = net::messageRoom(Protocol::LL128, kSlots[1]);
  struct Case {
    device::SlotBytes slotBytes;
    std::size_t longest;
  };
  for (const auto& [slotBytes, longest] : {Case{{0, 0, 2048}, 2048}, Case{{kSlots[0], 0, 512}, linesOfLL},
                                           Case{{0, kSlots[1], 512}, linesOfLL128}, Case{{kSlots[0], 0, 8192}, 8192}}) {
    FakeNet net;
    EXPECT_TRUE(net::checkSlotsFit(pathWith(slotBytes), net, 0).ok()) << "a network without a bound";
    net.maxBytes = longest;
    EXPECT_TRUE(net::checkSlotsFit(pathWith(slotBytes), net, 0).ok()) << longest;
    net.maxBytes = longest - 1;
    expectLog("at most " + std::to_string(longest - 1) + " bytes at once, a slot has " + std::to_string(longest) +
              "; set NCCL_BUFFSIZE to " + std::to_string((longest - 1) * kSteps) + " or less on all ranks");
    EXPECT_EQ(net::checkSlotsFit(pathWith(slotBytes), net, 0).code(), ncclInvalidUsage);
  }
}

TEST(NetPath, SaysOfWhichConnectionTheDeviceDoesNotAnswer) {
  FakeNet net({.failing = "properties"});
  expectLog("Fake: the cable is cut");
  expectLog("of rank 0 (host hosta, device 0) failed in asking for the device's properties: Fake: the cable is cut");
  EXPECT_EQ(net::checkSlotsFit(pathWith(kSlots), net, 0).code(), ncclSystemError);
}

}  // namespace
}  // namespace tutti::test
