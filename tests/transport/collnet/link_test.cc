// How a head's connection comes about, what it has, and how it ends.
#include "transport/collnet/link.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/ranks/abort.h"
#include "gpu/memory_ledger.h"
#include "support/log_capture.h"
#include "support/scoped_log.h"
#include "transport/collnet/collnet_world.h"

namespace tutti::test {
namespace {

using namespace std::chrono_literals;

TEST(CollNetLink, GivesKernelsLanesThatShareAnArea) {
  CollNetWorld world;
  world.begin({kTwoLanes, {"CollNetChain", {5}, 1024}});
  const auto& lanes = world.nodes[0].sets[0];
  const device::CollNetConn &first = lanes[0].conn(), &second = lanes[1].conn();
  EXPECT_EQ(first.areaBytes, 8192u);
  EXPECT_EQ(first.slotBytes, 4096u);
  EXPECT_EQ(first.lane, 0);
  EXPECT_EQ(second.lane, 1);
  EXPECT_EQ(second.lanes, 2);
  EXPECT_EQ(first.sendSlots, second.sendSlots);
  EXPECT_EQ(first.recvSlots, second.recvSlots);
  EXPECT_EQ(first.words, second.words);
  const auto apart = first.recvSlots - first.sendSlots;
  EXPECT_GE(std::abs(apart), 8 * 8192);
  for (const auto of :
       {&device::CollNetConn::sendTail, &device::CollNetConn::sendHead, &device::CollNetConn::recvTail,
        &device::CollNetConn::recvHead, &device::CollNetConn::sendStep, &device::CollNetConn::recvStep}) {
    EXPECT_NE(first.*of, second.*of);
    EXPECT_EQ((first.*of)->value, 0u);
    EXPECT_EQ((second.*of)->value, 0u);
  }
  EXPECT_NE(world.nodes[0].sets[1][0].conn().words, first.words);
}

/// A driver that gives memory away as dma-bufs.
std::unique_ptr<gpu::Device> exportingDevice() {
  static gpu::Driver driver = testDevice()->driver();
  driver.cuMemGetHandleForAddressRange = [](void* handle, CUdeviceptr, std::size_t, CUmemRangeHandleType,
                                            unsigned long long) {
    *static_cast<int*>(handle) = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    return CUDA_SUCCESS;
  };
  return gpu::Device::create(driver, 0).value();
}

TEST(CollNetLink, RegistersMemoryAsWhatItIs) {
  struct Case {
    net::SlotPlace place;
    bool takesDmaBuf;
    unsigned onDevice, dmaBufs;
  };
  const auto device = exportingDevice();
  for (const Case& c :
       {Case{{}, true, 0, 0}, Case{{.onDevice = true}, true, 2, 0},
        Case{{.onDevice = true, .dmaBuf = true}, true, 2, 2}, Case{{.onDevice = true, .dmaBuf = true}, false, 2, 0}}) {
    CollNetWorld world({.place = c.place, .knobs = {{.takesDmaBuf = c.takesDmaBuf}}, .gpu = device.get()});
    world.begin({kTwoLanes});
    EXPECT_EQ(world.nodes[0].network->onDevice, c.onDevice);
    EXPECT_EQ(world.nodes[0].network->dmaBufs, c.dmaBufs);
    EXPECT_EQ(world.nodes[0].link->description(device::Direction::Send),
              c.place.onDevice ? "COLLNET/Fake/0/GDRDMA" : "COLLNET/Fake/0");
    world.step(0, wordsFor(CollNetFunc::AllReduce, 8192));
  }
}

bool logged(std::string_view part) {
  return capturedText().find(part) != std::string::npos;
}

TEST(CollNetLink, KeepsItsSlotsInHostMemoryWhereTheNetworkRefusesThoseOnTheDevice) {
  const ScopedLog log("INFO");
  constexpr int kCuda = static_cast<int>(plugin::PtrKind::Cuda);
  std::size_t told = 0;
  for (const int taken : {0, 1}) {  // one area is taken before the other is refused
    const auto ledger = std::make_shared<gpu::MemoryLedger>();
    const net::SlotPlace place{.onDevice = true, .flushes = true};
    CollNetWorld world({.place = place, .knobs = {{.refusesKinds = kCuda, .takesFirst = taken}}, .ledger = ledger});
    world.begin({kDirect, kTwoLanes});
    EXPECT_EQ(world.nodes[0].link->description(device::Direction::Recv), "COLLNET/Fake/0");
    told += 2;
    EXPECT_EQ(countOf(capturedText(), "slots of CollNetDirect lie in host memory, for the network refuses those"),
              told);
    EXPECT_LT(ledger->bytes(gpu::MemoryClass::Persistent), 2u * 8 * 8192) << "no slots are there";
    world.step(0, wordsFor(CollNetFunc::AllReduce, 8192));
    world.step(1, wordsFor(CollNetFunc::AllReduce, 8192));
    EXPECT_EQ(world.nodes[0].network->flushes, 0u);
  }
}

TEST(CollNetLink, TakesBackWhatIsRegisteredBeforeItsMemoryGoes) {
  allowLog("Fake: no such memory");
  constexpr int kHost = static_cast<int>(plugin::PtrKind::Host);
  CollNetWorld world({.knobs = {{.refusesKinds = kHost, .takesFirst = 1}}});
  world.begin({});
  EXPECT_EQ(world.nodes[0].link->addLanes(kTwoLanes).status().code(), ncclSystemError);
  EXPECT_EQ(world.fabric->leftOpen(), 2u) << "connections, and no memory";
}

TEST(CollNetLink, GivesMemoryByItsAddressWhereADmaBufIsRefused) {
  const ScopedLog log("INFO");
  constexpr int kDmaBuf = static_cast<int>(plugin::PtrKind::DmaBuf);
  const net::SlotPlace place{.onDevice = true, .dmaBuf = true, .orAddress = true};
  const auto device = exportingDevice();
  CollNetWorld world({.place = place, .knobs = {{.refusesKinds = kDmaBuf}}, .gpu = device.get()});
  world.begin({kTwoLanes});
  EXPECT_TRUE(logged("are given to the network by their address, for as a dma-buf they cannot be: "));
  EXPECT_EQ(world.nodes[0].network->dmaBufs, 2u);
  EXPECT_EQ(world.nodes[0].network->onDevice, 2u);
  EXPECT_EQ(world.nodes[0].link->description(device::Direction::Send), "COLLNET/Fake/0/GDRDMA");
  world.step(0, wordsFor(CollNetFunc::AllReduce, 8192));
}

TEST(CollNetLink, BooksItsDeviceMemory) {
  const auto ledger = std::make_shared<gpu::MemoryLedger>();
  {
    CollNetWorld world({.place = {.onDevice = true}, .ledger = ledger});
    world.begin({kTwoLanes});
    EXPECT_GE(ledger->bytes(gpu::MemoryClass::Persistent), 2u * 2 * 8 * 8192);
  }
  EXPECT_EQ(ledger->bytes(gpu::MemoryClass::Persistent), 0u);
}

TEST(CollNetLink, TakesTwoSetsAndNoMore) {
  CollNetWorld world;
  world.begin({kTwoLanes, kTwoLanes});
  expectLog("CollNet of rank 0 (host hosta, device 0), rail 1 by COLLNET/Fake/0: 2 lanes of 4096 bytes");
  EXPECT_EQ(world.nodes[0].link->addLanes(kTwoLanes).status().code(), ncclInternalError);
}

TEST(CollNetLink, WantsLanesWithSlotsOfWholePacks) {
  CollNetWorld world;
  world.begin({});
  for (const collnet::LaneSetShape& shape :
       {collnet::LaneSetShape{"A", {}, 4096}, {"A", {0}, 0}, {"A", {0}, 4100}, {"A", {0}, 8}}) {
    expectLog(fmt::format("{} lanes of {} bytes for A", shape.channels.size(), shape.slotBytes));
    EXPECT_EQ(world.nodes[0].link->addLanes(shape).status().code(), ncclInternalError);
  }
}

TEST(CollNetLink, WantsItsCallsInOrder) {
  CollNetWorld world;
  expectLog("with 0 sets and no connection");
  EXPECT_EQ(world.nodes[0].link->addLanes(kTwoLanes).status().code(), ncclInternalError);
  expectLog("connect of node 0 of 1 before listen");
  const collnet::CollNetAddress one[1] = {};
  EXPECT_EQ(world.nodes[0].link->connect(one, 0, Deadline::in(1s), nullptr).code(), ncclInternalError);
  ASSERT_TRUE(world.nodes[0].link->listen().ok());
  expectLog("connect of node 1 of 1");
  EXPECT_EQ(world.nodes[0].link->connect(one, 1, Deadline::in(1s), nullptr).code(), ncclInternalError);
}

TEST(CollNetLink, NamesTheSetUpCallThatFailed) {
  for (const std::string call : {"properties", "listen", "connect", "closeListen", "registerMemory"}) {
    CollNetWorld world({.nodes = 1, .knobs = {{.failing = call}}});
    const std::string told = call == "properties"       ? "asking for the device's properties"
                             : call == "registerMemory" ? "registering memory"
                                                        : call;
    if (call != "connect") expectLog("Fake: the switch is on fire");
    expectLog("CollNet of rank 0 (host hosta, device 0), rail 1 by COLLNET/Fake/0 failed in " + told +
              ": Fake: the switch is on fire. Other nodes' first errors may say why; NCCL_COLLNET_ENABLE=0 does");
    auto& link = *world.nodes[0].link;
    Status status;
    const auto address = link.listen();
    status = address.status();
    if (status.ok()) status = link.connect({&address.value(), 1}, 0, Deadline::in(kGenerous), nullptr);
    if (status.ok()) status = link.addLanes(kTwoLanes).status();
    EXPECT_EQ(status.code(), ncclSystemError) << call;
  }
}

TEST(CollNetLink, IsNotThereWhereTheNetworkGivesNoConnection) {
  CollNetWorld world({.nodes = 1, .knobs = {{.connectsToNothing = true}}});
  expectLog("connect gave no connection: the network is not available to this job");
  EXPECT_EQ(world.connect()[0].code(), ncclSystemError);
}

TEST(CollNetLink, NeedsRoomForAnElementOnEveryNode) {
  CollNetWorld world({.nodes = 1, .knobs = {{.mostBytes = 7}}});
  expectLog("the network takes 7 bytes in a call at most, less than an element has");
  EXPECT_EQ(world.nodes[0].link->listen().status().code(), ncclInvalidUsage);
  CollNetWorld other;
  const auto own = other.nodes[0].link->listen();
  ASSERT_TRUE(own.ok());
  const collnet::CollNetAddress both[2] = {own.value(), {}};
  expectLog("the network takes 0 bytes in a call at most");
  EXPECT_EQ(other.nodes[0].link->connect(both, 0, Deadline::in(1s), nullptr).code(), ncclInvalidUsage);
}

TEST(CollNetLink, DoesNotWaitForAConnectThatHangs) {
  CollNetWorld world({.nodes = 2, .knobs = {{}, {.connectHangs = true}}});
  for (const char* host : {"rank 0 (host hosta", "rank 2 (host hostb"}) {
    expectLog(std::string("CollNet of ") + host +
              ", device 0), rail 1 by COLLNET/Fake/0: connect has not returned after");
  }
  for (const Status status : world.connect(Deadline::in(50ms))) EXPECT_EQ(status.code(), ncclRemoteError);
  const std::weak_ptr<FakeCollNet> networks[] = {world.nodes[0].network, world.nodes[1].network};
  world.nodes.clear();
  for (const auto& network : networks) EXPECT_FALSE(network.expired()) << "the call that goes on has it";
  EXPECT_EQ(world.fabric->leftOpen(), 2u) << "and its listener";
  world.fabric->release();
  EXPECT_TRUE(until([&] { return networks[0].expired() && networks[1].expired(); }));
  EXPECT_EQ(world.fabric->leftOpen(), 0u) << "what came at last was given back";
}

TEST(CollNetLink, GivesALateListenerBackWhereNothingCame) {
  CollNetWorld world({.nodes = 2});
  const auto address = world.nodes[0].link->listen();
  ASSERT_TRUE(address.ok());
  const collnet::CollNetAddress both[2] = {address.value(), address.value()};
  expectLog("connect has not returned after");
  EXPECT_FALSE(world.nodes[0].link->connect(both, 0, Deadline::in(20ms), nullptr).ok());
  world.fabric->release();
  EXPECT_TRUE(until([&] { return world.fabric->leftOpen() == 0; }));
}

TEST(CollNetLink, StopsWaitingWhenTheCommunicatorIsAborted) {
  CollNetWorld world({.nodes = 2, .knobs = {{}, {.connectHangs = true}}});
  Abort abort;
  std::thread later([&] {
    std::this_thread::sleep_for(20ms);
    abort.raise(Status(ncclInvalidUsage), "a test wants it");
  });
  for (const Status status : world.connect(Deadline::in(kGenerous), &abort)) EXPECT_EQ(status.code(), ncclInvalidUsage);
  later.join();
}

TEST(CollNetLink, EndsAtAnyPoint) {
  for (int point = 0; point < 4; ++point) {
    CollNetWorld world;
    if (point == 1) {
      ASSERT_TRUE(world.nodes[0].link->listen().ok());
    }
    if (point >= 2) {
      for (const Status status : world.connect()) EXPECT_TRUE(status.ok());
    }
    if (point == 3) world.addLanes(kTwoLanes);
  }
}

/// The stand-in objects to what is given back twice, and to what is not.
TEST(CollNetLink, GivesBackOnceWhatIsClosedAgain) {
  for (const bool connects : {false, true}) {
    CollNetWorld world;
    if (connects) {
      world.begin({kTwoLanes});
    } else {
      ASSERT_TRUE(world.nodes[0].link->listen().ok());
    }
    for (auto& node : world.nodes) {
      node.link->close();
      node.link->close();
    }
  }
}

TEST(CollNetLink, EndsWithCallsUnderWay) {
  CollNetWorld world({.nodes = 2, .place = {.onDevice = true}, .knobs = {{.neverEnds = true}}});
  world.begin({kTwoLanes});
  for (int i = 0; i < 3; ++i) {
    world.fill(world.nodes[0], 0, 0, wordsFor(CollNetFunc::AllReduce, 64));
    if (i == 0) world.fill(world.nodes[1], 1, 0, wordsFor(CollNetFunc::AllReduce, 64));
    world.advance();
  }
  EXPECT_EQ(world.nodes[0].network->mostOpen, 3u);
}

TEST(CollNetLink, TellsOfEachChannel) {
  const ScopedLog log("INFO");
  CollNetWorld world;
  world.begin({kTwoLanes});
  for (const char* line :
       {"CollNet 03/0 : 0 [receive] via COLLNET/Fake/0", "CollNet 03/1 : 0 [send] via COLLNET/Fake/0",
        "CollNet 05/1 : 2 [send] via COLLNET/Fake/0"}) {
    EXPECT_NE(capturedText().find(line), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace tutti::test
