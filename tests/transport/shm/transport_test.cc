#include "transport/shm/transport.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <memory>
#include <string>

#include "support/log_capture.h"
#include "transport/common/ends.h"
#include "transport/common/fake_ranks.h"
#include "transport/shm/endpoint.h"

namespace tutti::test {
namespace {

class ShmReach : public FakeRanks {
 protected:
  std::string whyNot(const topo::PeerInfo& self, const topo::PeerInfo& peer, shm::ShmOptions options = {}) {
    const shm::ShmTransport transport(*devices[0], options);
    const std::string why = transport.whyNot(self, peer);
    EXPECT_EQ(transport.reachable(self, peer).value(), why.empty());
    EXPECT_EQ(transport.reachable(peer, self).value(), why.empty()) << "both ranks must say the same";
    EXPECT_EQ(transport.judge(self, peer).value() == transport::LinkQuality::None, !why.empty());
    return why;
  }
  /// Both ends, as if they were in two processes.
  Result<std::unique_ptr<transport::Endpoint>> sender() {
    return transports[0]->openSend(linkFrom(ranks[0], elsewhere(ranks[1])));
  }
  Result<std::unique_ptr<transport::Endpoint>> receiver() {
    return transports[1]->openRecv(linkFrom(elsewhere(ranks[1]), ranks[0]));
  }
  std::unique_ptr<shm::ShmTransport> transports[2];
};

TEST_F(ShmReach, RanksOfOneHostAreReachable) {
  EXPECT_EQ(whyNot(ranks[0], ranks[1]), "");
  EXPECT_EQ(whyNot(ranks[0], elsewhere(ranks[1])), "");
}

TEST_F(ShmReach, OtherHostsAreNot) {
  ranks[1].hostHash += 1;
  EXPECT_EQ(whyNot(ranks[0], ranks[1]), "the ranks are on different hosts");
}

TEST_F(ShmReach, SoftwareAndRealGpusAreNot) {
  ranks[1].softGpu = 1;
  EXPECT_NE(whyNot(ranks[0], ranks[1]).find("software GPU"), std::string::npos);
}

TEST_F(ShmReach, DisabledLeavesNobody) {
  shm::ShmOptions off;
  off.disabled = true;
  EXPECT_EQ(whyNot(ranks[0], ranks[1], off), "disabled by NCCL_SHM_DISABLE");
}

TEST_F(ShmReach, ProcessesOfOtherNetworkNamespacesAreNot) {
  topo::PeerInfo contained = elsewhere(ranks[1]);
  contained.networkNamespace += 1;
  EXPECT_NE(whyNot(ranks[0], contained).find("network namespaces"), std::string::npos);
  ranks[1].networkNamespace += 1;
  EXPECT_EQ(whyNot(ranks[0], ranks[1]), "") << "one process needs no socket";
}

TEST_F(ShmReach, LinesArriveWholeOnTheSoftwareGpuOnly) {
  const shm::ShmTransport transport(*devices[0], {});
  EXPECT_EQ(transport.judge(ranks[0], ranks[1]).value(), transport::LinkQuality::Plain);
  ranks[0].softGpu = ranks[1].softGpu = 1;
  EXPECT_EQ(transport.judge(ranks[0], ranks[1]).value(), transport::LinkQuality::WholeLines);
}

class ShmConnect : public ShmReach {
 protected:
  void SetUp() override {
    FakeRanks::SetUp();
    for (int i = 0; i < 2; ++i) transports[i] = std::make_unique<shm::ShmTransport>(*devices[i], shm::ShmOptions{});
  }
  /// The receiver's handle with one thing wrong.
  template <class Change>
  transport::ConnectHandle changed(Change&& change) {
    return changedHandle<shm::WireHandle>(receiver().value()->handle(), std::forward<Change>(change));
  }
};

TEST_F(ShmConnect, HandleThatIsNotThePeersIsRefused) {
  const auto endpoint = sender();
  expectRefused(
      *endpoint.value(), "SHM",
      {transport::ConnectHandle{}, changed([](shm::WireHandle& wire) { wire.direction = device::Direction::Send; }),
       changed([](shm::WireHandle& wire) { wire.rank = 5; }), changed([](shm::WireHandle& wire) { wire.peerRank = 5; }),
       changed([](shm::WireHandle& wire) { wire.channel = 4; }),
       changed([](shm::WireHandle& wire) { wire.kind = device::ConnKind::Mesh; })});
}

TEST_F(ShmConnect, OtherBufferSizesAreNamedWithTheirSettings) {
  const auto endpoint = sender();
  expectOtherSizesNamed(*endpoint.value(), changed([](shm::WireHandle& wire) { wire.slotBytes[2] *= 2; }));
}

TEST_F(ShmConnect, SelfTestBeforeTheEndOfConnectingIsRefused) {
  const auto endpoint = sender();
  EXPECT_FALSE(endpoint.value()->ready().value());
  expectProbesRefused(*endpoint.value(), "Self-test before the end of connecting on SHM channel 3");
}

TEST_F(ShmConnect, EveryFailureToOpenIsNamedAndLeaksNothing) {
  const std::string before = fake.leaks();
  for (const char* call : {"cuMemAlloc", "cuMemHostRegister", "cuMemHostGetDevicePointer"}) {
    fake.failNth(call, CUDA_ERROR_UNKNOWN);
    expectLog(std::string("in ") + call);
    EXPECT_EQ(sender().status().code(), ncclUnhandledCudaError) << call;
    EXPECT_EQ(fake.leaks(), before) << call;
  }
}

TEST_F(ShmConnect, PageLockingThatFailsNamesBothRanks) {
  fake.failNth("cuMemHostRegister", CUDA_ERROR_OUT_OF_MEMORY);
  expectLog("for SHM channel 3, rank 0 (host node7, device 0) with rank 1 (host node7, device 1) on device 0");
  EXPECT_FALSE(sender().ok());
}

TEST_F(ShmConnect, PeersMemoryThatCannotBePageLockedIsAnErrorAndLeaksNothing) {
  const std::string before = fake.leaks();
  {
    const auto sending = sender();
    const auto receiving = receiver();
    ASSERT_TRUE(sending.value()->connect(receiving.value()->handle()).ok());
    fake.failNth("cuMemHostRegister", CUDA_ERROR_UNKNOWN);
    expectLog("in cuMemHostRegister");
    EXPECT_FALSE(becomesReady(*sending.value()));
  }
  EXPECT_EQ(fake.leaks(), before);
}

TEST_F(ShmConnect, MemoryThatAPeerInTheProcessHasGivenUpIsNotTouched) {
  const auto sending = transports[0]->openSend(linkFrom(ranks[0], ranks[1]));
  const transport::ConnectHandle handle = transports[1]->openRecv(linkFrom(ranks[1], ranks[0])).value()->handle();
  expectLog("The memory of rank 1 (host node7, device 1) is gone, which rank 0 (host node7, device 0) connects to");
  EXPECT_EQ(sending.value()->connect(handle).code(), ncclRemoteError);
}

TEST_F(ShmConnect, PeerThatHasGivenUpIsNamed) {
  const auto sending = sender();
  const transport::ConnectHandle handle = receiver().value()->handle();
  ASSERT_TRUE(sending.value()->connect(handle).ok());
  expectLog(
      "SHM channel 3, rank 0 (host node7, device 0) with rank 1 (host node7, device 1): the peer's memory could not be "
      "fetched");
  EXPECT_FALSE(becomesReady(*sending.value()));
}

TEST_F(ShmConnect, SelfTestThatDoesNotArriveIsFalseAndSaysWhatWasMissing) {
  const auto sending = sender();
  const auto receiving = receiver();
  ASSERT_TRUE(sending.value()->connect(receiving.value()->handle()).ok());
  ASSERT_TRUE(becomesReady(*sending.value()));
  expectLog(
      "SHM self-test of channel 3, rank 0 (host node7, device 0) with rank 1 (host node7, device 1): the LL128 "
      "counter");
  expectLog(
      "SHM self-test of channel 3, rank 0 (host node7, device 0) with rank 1 (host node7, device 1): the Simple "
      "counter");
  EXPECT_FALSE(sending.value()->probeCheck().value());
}

}  // namespace
}  // namespace tutti::test
