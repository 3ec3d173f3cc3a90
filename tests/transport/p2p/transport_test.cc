#include "transport/p2p/transport.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "support/log_capture.h"
#include "transport/common/conn_views.h"
#include "transport/common/fake_ranks.h"
#include "transport/p2p/layout.h"

namespace tutti::test {
namespace {

class P2pReach : public FakeRanks {
 protected:
  /// The answer of rank `i` about the other one.
  bool reaches(int i, const topo::PeerInfo& self, const topo::PeerInfo& peer, p2p::P2pOptions options = {}) {
    return p2p::P2pTransport(*devices[i], options).reachable(self, peer).value();
  }
  std::string whyNot(const topo::PeerInfo& self, const topo::PeerInfo& peer, p2p::P2pOptions options = {}) {
    return p2p::P2pTransport(*devices[0], options).whyNot(self, peer);
  }
};

TEST_F(P2pReach, DevicesWithAccessAreReachable) {
  EXPECT_TRUE(reaches(0, ranks[0], ranks[1]));
  EXPECT_TRUE(reaches(1, ranks[1], ranks[0]));
  EXPECT_EQ(whyNot(ranks[0], ranks[1]), "");
}

TEST_F(P2pReach, OtherHostsAreNot) {
  ranks[1].hostHash += 1;
  EXPECT_FALSE(reaches(0, ranks[0], ranks[1]));
  EXPECT_FALSE(reaches(1, ranks[1], ranks[0]));
  EXPECT_EQ(whyNot(ranks[0], ranks[1]), "the ranks are on different hosts");
  ranks[1].bootIdUnknown = 1;
  const std::string unknown = whyNot(ranks[0], ranks[1]);
  EXPECT_NE(unknown.find("rank 1 (host "), std::string::npos) << unknown;
  EXPECT_NE(unknown.find("cannot read /proc/sys/kernel/random/boot_id"), std::string::npos) << unknown;
}

TEST_F(P2pReach, SoftwareAndRealGpusAreNot) {
  ranks[1].softGpu = 1;
  EXPECT_FALSE(reaches(0, ranks[0], ranks[1]));
  EXPECT_NE(whyNot(ranks[0], ranks[1]).find("software GPU"), std::string::npos);
}

TEST_F(P2pReach, DisabledLeavesOnlyRanksOfOneDevice) {
  EXPECT_FALSE(reaches(0, ranks[0], ranks[1], {true}));
  EXPECT_NE(whyNot(ranks[0], ranks[1], {true}).find("NCCL_P2P_DISABLE"), std::string::npos);
  EXPECT_TRUE(reaches(0, ranks[0], peerOn(*devices[0], 1), {true}));
}

TEST_F(P2pReach, DevicesOfOneProcessWithoutAccessAreNot) {
  fake.peerAccess = false;
  EXPECT_FALSE(reaches(0, ranks[0], ranks[1]));
  EXPECT_FALSE(reaches(1, ranks[1], ranks[0]));
  EXPECT_NE(whyNot(ranks[0], ranks[1]).find("cannot access each other's memory"), std::string::npos);
}

TEST_F(P2pReach, AnswerDoesNotDependOnWhatAProcessSees) {
  // Rank 0 sees both devices, rank 1 only its own (CUDA_VISIBLE_DEVICES): both must say the same.
  topo::PeerInfo hidden = elsewhere(ranks[1]);
  const bool ofTheOneThatSeesBoth = reaches(0, ranks[0], hidden);
  hidden.deviceUuid.fill(9);
  const bool ofTheOneThatDoesNot = reaches(1, hidden, ranks[0]);
  EXPECT_EQ(ofTheOneThatSeesBoth, ofTheOneThatDoesNot);
  fake.peerAccess = false;
  EXPECT_EQ(reaches(0, ranks[0], elsewhere(ranks[1])), reaches(1, hidden, ranks[0]));
}

TEST_F(P2pReach, OpeningSaysThatDevicesOfTwoProcessesHaveNoAccess) {
  fake.peerAccess = false;
  p2p::P2pTransport transport(*devices[0], {});
  for (const bool sends : {true, false}) {
    expectLog(
        "P2P connection of rank 0 (host node7, device 0) with rank 1 (host node7, device 1) cannot be opened: CUDA "
        "devices "
        "0 and 1 cannot access each other's memory");
    const transport::LinkSpec link = linkFrom(ranks[0], elsewhere(ranks[1]));
    EXPECT_EQ((sends ? transport.openSend(link) : transport.openRecv(link)).status().code(), ncclSystemError);
  }
}

TEST_F(P2pReach, ManyPairsCostOneLookAtTheDevices) {
  const p2p::P2pTransport transport(*devices[0], {});
  const int before = fake.calls("cuDeviceGetUuid");
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(transport.reachable(ranks[0], ranks[1]).value());
    EXPECT_TRUE(transport.judge(ranks[0], ranks[1]).ok());
  }
  EXPECT_EQ(fake.calls("cuDeviceGetUuid"), before) << "the transport knows them";
}

TEST_F(P2pReach, DriverThatDoesNotTellTheDevicesIsAnError) {
  fake.failNth("cuDeviceGetUuid", CUDA_ERROR_UNKNOWN);
  expectLog("in cuDeviceGetUuid");
  EXPECT_EQ(p2p::P2pTransport(*devices[0], {}).reachable(ranks[0], ranks[1]).status().code(), ncclUnhandledCudaError);
}

TEST_F(P2pReach, DriverErrorsArePassedOn) {
  fake.failNth("cuDeviceCanAccessPeer", CUDA_ERROR_UNKNOWN);
  expectLog("in cuDeviceCanAccessPeer");
  EXPECT_EQ(p2p::P2pTransport(*devices[0], {}).reachable(ranks[0], ranks[1]).status().code(), ncclUnhandledCudaError);
}

/// Both ends of a connection between the two fake ranks.
class P2pConnect : public P2pReach {
 protected:
  Result<std::unique_ptr<transport::Endpoint>> sender() {
    return p2p::P2pTransport(*devices[0], {}).openSend(linkFrom(ranks[0], ranks[1]));
  }
  /// Of a receiver that lives on in `receivers`.
  transport::ConnectHandle receiverHandle() {
    receivers.push_back(p2p::P2pTransport(*devices[1], {}).openRecv(linkFrom(ranks[1], ranks[0])).value());
    return receivers.back()->handle();
  }
  /// The receiver's handle with one thing wrong.
  template <class Change>
  transport::ConnectHandle changed(Change&& change) {
    return changedHandle<p2p::WireHandle>(receiverHandle(), std::forward<Change>(change));
  }

  std::vector<std::unique_ptr<transport::Endpoint>> receivers;
};

TEST_F(P2pConnect, HandleThatIsNotThePeersIsRefused) {
  const auto endpoint = sender();
  expectRefused(
      *endpoint.value(), "P2P",
      {transport::ConnectHandle{}, changed([](p2p::WireHandle& wire) { wire.direction = device::Direction::Send; }),
       changed([](p2p::WireHandle& wire) { wire.rank = 5; }), changed([](p2p::WireHandle& wire) { wire.peerRank = 5; }),
       changed([](p2p::WireHandle& wire) { wire.channel = 4; })});
}

TEST_F(P2pConnect, OtherBufferSizesAreNamedWithTheirSettings) {
  const auto endpoint = sender();
  expectOtherSizesNamed(*endpoint.value(), changed([](p2p::WireHandle& wire) { wire.slotBytes[2] *= 2; }));
}

TEST_F(P2pConnect, ProbeBeforeConnectIsRefused) {
  const auto endpoint = sender();
  expectProbesRefused(*endpoint.value(), "probe before the end of connecting on P2P channel 3");
}

TEST_F(P2pConnect, AccessThatIsEnabledAlreadyIsFine) {
  const auto endpoint = sender();
  fake.failNth("cuCtxEnablePeerAccess", CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  EXPECT_TRUE(endpoint.value()->connect(receiverHandle()).ok());
}

TEST_F(P2pConnect, MemoryThatThePeerHasGivenUpIsNotTouched) {
  const auto endpoint = sender();
  const transport::ConnectHandle handle = receiverHandle();
  receivers.clear();
  expectLog("The memory of rank 1 (host node7, device 1) is gone, which rank 0 (host node7, device 0) connects to");
  EXPECT_EQ(endpoint.value()->connect(handle).code(), ncclRemoteError);
}

TEST_F(P2pConnect, EveryFailureIsNamedAndLeaksNothing) {
  const std::string before = fake.leaks();
  for (const char* call : {"cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxEnablePeerAccess"}) {
    const auto endpoint = sender();
    const transport::ConnectHandle handle = receiverHandle();
    fake.failNth(call, CUDA_ERROR_UNKNOWN);
    expectLog(std::string("in ") + call);
    EXPECT_EQ(endpoint.value()->connect(handle).code(), ncclUnhandledCudaError) << call;
  }
  receivers.clear();
  EXPECT_EQ(fake.leaks(), before);
}

TEST_F(P2pConnect, HandleOfAnotherProcessThatCannotBeOpenedNamesBothRanks) {
  p2p::P2pTransport transport(*devices[0], {});
  const auto endpoint = transport.openSend(linkFrom(ranks[0], elsewhere(ranks[1])));
  ASSERT_TRUE(endpoint.ok());
  fake.failNth("cuIpcOpenMemHandle", CUDA_ERROR_MAP_FAILED);
  expectLog("in cuIpcOpenMemHandle for memory of rank 1 (host node7, device 1) at rank 0 (host node7, device 0)");
  p2p::P2pTransport receiving(*devices[1], {});
  const auto receiver = receiving.openRecv(linkFrom(ranks[1], elsewhere(ranks[0])));
  EXPECT_EQ(endpoint.value()->connect(receiver.value()->handle()).code(), ncclUnhandledCudaError);
}

int someWindow(int, void** base, std::size_t* bytes, CUipcMemHandle*) {
  *base = reinterpret_cast<void*>(std::uintptr_t{1} << 40);
  *bytes = std::size_t{1} << 30;
  return CUDA_SUCCESS;
}

int noWindow(int, void**, std::size_t*, CUipcMemHandle*) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

int failingWindow(int, void**, std::size_t*, CUipcMemHandle*) {
  return CUDA_ERROR_UNKNOWN;
}

/// A receiver on device 0 whose sender seems to be another process.
class P2pWindow : public P2pConnect {
 protected:
  /// What connecting the two gave.
  Status connect() {
    receiving = p2p::P2pTransport(*devices[0], {}).openRecv(linkFrom(ranks[0], elsewhere(ranks[1]))).value();
    sending = p2p::P2pTransport(*devices[1], {}).openSend(linkFrom(ranks[1], elsewhere(ranks[0]))).value();
    return receiving->connect(sending->handle());
  }
  std::unique_ptr<transport::Endpoint> receiving;
  std::unique_ptr<transport::Endpoint> sending;
};

TEST_F(P2pWindow, OfAnotherProcessIsMappedByTheReceiver) {
  const std::string before = fake.leaks();
  fake.driver().softgpuMemoryWindow = someWindow;
  ASSERT_TRUE(connect().ok());
  EXPECT_EQ(fake.calls("cuIpcOpenMemHandle"), 2);
  EXPECT_NE(recvConn(*receiving).pull.addresses, nullptr);
  EXPECT_NE(recvConn(*receiving).pull.shift, 0);
  receiving.reset();
  sending.reset();
  EXPECT_EQ(fake.leaks(), before);
}

TEST_F(P2pWindow, ThatCannotBeMappedNamesBothRanks) {
  fake.driver().softgpuMemoryWindow = someWindow;
  fake.failNth("cuIpcOpenMemHandle", CUDA_ERROR_MAP_FAILED, 2);
  expectLog("in cuIpcOpenMemHandle for memory of rank 1 (host node7, device 1) at rank 0 (host node7, device 0)");
  EXPECT_EQ(connect().code(), ncclUnhandledCudaError);
}

TEST_F(P2pWindow, ThatDoesNotExistLeavesTheSlots) {
  for (const auto window : {noWindow, static_cast<decltype(&noWindow)>(nullptr)}) {
    fake.driver().softgpuMemoryWindow = window;
    ASSERT_TRUE(connect().ok());
    EXPECT_EQ(recvConn(*receiving).pull.addresses, nullptr);
    EXPECT_EQ(sendConn(*sending).pull.addresses, nullptr);
  }
}

TEST_F(P2pWindow, FailureIsPassedOn) {
  fake.driver().softgpuMemoryWindow = failingWindow;
  expectLog("in softgpuMemoryWindow");
  EXPECT_EQ(sender().status().code(), ncclUnhandledCudaError);
}

TEST_F(P2pConnect, ProbeWaitsForTheDeviceOnce) {
  const auto endpoint = sender();
  ASSERT_TRUE(endpoint.value()->connect(receiverHandle()).ok());
  const int before = fake.calls("cuStreamQuery");
  ASSERT_TRUE(endpoint.value()->probeWrite().ok());
  EXPECT_EQ(fake.calls("cuStreamQuery"), before + 1);
  expectLog("the LL128 counter");
  expectLog("the Simple counter");
  ASSERT_TRUE(endpoint.value()->probeCheck().ok());
  EXPECT_EQ(fake.calls("cuStreamQuery"), before + 2);
}

TEST_F(P2pConnect, ProbeThatDoesNotArriveIsFalseAndSaysWhatWasMissing) {
  const auto endpoint = sender();
  ASSERT_TRUE(endpoint.value()->connect(receiverHandle()).ok());
  expectLog(
      "P2P self-test of channel 3, rank 0 (host node7, device 0) with rank 1 (host node7, device 1): the LL128 "
      "counter");
  expectLog(
      "P2P self-test of channel 3, rank 0 (host node7, device 0) with rank 1 (host node7, device 1): the Simple "
      "counter");
  const auto arrived = endpoint.value()->probeCheck();
  ASSERT_TRUE(arrived.ok());
  EXPECT_FALSE(arrived.value());
}

}  // namespace
}  // namespace tutti::test
