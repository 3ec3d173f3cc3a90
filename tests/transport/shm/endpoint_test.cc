// Connections through shared memory between devices that work: in one process, and across two.
#include "transport/shm/endpoint.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "base/host.h"
#include "base/log.h"
#include "device/policy.h"
#include "gpu/memory_ledger.h"
#include "support/descriptors.h"
#include "support/log_capture.h"
#include "support/scoped_log.h"
#include "transport/common/ends.h"
#include "transport/common/peers.h"
#include "transport/common/two_processes.h"
#include "transport/shm/transport.h"

namespace tutti::test {
namespace {

constexpr shm::ShmOptions kThroughShmSlots{.directDisabled = true};

/// Both ends of a connection, in this process or as if in two, which then have no way to read each other's memory.
struct ShmPair {
  std::shared_ptr<gpu::Device> devices[2];
  std::unique_ptr<shm::ShmTransport> transports[2];
  std::unique_ptr<transport::Endpoint> sender;
  std::unique_ptr<transport::Endpoint> receiver;

  ShmPair(int sending, int receiving, bool apart)
      : ShmPair(sending, receiving, apart, apart ? kThroughShmSlots : shm::ShmOptions{}) {}
  ShmPair(int sending, int receiving, bool apart, const shm::ShmOptions& options) {
    devices[0] = openDevice(sending);
    devices[1] = openDevice(receiving);
    for (int i = 0; i < 2; ++i) transports[i] = std::make_unique<shm::ShmTransport>(*devices[i], options, devices[i]);
    open(apart);
  }
  void open(bool apart) {
    const topo::PeerInfo a = peerOn(*devices[0], 0);
    const topo::PeerInfo b = apart ? elsewhere(peerOn(*devices[1], 1)) : peerOn(*devices[1], 1);
    sender = transports[0]->openSend(linkFrom(a, b)).value();
    receiver = transports[1]->openRecv(linkFrom(b, a)).value();
  }
  void connect() const { connectEnds(*sender, *receiver); }
  void probe() const { probeEnds(*sender, *receiver); }
};

void expectJoined(const ShmPair& pair) {
  pair.connect();
  pair.probe();
  pair.probe();
  const device::SendConn send = sendConn(*pair.sender);
  const device::RecvConn recv = recvConn(*pair.receiver);
  expectUntouched(*pair.devices[0], send);
  expectUntouched(*pair.devices[1], recv);
  EXPECT_EQ(send.words, nullptr);
  EXPECT_NE(send.step, recv.step);
  EXPECT_EQ(pair.sender->description(), "SHM/direct");
  const auto slot = reinterpret_cast<CUdeviceptr>(send.slots[2]);
  ASSERT_TRUE(gpu::copyToDevice(*pair.devices[0], slot, std::as_bytes(std::span(&kData, 1))).ok());
  EXPECT_EQ(wordAt(*pair.devices[1], recv.slots[2]), kData);
}

TEST(ShmEndpoint, JoinsTwoDevicesOfOneProcessInOneMapping) {
  const ShmPair pair(0, 1, false);
  expectJoined(pair);
  EXPECT_EQ(sendConn(*pair.sender).tail, recvConn(*pair.receiver).tail);
  EXPECT_EQ(sendConn(*pair.sender).head, recvConn(*pair.receiver).head);
}

TEST(ShmEndpoint, JoinsWhatItFetchesWithAMappingOfItsOwn) {
  const ShmPair pair(0, 1, true);
  expectJoined(pair);
  EXPECT_NE(sendConn(*pair.sender).tail, recvConn(*pair.receiver).tail);
  EXPECT_NE(sendConn(*pair.sender).head, recvConn(*pair.receiver).head);
}

TEST(ShmEndpoint, ReceiverReadsTheSendersMemoryInPlace) {
  const ShmPair pair(0, 1, false);
  pair.connect();
  const device::SendConn send = sendConn(*pair.sender);
  expectSameOffers(*pair.devices[1], send, recvConn(*pair.receiver));
  EXPECT_LT(reinterpret_cast<std::uintptr_t>(send.step) - send.pull.window.base, send.pull.window.bytes);
  EXPECT_EQ(send.pull.least, device::kPullLeast);
}

TEST(ShmEndpoint, NothingIsReadInPlaceWhereThatIsDisabled) {
  for (const bool apart : {false, true}) {
    const ShmPair pair(0, 1, apart, kThroughShmSlots);
    expectJoined(pair);
    expectNothingInPlace(*pair.sender, *pair.receiver);
  }
}

TEST(ShmEndpoint, SlotsCarryAllWhereTheSendersMemoryCannotBeMapped) {
  const ScopedLog log("INFO", "SHM");
  const ShmPair pair(0, 1, true, {});
  restoreLastError("something else");
  expectJoined(pair);
  EXPECT_EQ(std::string(lastErrorText()), "something else") << "nothing has failed";
  EXPECT_NE(capturedText().find("the sender's memory cannot be mapped (CUDA_ERROR_"), std::string::npos)
      << capturedText();
  EXPECT_EQ(sendConn(*pair.sender).pull.addresses, nullptr);
  EXPECT_EQ(recvConn(*pair.receiver).pull.addresses, nullptr);
}

TEST(ShmEndpoint, SenderIsReadyWhenItKnowsWhetherItsMemoryIsRead) {
  const ShmPair pair(0, 1, false);
  ASSERT_TRUE(pair.sender->connect(pair.receiver->handle()).ok());
  EXPECT_FALSE(pair.sender->ready().value());
  ASSERT_TRUE(pair.receiver->connect(pair.sender->handle()).ok());
  EXPECT_TRUE(pair.sender->ready().value());
}

TEST(ShmEndpoint, MemoryOutlivesTheEndThatMadeIt) {
  for (const bool apart : {false, true}) {
    ShmPair pair(0, 1, apart);
    pair.connect();
    pair.receiver.reset();  // as after a failure: not settled
    EXPECT_TRUE(pair.sender->probeWrite().ok());
  }
}

TEST(ShmEndpoint, MemoryOutlivesTheDeviceObjectThroughItsOwner) {
  ShmPair pair(0, 1, false);
  pair.connect();
  const std::weak_ptr<gpu::Device> watch = pair.devices[1];
  pair.receiver.reset();
  pair.transports[1].reset();
  pair.devices[1].reset();
  EXPECT_FALSE(watch.expired());
  pair.sender.reset();
  EXPECT_TRUE(watch.expired());
}

std::size_t shmMappingsOfProcess() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("memfd:tutti-shm") != std::string::npos ? 1 : 0;
  return count;
}

/// Whether a condition comes true soon: a thread may still be on its way out.
template <class Condition>
bool soon(Condition&& condition) {
  const Deadline deadline = Deadline::in(std::chrono::seconds(20));
  while (!deadline.expired()) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

TEST(ShmEndpoint, ThousandConnectionsLeaveNothingBehind) {
  ShmPair pair(0, 1, true);
  pair.connect();
  pair.sender.reset();
  pair.receiver.reset();
  EXPECT_EQ(shmMappingsOfProcess(), 0U);
  const std::size_t before = openDescriptors();
  for (int i = 0; i < 1000; ++i) {
    pair.open(i % 2 == 0);
    if (i % 4 < 2) pair.connect();  // the others end before anything was fetched
    if (testing::Test::HasFatalFailure()) return;
    pair.sender.reset();
    pair.receiver.reset();
  }
  EXPECT_EQ(shmMappingsOfProcess(), 0U);
  EXPECT_TRUE(soon([&] { return openDescriptors() <= before; })) << openDescriptors() << " of " << before;
}

TEST(ShmEndpoint, DescriptorsAreNotKeptOpenOnceConnected) {
  const ShmPair idle(0, 1, true);
  idle.connect();
  EXPECT_TRUE(soon([] {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      if (std::filesystem::read_symlink(entry.path(), gone).string().find("tutti-shm") != std::string::npos)
        return false;
    }
    return true;
  }));
}

/// A rank of this process as its peers in other processes see it.
topo::PeerInfo rankOfProcess(const gpu::Device& device, int rank) {
  topo::PeerInfo self = peerOn(device, rank);
  self.networkNamespace = networkNamespace();
  return self;
}

/// The receiver reads what it was only told the address of.
void expectReadInPlace(bool sends, const gpu::Device& device, const transport::Endpoint& endpoint, const Line& line) {
  auto buffer = gpu::DeviceBuffer::create(device, sizeof(kData), "what is read in place");
  ASSERT_TRUE(buffer.ok());
  ASSERT_TRUE(gpu::copyToDevice(device, buffer.value().address(), std::as_bytes(std::span(&kData, 1))).ok());
  line.send(std::uint64_t{buffer.value().address()});
  const auto theirs = line.recv<std::uint64_t>();
  if (sends) {
    const device::SendPull pull = sendConn(endpoint).pull;
    ASSERT_NE(pull.addresses, nullptr);
    EXPECT_LT(buffer.value().address() - pull.window.base, pull.window.bytes);
  } else {
    const device::RecvPull pull = recvConn(endpoint).pull;
    ASSERT_NE(pull.addresses, nullptr);
    std::uint64_t read = 0;
    std::memcpy(&read, reinterpret_cast<const void*>(theirs + static_cast<std::uint64_t>(pull.shift)), sizeof(read));
    EXPECT_EQ(read, kData);
  }
  line.send('r');
  line.recv<char>();
}

/// The life of one side; the same in both processes but for the direction.
void liveThroughShm(bool sends, int rank, int ordinal, const Line& line) {
  const auto device = openDevice(ordinal);
  ASSERT_NE(device, nullptr);
  const topo::PeerInfo self = rankOfProcess(*device, rank);
  line.send(self);
  const auto peer = line.recv<topo::PeerInfo>();
  shm::ShmTransport transport(*device, {});
  ASSERT_EQ(transport.whyNot(self, peer), "");
  auto opened = sends ? transport.openSend(linkFrom(self, peer)) : transport.openRecv(linkFrom(self, peer));
  ASSERT_TRUE(opened.ok());
  expectProvesItself(sends, *device, *opened.value(), line);
  expectReadInPlace(sends, *device, *opened.value(), line);
  line.send('e');
  line.recv<char>();
}

TEST(ShmChild, DISABLED_Receives) {
  const Line line = lineToParent();
  liveThroughShm(false, 1, 1, line);
}

/// Offers its end and waits to be killed.
TEST(ShmChild, DISABLED_DiesBeforeItIsAsked) {
  const Line line = lineToParent();
  const auto device = openDevice(1);
  ASSERT_NE(device, nullptr);
  const topo::PeerInfo self = rankOfProcess(*device, 1);
  line.send(self);
  const auto peer = line.recv<topo::PeerInfo>();
  shm::ShmTransport transport(*device, {});
  const auto end = transport.openRecv(linkFrom(self, peer));
  ASSERT_TRUE(end.ok());
  line.send(end.value()->handle());
  line.recv<char>();
}

TEST(ShmEndpoint, JoinsTwoProcesses) {
  const Child child("ShmChild.DISABLED_Receives");
  liveThroughShm(true, 0, 0, child.line());
  EXPECT_EQ(child.wait(), 0) << "the receiving process failed; see its output";
}

TEST(ShmEndpoint, JoinsTwoProcessesThatSeeOtherDevices) {
  const Child child("ShmChild.DISABLED_Receives", {"CUDA_VISIBLE_DEVICES=3,2"});
  liveThroughShm(true, 0, 0, child.line());
  EXPECT_EQ(child.wait(), 0) << "the receiving process failed; see its output";
}

/// A sender whose receiver, in another process, has offered its memory and does nothing more.
struct SenderToAnotherProcess {
  explicit SenderToAnotherProcess(const shm::ShmOptions& options = {}) : transport(*device, options) {
    const topo::PeerInfo self = rankOfProcess(*device, 0);
    const auto peer = child.line().recv<topo::PeerInfo>();
    child.line().send(self);
    end = transport.openSend(linkFrom(self, peer)).value();
    handle = child.line().recv<transport::ConnectHandle>();
  }
  std::unique_ptr<gpu::Device> device = openDevice(0);
  Child child{"ShmChild.DISABLED_DiesBeforeItIsAsked"};
  shm::ShmTransport transport;
  std::unique_ptr<transport::Endpoint> end;
  transport::ConnectHandle handle;
};

TEST(ShmEndpoint, PeerThatDiesBeforeItHandsItsMemoryOutIsNamed) {
  const SenderToAnotherProcess sender;
  ::kill(sender.child.pid(), SIGKILL);
  EXPECT_NE(sender.child.wait(), 0);
  ASSERT_TRUE(sender.end->connect(sender.handle).ok());
  expectLog("the peer's memory could not be fetched: nobody offers it any more");
  EXPECT_FALSE(becomesReady(*sender.end));
  EXPECT_NE(capturedText().find("with rank 1 (host node7, device 1)"), std::string::npos);
}

TEST(ShmEndpoint, PeerThatIsStoppedIsNotWaitedForLongerThanAllowed) {
  const SenderToAnotherProcess sender({.patience = milliseconds(50)});
  sender.child.stop();
  ASSERT_TRUE(sender.end->connect(sender.handle).ok());
  expectLog("it did not answer in time");
  const bool ready = becomesReady(*sender.end);
  ::kill(sender.child.pid(), SIGKILL);
  sender.child.wait();
  EXPECT_FALSE(ready);
}

}  // namespace
}  // namespace tutti::test
