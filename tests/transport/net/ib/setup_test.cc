#include <cerrno>
#include <cstring>

#include "support/descriptors.h"
#include "support/log_capture.h"
#include "transport/net/ib/ib_pair.h"
#include "transport/net/ib/wire.h"

namespace tutti::net::ib {
namespace {

using namespace test;

bool logged(std::string_view part) {
  return capturedText().find(part) != std::string::npos;
}

class IbSetup : public IbPairTest {
 protected:
  void open(const Params& params = verbsParams()) {
    a = std::make_unique<IbSide>("a", *sysfs, params);
    b = std::make_unique<IbSide>("b", *sysfs, params);
    auto listening = b->net->listen(0, handle);
    ASSERT_TRUE(listening.ok());
    listener = listening.value();
  }
  void TearDown() override {
    closeAll();
    IbPairTest::TearDown();
  }
  void closeAll() {
    if (sender != nullptr) {
      EXPECT_TRUE(a->net->closeSend(std::exchange(sender, nullptr)).ok());
    }
    if (receiver != nullptr) {
      EXPECT_TRUE(b->net->closeRecv(std::exchange(receiver, nullptr)).ok());
    }
    if (listener != nullptr) {
      EXPECT_TRUE(b->net->closeListen(std::exchange(listener, nullptr)).ok());
    }
  }
  Status dial() {
    if (sender != nullptr) return {};
    auto made = a->net->connect(0, handle);
    if (made.ok()) sender = made.value();
    return made.status();
  }
  Status answer() {
    if (receiver != nullptr) return {};
    auto made = b->net->accept(listener);
    if (made.ok()) receiver = made.value();
    return made.status();
  }
  /// Both go on until one has failed or both stand.
  std::pair<Status, Status> both() {
    std::pair<Status, Status> ended;
    EXPECT_TRUE(until([&] {
      if (ended.first.ok()) ended.first = dial();
      if (ended.second.ok()) ended.second = answer();
      if (!ended.second.ok() && listener != nullptr) {
        EXPECT_TRUE(b->net->closeListen(std::exchange(listener, nullptr)).ok());
      }
      const bool stands = sender != nullptr && receiver != nullptr;
      return stands || (!ended.first.ok() && !ended.second.ok());
    }));
    return ended;
  }
  plugin::NetHandle handle{};
  void* listener = nullptr;
  void* sender = nullptr;
  void* receiver = nullptr;
};

TEST_F(IbSetup, LeavesNothingAfterAHundredConnections) {
  connect();
  const FakeCounts before = tuttiFakeVerbs()->counts();
  const std::size_t descriptors = openDescriptors();
  for (int i = 0; i < 100; ++i) {
    IbPair another(*a->net, 0, *b->net, 0);
    IbBuffer to(*b->net, another.receiver, 10);
    if (i % 2 == 0) another.recv(to.place(10));
    if (i % 3 == 0) another.closeSend();
  }
  EXPECT_EQ(tuttiFakeVerbs()->counts(), before);
  EXPECT_EQ(openDescriptors(), descriptors);
}

TEST_F(IbSetup, MakesSoManyQueuePairsAsTheDeviceWithMorePortsHas) {
  Params params = verbsParams();
  params.ib.queuePairs = 3;
  connect(params, params, true, false);
  EXPECT_EQ(tuttiFakeVerbs()->queuePairs("a0").size(), 3u);
  EXPECT_EQ(tuttiFakeVerbs()->queuePairs("a1").size(), 3u);
  EXPECT_EQ(tuttiFakeVerbs()->queuePairs("b0").size(), 6u);
  EXPECT_EQ(tuttiFakeVerbs()->queuePairs("b1").size(), 0u);
}

TEST_F(IbSetup, ChoosesTheSmallerMtuForThisConnectionOnly) {
  auto nics = fourNics();
  nics[2].ports[0].mtu = IBV_MTU_1024;
  plug(nics);
  connect();
  EXPECT_EQ(tuttiFakeVerbs()->readyToReceive("a0").at(0).path_mtu, IBV_MTU_1024);
  EXPECT_EQ(tuttiFakeVerbs()->readyToReceive("b0").at(0).path_mtu, IBV_MTU_1024);
  IbPair another(*b->net, 1, *a->net, 0);
  EXPECT_EQ(tuttiFakeVerbs()->readyToReceive("b1").at(0).path_mtu, IBV_MTU_4096);
}

TEST_F(IbSetup, AsksForTheGidsAnew) {
  connect();
  FakePort moved = roceNic("b0", 3).ports[0];
  moved.gids = {{"::ffff:10.0.7.7", 2}};
  std::filesystem::remove_all(sysfs->folder() + "/b0/ports/1/gid_attrs/types/0");
  std::ofstream(sysfs->folder() + "/b0/ports/1/gid_attrs/types/0") << "RoCE v2\n";
  tuttiFakeVerbs()->change("b0", 1, moved);
  IbPair another(*a->net, 1, *b->net, 0);
  EXPECT_EQ(tuttiFakeVerbs()->readyToReceive("a1").at(0).ah_attr.grh.dgid.raw[14], 7);
}

TEST_F(IbSetup, DoubtsAGidThatIsLinkLocal) {
  allowLog("link-local");
  auto nics = fourNics();
  nics[0].ports[0].gids.resize(2);
  plug(nics);
  connect();
  exchange(100, 1);
  EXPECT_TRUE(logged("a0:1 uses GID 1 fe80::1"));
}

TEST_F(IbSetup, GivesServiceLevelAndTrafficClass) {
  Params params = verbsParams();
  params.ib.serviceLevel = 3;
  params.ib.trafficClass = 106;
  params.ib.fifoTrafficClass = 184;
  connect(params);
  const ibv_ah_attr sends = tuttiFakeVerbs()->readyToReceive("a0").at(0).ah_attr;
  const ibv_ah_attr grants = tuttiFakeVerbs()->readyToReceive("b0").at(0).ah_attr;
  EXPECT_EQ(sends.sl, 3);
  EXPECT_EQ(sends.grh.traffic_class, 106);
  EXPECT_EQ(grants.sl, 3);
  EXPECT_EQ(grants.grh.traffic_class, 184);
}

TEST_F(IbSetup, ReceiversFollowTheSendersServiceLevelAndTrafficClass) {
  Params params = verbsParams();
  params.ib.serviceLevel = 5;
  params.ib.trafficClass = 106;
  connect(params, verbsParams());
  const ibv_ah_attr grants = tuttiFakeVerbs()->readyToReceive("b0").at(0).ah_attr;
  EXPECT_EQ(grants.sl, 5);
  EXPECT_EQ(grants.grh.traffic_class, 106);
}

TEST_F(IbSetup, TriesAgainAfterTimeoutsWithoutWaiting) {
  Params params = verbsParams();
  params.ib.modifyRetrySleepMs = 20;
  open(params);
  tuttiFakeVerbs()->failChange(IBV_QPS_RTR, ETIMEDOUT, 3);
  const auto begin = SteadyClock::now();
  double longest = 0;
  EXPECT_TRUE(until([&] {
    const auto turn = SteadyClock::now();
    EXPECT_TRUE(dial().ok());
    EXPECT_TRUE(answer().ok());
    longest = std::max(longest, secondsSince(turn));
    return sender != nullptr && receiver != nullptr;
  }));
  EXPECT_GE(secondsSince(begin), 0.02 + 0.04 + 0.06) << "later from try to try";
  EXPECT_GE(tuttiFakeVerbs()->calls("ibv_modify_qp"), 6 + 3);
}

TEST_F(IbSetup, ConnectsOthersWhileOneWaitsForItsNextTry) {
  Params params = verbsParams();
  params.ib.modifyRetrySleepMs = 3600000;
  open(params);
  tuttiFakeVerbs()->failChange(IBV_QPS_RTR, ETIMEDOUT, 1);
  EXPECT_TRUE(until([&] {
    EXPECT_TRUE(dial().ok());
    EXPECT_TRUE(answer().ok());
    return tuttiFakeVerbs()->calls("ibv_modify_qp") >= 3;
  }));
  IbPair another(*a->net, 0, *b->net, 0);
  EXPECT_EQ(sender, nullptr);
  a->net->abandonConnect(handle);
}

TEST_F(IbSetup, HearsThatThePeerHasGivenUpWhileItWaitsForItsNextTry) {
  expectLog("closed the connection");
  Params params = verbsParams();
  params.ib.modifyRetrySleepMs = 3600000;
  open(params);
  tuttiFakeVerbs()->failChange(IBV_QPS_RTR, ETIMEDOUT, 1);
  EXPECT_TRUE(until([&] {
    EXPECT_TRUE(dial().ok());
    EXPECT_TRUE(answer().ok());
    return tuttiFakeVerbs()->calls("ibv_modify_qp") >= 3;
  }));
  a->net->abandonConnect(handle);
  Status heard;
  EXPECT_TRUE(until([&] { return !(heard = answer()).ok(); }));
  EXPECT_EQ(heard.code(), ncclRemoteError);
}

TEST_F(IbSetup, GivesUpAfterAsManyTimeoutsAsItIsTold) {
  expectLog("Call to ibv_modify_qp failed with 110");
  allowLog("closed the connection");
  Params params = verbsParams();
  params.ib.modifyRetryCount = 2;
  open(params);
  tuttiFakeVerbs()->failChange(IBV_QPS_RTR, ETIMEDOUT, 100);
  EXPECT_TRUE(until([&] { return !dial().ok() || !answer().ok(); }));
  EXPECT_EQ(tuttiFakeVerbs()->calls("ibv_modify_qp"), 2 + 3) << "to INIT on both sides, then three times";
  for (const char* part :
       {"on dev b0:1", "curr state INIT, next state RTR", "from b0:1 (GID 3 ::ffff:10.0.0.3)",
        "to a0:1 (GID 3 ::ffff:10.0.0.1)", "NCCL_CROSS_NIC=0", "between NICs of one host, NCCL_NET_DISABLE_INTRA=1"}) {
    EXPECT_TRUE(logged(part)) << part;
  }
  closeAll();
  a->net->abandonConnect(handle);
}

TEST_F(IbSetup, GivesUpAtOnceAfterOtherErrorsUnlessItIsTold) {
  allowLog("Call to ibv_modify_qp failed with 22");
  open();
  tuttiFakeVerbs()->failChange(IBV_QPS_RTR, EINVAL, 1);
  EXPECT_TRUE(until([&] { return !dial().ok() || !answer().ok(); }));
  EXPECT_TRUE(logged("Leave NCCL_IB_GID_INDEX at -1"));
  closeAll();
  a->net->abandonConnect(handle);
  Params params = verbsParams();
  params.ib.modifyRetryAll = true;
  handle = {};
  open(params);
  tuttiFakeVerbs()->failChange(IBV_QPS_RTR, EINVAL, 3);
  const auto [dialled, answered] = both();
  EXPECT_TRUE(dialled.ok() && answered.ok());
}

/// Whatever fails on the way, on either side, is told with the call, and nothing is left.
TEST_F(IbSetup, TellsEveryCallThatFails) {
  for (const char* call : {"ibv_create_cq", "ibv_create_qp", "ibv_reg_mr", "ibv_query_port"}) {
    for (const int nth : {1, 2, 3}) {
      SCOPED_TRACE(std::string(call) + " " + std::to_string(nth));
      allowLog(std::string("Call to ") + call);
      allowLog("closed the connection");
      handle = {};
      open();
      tuttiFakeVerbs()->failCall(call, nth, ENOMEM);
      const bool stands =
          until([&] { return !dial().ok() || !answer().ok() || (sender != nullptr && receiver != nullptr); });
      EXPECT_TRUE(stands);
      if (nth == 1) {
        EXPECT_EQ(sender, nullptr);
      }
      if (nth == 1) {
        EXPECT_TRUE(logged(std::string("Call to ") + call));
      }
      tuttiFakeVerbs()->failCall(call, 1, 0, 0);
      closeAll();
      a->net->abandonConnect(handle);
      a.reset();
      b.reset();
      EXPECT_EQ(tuttiFakeVerbs()->counts(), FakeCounts());
    }
  }
}

TEST_F(IbSetup, SaysWhichLimitStandsInTheWay) {
  allowLog("ibv_create_cq");
  open();
  tuttiFakeVerbs()->failCall("ibv_create_cq", 1, ENOMEM);
  EXPECT_TRUE(until([&] { return !dial().ok() || !answer().ok(); }));
  EXPECT_TRUE(logged("Call to ibv_create_cq on a0:1 failed with error Cannot allocate memory"));
  EXPECT_TRUE(logged("RLIMIT_MEMLOCK"));
  closeAll();
}

TEST_F(IbSetup, RefusesHandlesOfOtherNetworks) {
  expectLog("is none of this network");
  const IbSide side("a", *sysfs);
  plugin::NetHandle strange{};
  strange.fill(std::byte{3});
  EXPECT_EQ(side.net->connect(0, strange).status().code(), ncclInternalError);
}

TEST_F(IbSetup, RefusesDevicesThatAreNotThere) {
  allowLog("There is no device 9: this host has 2");
  const IbSide side("a", *sysfs);
  EXPECT_EQ(side.net->properties(9).status().code(), ncclInvalidArgument);
  EXPECT_EQ(side.net->listen(9, handle).status().code(), ncclInvalidArgument);
}

TEST_F(IbSetup, RefusesPortsOfAnotherKind) {
  allowLog("device is incompatible with the local");
  allowLog("closed the connection");
  plug({infinibandNic("a0", 1), roceNic("b0", 3)});
  open();
  const auto [dialled, answered] = both();
  EXPECT_EQ(dialled.code(), ncclRemoteError);
  EXPECT_EQ(answered.code(), ncclRemoteError);
  EXPECT_TRUE(logged("Remote InfiniBand device is incompatible with the local b0:1"));
}

TEST_F(IbSetup, BearsAListenerThatGivesUpInAnyStep) {
  for (int steps = 0; steps < 6; ++steps) {
    allowLog("closed the connection");
    allowLog("NET/Socket");
    allowLog("NET/IB");
    handle = {};
    Params params = verbsParams();
    params.sockets.retryCount = 1;
    open(params);
    for (int i = 0; i < steps; ++i) {
      EXPECT_TRUE(dial().ok());
      EXPECT_TRUE(answer().ok());
    }
    if (receiver == nullptr) {
      EXPECT_TRUE(b->net->closeListen(std::exchange(listener, nullptr)).ok());
      EXPECT_TRUE(until([&] { return !dial().ok() || sender != nullptr; }));
    }
    closeAll();
    a->net->abandonConnect(handle);
    a.reset();
    b.reset();
    EXPECT_EQ(tuttiFakeVerbs()->counts(), FakeCounts()) << steps;
  }
}

TEST_F(IbSetup, BearsAConnectorThatGivesUpInAnyStep) {
  for (int steps = 1; steps < 6; ++steps) {
    allowLog("closed the connection");
    handle = {};
    open();
    for (int i = 0; i < steps; ++i) {
      EXPECT_TRUE(dial().ok());
      if (i + 1 < steps) {
        EXPECT_TRUE(answer().ok());
      }
    }
    if (sender == nullptr) a->net->abandonConnect(handle);
    const Deadline deadline = Deadline::in(30ms);
    while (answer().ok() && receiver == nullptr && !deadline.expired()) {
    }
    closeAll();
    a.reset();
    b.reset();
    EXPECT_EQ(tuttiFakeVerbs()->counts(), FakeCounts()) << steps;
  }
}

TEST_F(IbSetup, ConnectsManyAtOnceFromOneThread) {
  a = std::make_unique<IbSide>("a", *sysfs);
  b = std::make_unique<IbSide>("b", *sysfs);
  struct Half {
    plugin::NetHandle handle{};
    void* listener = nullptr;
    void* sender = nullptr;
    void* receiver = nullptr;
  };
  std::vector<Half> all(30);
  for (Half& one : all) one.listener = b->net->listen(0, one.handle).value();
  EXPECT_TRUE(until([&] {
    bool ready = true;
    for (Half& one : all) {
      if (one.sender == nullptr) one.sender = a->net->connect(0, one.handle).value();
      if (one.receiver == nullptr) one.receiver = b->net->accept(one.listener).value();
      ready = ready && one.sender != nullptr && one.receiver != nullptr;
    }
    return ready;
  }));
  for (Half& one : all) {
    EXPECT_TRUE(b->net->closeListen(one.listener).ok());
    EXPECT_TRUE(a->net->closeSend(one.sender).ok());
    EXPECT_TRUE(b->net->closeRecv(one.receiver).ok());
  }
}

TEST_F(IbSetup, KeepsControlMemoryOnPagesOfItsOwnInStrictOrder) {
  connect();
  int seen = 0;
  for (const char* nic : {"a0", "b0"}) {
    for (const FakeRegion& region : tuttiFakeVerbs()->regions(nic)) {
      ++seen;
      EXPECT_EQ(region.address % 4096, 0u);
      EXPECT_EQ(region.bytes % 4096, 0u);
      EXPECT_EQ(region.access & IBV_ACCESS_RELAXED_ORDERING, 0u);
    }
  }
  EXPECT_EQ(seen, 3) << "the ring of grants, the lengths to be written, and the receiver's own";
}

/// Queue pairs name entries by a byte.
TEST_F(IbSetup, ChoosesNoGidThatAQueuePairCannotName) {
  allowLog("a0:1 uses GID");
  auto nics = fourNics();
  std::vector<FakeGid>& gids = nics[0].ports[0].gids;
  gids.resize(2);
  gids.resize(260, {"", 0});
  gids[258] = {"::ffff:10.0.0.1", 2};
  plug(nics);
  connect();
  exchange(100, 1);
  EXPECT_EQ(tuttiFakeVerbs()->readyToReceive("a0").at(0).ah_attr.grh.sgid_index, 1);
}

}  // namespace
}  // namespace tutti::net::ib
