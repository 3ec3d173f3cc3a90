// Ends of connections over a network: they come up together, carry steps, and give everything back whenever they end.
#include "transport/net/endpoint/endpoint.h"
#include "transport/net/test_device.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "gpu/driver_calls.h"
#include "gpu/memory_ledger.h"
#include "support/log_capture.h"
#include "support/scoped_log.h"
#include "transport/common/peers.h"
#include "transport/common/up.h"
#include "transport/net/lane/fake_routing.h"
#include "transport/net/sim_kernels.h"
#include "transport/net/transport.h"

namespace tutti::test {
namespace {

topo::PeerInfo rankOn(int rank) {
  topo::PeerInfo info = peerOn(*testDevice(), rank);
  info.hostHash = static_cast<std::uint64_t>(rank) + 100;
  std::snprintf(info.hostName.data(), info.hostName.size(), "host%d", rank);
  return info;
}

transport::LinkSpec linkOf(int self, int peer, device::SlotBytes slotBytes = kSlots) {
  return transport::LinkSpec{rankOn(self), rankOn(peer), 2, slotBytes, device::ConnKind::Mesh};
}

/// A sender on rank 0 and a receiver on rank 1.
struct Ends {
  explicit Ends(FakeKnobs knobs = {}, net::NetTransportOptions options = {}, device::SlotBytes slotBytes = kSlots)
      : net(std::move(knobs)), transport(*testDevice(), net, std::move(options)) {
    auto out = transport.openSend(linkOf(0, 1, slotBytes));
    auto in = transport.openRecv(linkOf(1, 0, slotBytes));
    if (out.ok()) sender = std::move(out).value();
    if (in.ok()) receiver = std::move(in).value();
  }
  Status exchange() {
    TRY(sender->connect(receiver->handle()));
    return receiver->connect(sender->handle());
  }
  /// Whether both have come up within `rounds`.
  bool comeUp(int rounds = 200) {
    if (!exchange().ok()) return false;
    bool out = false;
    bool in = false;
    for (int i = 0; i < rounds && !(out && in); ++i) {
      const auto a = comesUp(*sender);
      if (!a.ok()) return false;
      const auto b = comesUp(*receiver);
      if (!b.ok()) return false;
      out = a.value();
      in = b.value();
    }
    return out && in && sender->probeWrite().ok() && receiver->probeCheck().ok() && receiver->probeCheck().value();
  }
  void close() {
    sender.reset();
    receiver.reset();
    EXPECT_EQ(net.leftOpen(), 0u);
    EXPECT_EQ(net.faults, 0u);
  }

  FakeNet net;
  net::NetTransport transport;
  std::unique_ptr<transport::Endpoint> sender;
  std::unique_ptr<transport::Endpoint> receiver;
};

TEST(NetEndpoint, ComesUpAndCarriesStepsOfAllProtocols) {
  for (const FakeKnobs& knobs : {FakeKnobs{}, FakeKnobs{.refuse = 50, .delay = 4, .rendezvous = true, .polls = 5}}) {
    Ends ends(knobs);
    ASSERT_TRUE(ends.comeUp());
    const device::SendConn out = sendConn(*ends.sender);
    const device::RecvConn in = recvConn(*ends.receiver);
    EXPECT_NE(out.words, nullptr);
    EXPECT_NE(in.words, nullptr);
    EXPECT_EQ(out.pull.addresses, nullptr);
    SendingKernel kernelOut(out);
    ReceivingKernel kernelIn(in);
    for (const device::Protocol protocol : kAllProtocols) {
      for (const std::uint32_t bytes : {0u, 500u, roomOf(protocol)}) {
        ASSERT_TRUE(kernelOut.send(protocol, bytes));
        bool got = false;
        for (int i = 0; i < 200 && !got; ++i) {
          ASSERT_TRUE(ends.sender->task()->advance().ok());
          ASSERT_TRUE(ends.receiver->task()->advance().ok());
          got = kernelIn.recv(protocol, bytes);
        }
        EXPECT_TRUE(got) << bytes << " " << ends.receiver->task()->describe();
      }
    }
    ends.close();
  }
}

TEST(NetEndpoint, TalksToItsPeerOnlyWhenItIsToMeetIt) {
  Ends ends;
  ASSERT_TRUE(ends.exchange().ok());
  EXPECT_FALSE(ends.sender->calls());
  expectLog("meet() before ready()");
  EXPECT_FALSE(ends.sender->meet().ok());
  EXPECT_TRUE(ends.sender->ready().value());
  EXPECT_TRUE(ends.sender->calls());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(ends.sender->ready().value() && ends.receiver->ready().value());
  EXPECT_EQ(ends.net.sendsMade + ends.net.receives, 0u);
  EXPECT_FALSE(ends.sender->probeCheck().value());
  ASSERT_TRUE(ends.comeUp());
  EXPECT_EQ(ends.net.sendsMade, 2u) << "one over each network connection";
  ends.close();
}

TEST(NetEndpoint, DoesWithoutTheSizesOfWhatHasCome) {
  Ends ends({.delay = 3, .keepsSizes = true});
  ASSERT_TRUE(ends.comeUp());
  SendingKernel kernelOut(sendConn(*ends.sender));
  ReceivingKernel kernelIn(recvConn(*ends.receiver));
  for (int round = 0; round < 3 * kSteps; ++round) {
    const device::Protocol protocol = kAllProtocols[round % 3];
    const std::uint32_t bytes = round % 5 == 0 ? 0 : roomOf(protocol) - static_cast<std::uint32_t>(round);
    ASSERT_TRUE(kernelOut.send(protocol, bytes));
    bool got = false;
    for (int i = 0; i < 200 && !got; ++i) {
      ASSERT_TRUE(ends.sender->task()->advance().ok());
      ASSERT_TRUE(ends.receiver->task()->advance().ok());
      got = kernelIn.recv(protocol, bytes);
    }
    EXPECT_TRUE(got) << ends.receiver->task()->describe();
  }
  ends.close();
}

TEST(NetEndpoint, AsksForTheRequestsOfAConnectionInTheirOrder) {
  Ends ends({.delay = 6, .wantsOrder = true});
  ASSERT_TRUE(ends.comeUp());
  SendingKernel kernelOut(sendConn(*ends.sender));
  ReceivingKernel kernelIn(recvConn(*ends.receiver));
  std::array<int, 2> got{};
  for (int sent = 0, round = 0; round < 5000 && got[0] + got[1] < 40; ++round) {
    const auto next = static_cast<device::Protocol>(sent % 2);  // LL and LL128 by turns
    if (sent < 40 && kernelOut.send(next, 100)) ++sent;
    ASSERT_TRUE(ends.sender->task()->advance().ok());
    ASSERT_TRUE(ends.receiver->task()->advance().ok());
    for (const device::Protocol protocol : {device::Protocol::LL, device::Protocol::LL128})
      got[static_cast<std::size_t>(protocol)] += kernelIn.recv(protocol, 100) ? 1 : 0;
  }
  EXPECT_EQ(got[0] + got[1], 40);
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(ends.sender->task()->advance().ok());
  ends.close();
}

TEST(NetEndpoint, UsesTheDeviceThatItIsTold) {
  Ends ends({}, {.routing = routingTo([](const transport::LinkSpec& link, device::Direction direction) {
                   return net::EndPlace{link.channel == 2 && direction == device::Direction::Send ? 1 : 0};
                 })});
  EXPECT_EQ(ends.sender->description(), "NET/Fake/1");
  EXPECT_EQ(ends.receiver->description(), "NET/Fake/0");
  EXPECT_TRUE(ends.sender->eachEndReports());
}

TEST(NetEndpoint, HasOneNetworkConnectionWhereNoLinesAreUsed) {
  Ends ends({}, {}, {0, 0, 4096});
  ASSERT_TRUE(ends.comeUp());
  EXPECT_EQ(ends.net.leftOpen(), 4u) << "two ends, two registrations";
  Ends lines({}, {}, {4096, 0, 0});
  ASSERT_TRUE(lines.comeUp());
  EXPECT_EQ(sendConn(*lines.sender).slots[2], nullptr);
  ends.close();
  lines.close();
}

TEST(NetEndpoint, OffersOnlyWhatTheNetworkMayReadInPlace) {
  Ends ends({}, {.inPlace = true});
  ASSERT_TRUE(ends.comeUp());
  const device::SendConn view = sendConn(*ends.sender);
  ASSERT_NE(view.pull.addresses, nullptr);
  EXPECT_EQ(recvConn(*ends.receiver).pull.addresses, nullptr);
  auto user = gpu::DeviceBuffer::create(*testDevice(), 4096, "what a kernel offers");
  ASSERT_TRUE(user.ok());
  for (std::size_t i = 0; i < 1000; ++i) user.value().data()[i] = contentAt(device::Protocol::Simple, 0, i);
  EXPECT_LE(view.pull.window.base, user.value().address());
  EXPECT_GT(view.pull.window.base + view.pull.window.bytes, user.value().address() + 4096);
  SendingKernel kernel(view);
  ReceivingKernel reader(recvConn(*ends.receiver));
  kernel.offer(user.value().data(), 1000);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(ends.sender->task()->advance().ok());
    ASSERT_TRUE(ends.receiver->task()->advance().ok());
  }
  EXPECT_TRUE(reader.recv(device::Protocol::Simple, 1000));
  EXPECT_EQ(ends.net.unregistered, 1u);
  ends.close();
}

/// A step of each protocol, from the sender's kernel to the receiver's.
void carry(Ends& ends) {
  SendingKernel kernel(sendConn(*ends.sender));
  const device::RecvConn in = recvConn(*ends.receiver);
  ReceivingKernel reader(in);
  for (const device::Protocol protocol : kAllProtocols) {
    ASSERT_TRUE(kernel.send(protocol, 600));
    for (int i = 0; i < 10; ++i) {
      ASSERT_TRUE(ends.sender->task()->advance().ok());
      ASSERT_TRUE(ends.receiver->task()->advance().ok());
    }
    EXPECT_TRUE(reader.recv(protocol, 600));
  }
}

TEST(NetEndpoint, LeavesSlotsOnTheDeviceToTheNetworkAndFlushes) {
  Ends ends({}, {.routing = routingWithSlots({.onDevice = true, .flushes = true})});
  ASSERT_TRUE(ends.comeUp());
  EXPECT_EQ(ends.sender->description(), "NET/Fake/0/GDRDMA");
  EXPECT_EQ(ends.net.onDevice, 2u);
  carry(ends);
  EXPECT_EQ(ends.net.flushes, 1u);
  ends.close();
}

bool logged(std::string_view part) {
  return capturedText().find(part) != std::string::npos;
}

/// Bits of FakeKnobs::refusesKinds.
constexpr int kCuda = static_cast<int>(plugin::PtrKind::Cuda);
constexpr int kDmaBuf = static_cast<int>(plugin::PtrKind::DmaBuf);

TEST(NetEndpoint, KeepsItsSlotsInHostMemoryWhereTheNetworkRefusesThoseOnTheDevice) {
  const ScopedLog log("INFO");
  const auto ledger = std::make_shared<gpu::MemoryLedger>();
  Ends ends({.refusesKinds = kCuda},
            {.routing = routingWithSlots({.onDevice = true, .flushes = true}), .ledger = ledger});
  ASSERT_TRUE(ends.comeUp());
  EXPECT_EQ(ends.sender->description(), "NET/Fake/0");
  EXPECT_EQ(ends.receiver->description(), "NET/Fake/0");
  EXPECT_TRUE(logged("slots lie in host memory, for the network refuses those in GPU memory: "));
  EXPECT_TRUE(logged("Fake: no such memory"));
  EXPECT_FALSE(logged("WARN") || logged("ERROR")) << "nothing is wrong";
  EXPECT_LT(ledger->bytes(gpu::MemoryClass::Persistent), kSlots[0]) << "the slots on the device are given back";
  carry(ends);
  EXPECT_EQ(ends.net.flushes, 0u);
  ends.close();
}

TEST(NetEndpoint, GivesItsSlotsByTheirAddressWhereADmaBufIsRefused) {
  const ScopedLog log("INFO");
  std::size_t told = 0;
  // This driver gives none, or the network takes none.
  for (const int refused : {0, kDmaBuf}) {
    const net::SlotPlace place{.onDevice = true, .dmaBuf = true, .orAddress = true};
    Ends ends({.refusesKinds = refused}, {.routing = routingWithSlots(place)});
    ASSERT_TRUE(ends.comeUp());
    EXPECT_EQ(ends.sender->description(), "NET/Fake/0/GDRDMA");
    EXPECT_EQ(ends.net.onDevice, 2u);
    told += 2;
    EXPECT_EQ(countOf(capturedText(), "are given to the network by their address, for as a dma-buf they cannot be: "),
              told);
    carry(ends);
    ends.close();
  }
}

TEST(NetEndpoint, NamesMemoryThatTheNetworkTakesInNoWay) {
  const net::SlotPlace place{.onDevice = true, .dmaBuf = true, .orAddress = true};
  Ends ends({.refusesKinds = ~0}, {.routing = routingWithSlots(place)});
  allowLog("Fake: no such memory");
  EXPECT_FALSE(ends.comeUp());
  EXPECT_TRUE(logged("by NET/Fake/0 on channel 2 of rank 0 (host host0, device 0) failed in registering memory: "));
  ends.close();
}

TEST(NetEndpoint, GivesSlotsOnTheDeviceAsDmaBufsWhereItIsTold) {
  gpu::Driver driver = testDevice()->driver();
  static CUdeviceptr exported = 0;
  driver.cuMemGetHandleForAddressRange = [](void* handle, CUdeviceptr address, std::size_t, CUmemRangeHandleType,
                                            unsigned long long) {
    exported = address;
    *static_cast<int*>(handle) = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    return CUDA_SUCCESS;
  };
  auto device = gpu::Device::create(driver, 0);
  ASSERT_TRUE(device.ok());
  FakeNet net;
  {
    const auto placeOf = [](const transport::LinkSpec&, device::Direction direction) {
      return net::EndPlace{0, {.onDevice = direction == device::Direction::Recv, .dmaBuf = true}};
    };
    net::NetTransport transport(*device.value(), net, {.routing = routingTo(placeOf)});
    auto sender = transport.openSend(linkOf(0, 1)).value();
    auto receiver = transport.openRecv(linkOf(1, 0)).value();
    ASSERT_TRUE(sender->connect(receiver->handle()).ok());
    ASSERT_TRUE(receiver->connect(sender->handle()).ok());
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(comesUp(*sender).ok());
      ASSERT_TRUE(comesUp(*receiver).ok());
    }
    EXPECT_EQ(sender->description(), "NET/Fake/0");
    EXPECT_EQ(receiver->description(), "NET/Fake/0/GDRDMA");
    EXPECT_EQ(net.dmaBufs, 1u);
    EXPECT_EQ(reinterpret_cast<CUdeviceptr>(net.dmaBufBegin), exported);
    EXPECT_EQ(net.onDevice, 0u);
  }
  EXPECT_EQ(net.leftOpen(), 0u);
}

TEST(NetEndpoint, SharesSlotsInHostMemoryWithThoseThatCameFirst) {
  const ScopedLog log("INFO");
  FakeNet net({.refusesKinds = kCuda});
  net::NetTransport here(*testDevice(), net, {.routing = routingWithSlots({.onDevice = true}), .sharedSlots = 4});
  net::NetTransport there(*testDevice(), net, {});
  {
    std::vector<std::unique_ptr<transport::Endpoint>> ends;
    for (const int peer : {1, 2}) {
      auto sender = here.openSend(linkOf(0, peer)).value();
      auto receiver = there.openRecv(linkOf(peer, 0)).value();
      ASSERT_TRUE(sender->connect(receiver->handle()).ok());
      ASSERT_TRUE(receiver->connect(sender->handle()).ok());
      bool up = false;
      for (int i = 0; i < 100 && !up; ++i) {
        const bool out = comesUp(*sender).value();
        up = comesUp(*receiver).value() && out;
      }
      ASSERT_TRUE(up);
      EXPECT_EQ(sender->description(), "NET/Fake/0");
      ends.push_back(std::move(sender));
      ends.push_back(std::move(receiver));
    }
    EXPECT_EQ(sendConn(*ends[0]).shared.taken, sendConn(*ends[2]).shared.taken) << "kernels know one ring of a channel";
    EXPECT_EQ(countOf(capturedText(), "the network refuses those in GPU memory"), 1u) << "the second does not ask";
  }
  EXPECT_EQ(net.leftOpen(), 0u);
}

/// Ends of two connections for messages on one channel of rank 0, each with its slots at a place of its own.
TEST(NetEndpoint, NamesTheRemedyWhereItsChannelSharesSlotsThatItsNetworkCannotReach) {
  FakeNet net;
  const auto placeOf = [](const transport::LinkSpec& link, device::Direction) {
    return net::EndPlace{link.peer.rank - 1, {.onDevice = link.peer.rank == 1}};
  };
  net::NetTransport here(*testDevice(), net,
                         {.routing = routingTo(placeOf), .sharedSlots = 4, .sharedConnections = true});
  net::NetTransport there(*testDevice(), net, {});
  {
    std::vector<std::unique_ptr<transport::Endpoint>> ends;
    for (const int peer : {1, 2}) {
      auto receiver = here.openRecv(linkOf(0, peer)).value();
      auto sender = there.openSend(linkOf(peer, 0)).value();
      ASSERT_TRUE(sender->connect(receiver->handle()).ok());
      ASSERT_TRUE(receiver->connect(sender->handle()).ok());
      bool refused = false;
      for (int i = 0; i < 100 && !refused; ++i) {
        ASSERT_TRUE(comesUp(*sender).ok());
        refused = !comesUp(*receiver).ok();
      }
      EXPECT_EQ(refused, peer == 2);
      ends.push_back(std::move(sender));
      ends.push_back(std::move(receiver));
    }
    expectLog(
        "and the network does not take that memory for this one. NCCL_NET_GDR_LEVEL=LOC keeps all slots in host "
        "memory");
  }
  EXPECT_EQ(net.leftOpen(), 0u);
}

TEST(NetEndpoint, EndsCleanlyHoweverFarItCame) {
  Ends{}.close();  // listens
  {
    Ends ends({.neverAccepts = true});
    EXPECT_FALSE(ends.comeUp(20));
    EXPECT_FALSE(ends.sender->probeCheck().value());
    ends.close();
  }
  {
    Ends ends({.neverEnds = true});  // the probe is under way
    EXPECT_FALSE(ends.comeUp(20));
    ends.close();
  }
  {
    Ends ends;
    ASSERT_TRUE(ends.exchange().ok());
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(comesUp(*ends.sender).ok());  // the receiver never comes
    ends.close();
  }
  Ends ends({.rendezvous = true});
  ASSERT_TRUE(ends.comeUp());
  SendingKernel kernel(sendConn(*ends.sender));
  for (const device::Protocol protocol : kAllProtocols) ASSERT_TRUE(kernel.send(protocol, 100));
  ASSERT_TRUE(ends.sender->task()->advance().ok());  // requests are under way on both sides
  ASSERT_TRUE(ends.receiver->task()->advance().ok());
  ends.close();
}

TEST(NetEndpoint, NamesWhatFailedWhileComingUp) {
  for (const char* call : {"connect", "accept", "registerMemory", "isend", "irecv", "test"}) {
    Ends ends;
    ends.net.knobs().failing = call;
    expectLog("Fake: the cable is cut");
    expectLog("NET/Fake/0 on channel 2 of rank");
    EXPECT_FALSE(ends.comeUp()) << call;
    ends.close();
  }
  expectLog("Fake: the cable is cut");
  expectLog(
      "receive from rank 0 (host host0, device 0) by NET/Fake/0 on channel 2 of rank 1 (host host1, device 0) failed "
      "in "
      "listen: ");
  Ends ends({.failing = "listen"});
  EXPECT_EQ(ends.receiver, nullptr);
  ends.close();
}

TEST(NetEndpoint, RefusesAFirstMessageThatIsNotFromItsPeer) {
  for (const FakeKnobs& knobs : {FakeKnobs{.cutBy = 1}, FakeKnobs{.spoilAt = 5}}) {
    Ends ends(knobs);
    expectLog("the network confused its connections or damaged the message");
    EXPECT_FALSE(ends.comeUp());
    ends.close();
  }
}

TEST(NetEndpoint, AbandonsAConnectThatHasNotComeToItsEnd) {
  Ends waits({.neverAccepts = true});
  EXPECT_FALSE(waits.comeUp());
  waits.close();
  EXPECT_EQ(waits.net.abandoned, 2u);
  for (const char* call : {"", "connect"}) {
    Ends ends({.failing = call});
    if (*call != 0) expectLog("Fake: the cable is cut");
    if (*call != 0) expectLog("failed in connect");
    EXPECT_EQ(ends.comeUp(), *call == 0);
    ends.close();
    EXPECT_EQ(ends.net.abandoned, 0u) << "it has ended";
  }
}

TEST(NetEndpoint, RefusesHandlesOfSomethingElse) {
  Ends ends;
  expectLog("ready() before connect()");
  EXPECT_FALSE(ends.sender->ready().ok());
  expectLog("NET handle does not belong to channel");
  EXPECT_EQ(ends.sender->connect(transport::ConnectHandle{}).code(), ncclInternalError);
  expectLog("NET handle does not belong to channel");
  EXPECT_EQ(ends.sender->connect(ends.sender->handle()).code(), ncclInternalError);
  Ends other({}, {}, {4096, 2048, 8192});
  expectLog("Buffer sizes differ on channel");
  EXPECT_EQ(ends.sender->connect(other.receiver->handle()).code(), ncclInvalidUsage);
}

TEST(NetEndpoint, RefusesSlotsThatAreMoreThanTheNetworkTakes) {
  FakeNet net;
  net.maxBytes = 2047;
  net::NetTransport transport(*testDevice(), net, {});
  expectLog("set NCCL_BUFFSIZE to 12288, NCCL_LL_BUFFSIZE to 24576 or less on all ranks");
  EXPECT_EQ(transport.openSend(linkOf(0, 1)).status().code(), ncclInvalidUsage);
}

TEST(NetTransport, JoinsAnyTwoRanks) {
  FakeNet net;
  net::NetTransport transport(*testDevice(), net, {});
  EXPECT_EQ(transport.name(), "NET");
  EXPECT_TRUE(transport.reachable(rankOn(0), rankOn(1)).value());
  EXPECT_FALSE(transport.reachable(rankOn(1), rankOn(1)).value());
  EXPECT_NE(transport.whyNot(rankOn(1), rankOn(1)), "");
  EXPECT_EQ(transport.judge(rankOn(0), rankOn(1)).value(), transport::LinkQuality::WholeLines);
  topo::PeerInfo gpu = rankOn(1);
  gpu.softGpu = 0;
  EXPECT_EQ(transport.judge(rankOn(0), gpu).value(), transport::LinkQuality::Plain);
}

}  // namespace
}  // namespace tutti::test
