// Links that are opened together share an allocation, which a peer in another process maps once.
#include "transport/p2p/slabs.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "gpu/fake_driver.h"
#include "gpu/memory_ledger.h"
#include "support/descriptors.h"
#include "support/log_capture.h"
#include "transport/common/ends.h"
#include "transport/common/peers.h"
#include "transport/p2p/transport.h"

namespace tutti::test {
namespace {

using device::Direction;
using Ends = std::vector<std::unique_ptr<transport::Endpoint>>;

p2p::P2pOptions byDescriptor() {
  p2p::P2pOptions options;
  options.descriptors = true;
  return options;
}

/// `channels` ends that are opened together.
Ends openAll(p2p::P2pTransport& transport, Direction direction, const topo::PeerInfo& self, const topo::PeerInfo& peer,
             int channels) {
  Ends ends;
  for (int channel = 0; channel < channels; ++channel) {
    transport::LinkSpec link = linkFrom(self, peer, channel);
    link.more = channels - 1 - channel;
    ends.push_back((direction == Direction::Send ? transport.openSend(link) : transport.openRecv(link)).value());
  }
  return ends;
}

/// Two ranks on a driver that only keeps books.
class Books : public testing::Test {
 protected:
  Books() {
    for (int i = 0; i < 2; ++i) {
      devices[i] = gpu::Device::create(fake.driver(), i).value();
      ranks[i] = peerOn(*devices[i], i);
    }
  }
  FakeDriver fake;
  std::unique_ptr<gpu::Device> devices[2];
  topo::PeerInfo ranks[2];
};

using P2pSlabs = Books;

TEST_F(P2pSlabs, LinksOpenedTogetherShareAnAllocationThatThePeerMapsOnce) {
  const std::string before = fake.leaks();
  {
    p2p::P2pTransport receiving(*devices[0], {});
    p2p::P2pTransport sending(*devices[1], {});
    const int allocated = fake.calls("cuMemAlloc");
    const Ends receivers = openAll(receiving, Direction::Recv, ranks[0], elsewhere(ranks[1]), 8);
    const Ends senders = openAll(sending, Direction::Send, ranks[1], elsewhere(ranks[0]), 8);
    EXPECT_EQ(fake.calls("cuMemAlloc"), allocated + 2);
    EXPECT_EQ(fake.calls("cuIpcGetMemHandle"), 2);
    for (std::size_t i = 0; i < receivers.size(); ++i) {
      EXPECT_TRUE(senders[i]->connect(receivers[i]->handle()).ok());
      EXPECT_TRUE(senders[i]->ready().value());
    }
    EXPECT_EQ(fake.calls("cuIpcOpenMemHandle"), 1);
    EXPECT_EQ(fake.calls("cuIpcCloseMemHandle"), 0);
  }
  EXPECT_EQ(fake.calls("cuIpcCloseMemHandle"), 1);
  EXPECT_EQ(fake.leaks(), before);
}

TEST_F(P2pSlabs, ByDescriptorAsWell) {
  const std::string before = fake.leaks();
  {
    p2p::P2pTransport receiving(*devices[0], byDescriptor());
    p2p::P2pTransport sending(*devices[1], byDescriptor());
    const Ends receivers = openAll(receiving, Direction::Recv, ranks[0], elsewhere(ranks[1]), 8);
    const Ends senders = openAll(sending, Direction::Send, ranks[1], elsewhere(ranks[0]), 8);
    EXPECT_EQ(fake.calls("cuMemCreate"), 2);
    for (std::size_t i = 0; i < receivers.size(); ++i) {
      EXPECT_TRUE(senders[i]->connect(receivers[i]->handle()).ok());
      EXPECT_TRUE(becomesReady(*senders[i]));
    }
    EXPECT_EQ(fake.calls("cuMemImportFromShareableHandle"), 1);
    EXPECT_EQ(fake.calls("cuIpcOpenMemHandle"), 0);
  }
  EXPECT_EQ(fake.leaks(), before);
}

TEST_F(P2pSlabs, PartsDoNotOverlap) {
  p2p::Slabs slabs(*devices[0], {}, {}, {});
  transport::LinkSpec link = linkFrom(ranks[0], ranks[1]);
  std::vector<std::shared_ptr<p2p::SharedMemory>> parts;
  for (link.more = 3; link.more >= 0; --link.more) parts.push_back(slabs.take(link, Direction::Recv, 5000).value());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(parts[i]->offset(), i * 8192);
    EXPECT_EQ(parts[i]->address(), parts[0]->address() + i * 8192);
    EXPECT_EQ(p2p::SharedMemory::at(parts[i]->address()), parts[i]);
  }
  EXPECT_EQ(parts[0]->slab().bytes, 4U * 8192);
}

TEST_F(P2pSlabs, OtherPeersDirectionsKindsAndSizesHaveTheirOwn) {
  p2p::Slabs slabs(*devices[0], {}, {}, {});
  transport::LinkSpec link = linkFrom(ranks[0], ranks[1]);
  link.more = 7;
  const auto first = slabs.take(link, Direction::Recv, 100).value();
  const auto other = [&](const transport::LinkSpec& of, Direction direction, std::size_t bytes) {
    const auto again = slabs.take(link, Direction::Recv, 100).value();
    const auto part = slabs.take(of, direction, bytes).value();
    return part->address() - part->offset() != again->address() - again->offset();
  };
  EXPECT_TRUE(other(link, Direction::Send, 100));
  EXPECT_TRUE(other(link, Direction::Recv, 5000));
  transport::LinkSpec mesh = link;
  mesh.kind = device::ConnKind::Mesh;
  EXPECT_TRUE(other(mesh, Direction::Recv, 100));
  transport::LinkSpec third = link;
  third.peer.rank = 5;
  EXPECT_TRUE(other(third, Direction::Recv, 100));
  EXPECT_FALSE(other(link, Direction::Recv, 100));
}

TEST_F(P2pSlabs, MoreLinksThanWereAnnouncedGetAnotherOne) {
  for (const auto& options : {p2p::P2pOptions(), byDescriptor()}) {
    p2p::Slabs slabs(*devices[0], options, {}, {});
    transport::LinkSpec link = linkFrom(ranks[0], elsewhere(ranks[1]));
    link.more = 1;
    std::vector<std::shared_ptr<p2p::SharedMemory>> parts;
    for (int i = 0; i < 3; ++i) parts.push_back(slabs.take(link, Direction::Recv, 4096).value());
    EXPECT_EQ(parts[1]->offset(), 4096U);
    EXPECT_EQ(parts[2]->offset(), 0U);
  }
}

TEST_F(P2pSlabs, MemoryGoesWithItsLastPartAndIsBooked) {
  const auto ledger = std::make_shared<gpu::MemoryLedger>();
  p2p::Slabs slabs(*devices[0], {}, {}, ledger);
  const auto booked = [&] { return ledger->bytes(gpu::MemoryClass::Releasable); };
  transport::LinkSpec link = linkFrom(ranks[0], ranks[1]);
  link.more = 1;
  auto first = slabs.take(link, Direction::Recv, 4096).value();
  auto second = slabs.take(link, Direction::Recv, 4096).value();
  EXPECT_EQ(booked(), 8192U);
  first->free();
  EXPECT_EQ(booked(), 8192U);
  second->free();
  EXPECT_EQ(booked(), 0U);
}

TEST_F(P2pSlabs, AddressesWithinAProcessAndIpcWhereDescriptorsCannotPass) {
  p2p::Slabs slabs(*devices[0], byDescriptor(), {}, {});
  const auto sharing = [&](const topo::PeerInfo& peer) {
    return slabs.take(linkFrom(ranks[0], peer), Direction::Recv, 64).value()->slab().sharing;
  };
  EXPECT_EQ(sharing(ranks[1]), p2p::Sharing::Address);
  EXPECT_EQ(sharing(elsewhere(ranks[1])), p2p::Sharing::Descriptor);
  topo::PeerInfo contained = elsewhere(ranks[1]);
  contained.networkNamespace += 1;
  EXPECT_EQ(sharing(contained), p2p::Sharing::Ipc);
  fake.vmmSupported = false;
  const auto old = gpu::Device::create(fake.driver(), 0).value();
  p2p::Slabs without(*old, byDescriptor(), {}, {});
  const auto part = without.take(linkFrom(ranks[0], elsewhere(ranks[1])), Direction::Recv, 64).value();
  EXPECT_EQ(part->slab().sharing, p2p::Sharing::Ipc);
}

TEST_F(P2pSlabs, OwnerThatHasGivenUpIsNamedWithTheWayAround) {
  p2p::P2pTransport receiving(*devices[0], byDescriptor());
  p2p::P2pTransport sending(*devices[1], byDescriptor());
  Ends receivers = openAll(receiving, Direction::Recv, ranks[0], elsewhere(ranks[1]), 2);
  const Ends senders = openAll(sending, Direction::Send, ranks[1], elsewhere(ranks[0]), 2);
  const std::vector<transport::ConnectHandle> handles{receivers[0]->handle(), receivers[1]->handle()};
  receivers.clear();
  for (std::size_t i = 0; i < senders.size(); ++i) {
    expectLog(
        "P2P: the memory of rank 0 (host node7, device 0) at rank 1 (host node7, device 1) could not be fetched: ");
    Status status = senders[i]->connect(handles[i]);
    for (const Deadline soon = Deadline::in(std::chrono::seconds(20)); status.ok() && !soon.expired();) {
      status = senders[i]->ready().status();
    }
    EXPECT_EQ(status.code(), ncclRemoteError);
    EXPECT_NE(capturedText().find("NCCL_CUMEM_ENABLE=0 shares it by CUDA's IPC handles instead"), std::string::npos);
  }
}

TEST_F(P2pSlabs, IpcTakesThePlaceOfADescriptorThatCannotBeHad) {
  const std::string before = fake.leaks();
  for (const char* call : {"cuMemCreate", "cuMemMap", "cuMemsetD8Async", "cuMemExportToShareableHandle"}) {
    p2p::P2pTransport transport(*devices[0], byDescriptor());
    fake.failNth(call, CUDA_ERROR_UNKNOWN);
    const auto end = transport.openRecv(linkFrom(ranks[0], elsewhere(ranks[1])));
    ASSERT_TRUE(end.ok()) << call;
    EXPECT_EQ(end.value()->description(), "P2P/IPC") << call;
  }
  EXPECT_EQ(fake.leaks(), before);
}

TEST_F(P2pSlabs, EveryFailureOfOpeningIsNamedAndLeaksNothing) {
  const std::string before = fake.leaks();
  for (const char* call : {"cuMemAlloc", "cuMemsetD8Async", "cuIpcGetMemHandle"}) {
    p2p::P2pTransport transport(*devices[0], {});
    fake.failNth(call, CUDA_ERROR_UNKNOWN);
    expectLog(std::string("in ") + call);
    EXPECT_FALSE(transport.openRecv(linkFrom(ranks[0], elsewhere(ranks[1]))).ok()) << call;
    EXPECT_EQ(fake.leaks(), before) << call;
  }
}

TEST_F(P2pSlabs, LinksAreCalledByHowTheirDataPass) {
  p2p::P2pTransport receiving(*devices[0], byDescriptor());
  p2p::P2pTransport sending(*devices[1], {});
  const Ends receivers = openAll(receiving, Direction::Recv, ranks[0], elsewhere(ranks[1]), 1);
  const Ends senders = openAll(sending, Direction::Send, ranks[1], elsewhere(ranks[0]), 1);
  EXPECT_TRUE(senders[0]->connect(receivers[0]->handle()).ok());
  EXPECT_EQ(senders[0]->description(), "P2P/CUMEM");
  EXPECT_EQ(receivers[0]->description(), "P2P/CUMEM");
}

/// Both ends in this process, as if they were in two: on devices that work.
TEST(P2pDescriptors, EveryLinkOfASlabProvesItself) {
  const std::unique_ptr<gpu::Device> devices[2]{openDevice(0), openDevice(1)};
  const topo::PeerInfo a = peerOn(*devices[0], 0);
  const topo::PeerInfo b = peerOn(*devices[1], 1);
  p2p::P2pOptions options = byDescriptor();
  options.directDisabled = true;
  p2p::P2pTransport sending(*devices[0], options);
  p2p::P2pTransport receiving(*devices[1], options);
  const Ends senders = openAll(sending, Direction::Send, a, elsewhere(b), 5);
  const Ends receivers = openAll(receiving, Direction::Recv, b, elsewhere(a), 5);
  for (std::size_t i = 0; i < senders.size(); ++i) {
    connectEnds(*senders[i], *receivers[i]);
    EXPECT_EQ(senders[i]->description(), "P2P/CUMEM");
  }
  for (std::size_t i = 0; i < senders.size(); ++i) {
    probeEnds(*senders[i], *receivers[i]);
    expectUntouched(*devices[0], transport::fifosOf(senders[i]->view()));
    expectUntouched(*devices[1], transport::fifosOf(receivers[i]->view()));
  }
}

TEST(P2pDescriptors, ConnectionsComeAndGoWithoutATrace) {
  const std::unique_ptr<gpu::Device> devices[2]{openDevice(0), openDevice(1)};
  const topo::PeerInfo a = peerOn(*devices[0], 0);
  const topo::PeerInfo b = peerOn(*devices[1], 1);
  p2p::P2pOptions options = byDescriptor();
  options.directDisabled = true;
  std::size_t before = 0;
  for (int i = 0; i < 20; ++i) {
    if (i == 2) before = openDescriptors();
    p2p::P2pTransport sending(*devices[0], options);
    p2p::P2pTransport receiving(*devices[1], options);
    const Ends senders = openAll(sending, Direction::Send, a, elsewhere(b), 2);
    const Ends receivers = openAll(receiving, Direction::Recv, b, elsewhere(a), 2);
    if (i % 2 == 0) connectEnds(*senders[0], *receivers[0]);  // what nobody fetches goes as well
  }
  EXPECT_EQ(openDescriptors(), before);
}

}  // namespace
}  // namespace tutti::test
