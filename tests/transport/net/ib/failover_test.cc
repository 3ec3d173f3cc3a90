#include <cerrno>
#include <chrono>
#include <random>
#include <thread>

#include "transport/net/ib/failover_fixture.h"

namespace tutti::net::ib {
namespace {

using namespace test;

TEST_F(IbFailover, MovesMessagesFromAPortThatGoesDownHere) {
  allowLog("goes on without");
  fuse();
  IbFlow flow(*pair, {});
  flow.run(50);
  EXPECT_GT(announced("a1", 0), 0u);
  down("a1");
  runUntilBothSaid(flow, "goes on without");
  EXPECT_TRUE(logged("sending to a rank of a test: goes on without a1:1 to b1:1, over 1 of 2 queue pairs, a0:1"));
  const std::size_t before = tuttiFakeVerbs()->work().size();
  flow.finish();
  EXPECT_EQ(announced("a1", before), 0u);
  EXPECT_GT(announced("a0", before), 0u);
}

TEST_F(IbFailover, MovesThemFromAPortThatGoesDownThere) {
  allowLog("goes on without");
  fuse();
  IbFlow flow(*pair, {});
  flow.run(50);
  down("b0");
  runUntilBothSaid(flow, "goes on without");
  EXPECT_TRUE(logged("goes on without a0:1 to b0:1, over 1 of 2 queue pairs, a1:1 to b1:1"));
  EXPECT_TRUE(logged("goes on without b0:1 to a0:1, over 1 of 2 queue pairs, b1:1 to a1:1"));
  EXPECT_TRUE(logged("The port b0:1 is down"));
  flow.finish();
}

TEST_F(IbFailover, NamesRanksPortsAndReasonAtBothEnds) {
  allowLog("goes on without");
  fuse();
  IbFlow flow(*pair, {});
  down("a1");
  runUntilBothSaid(flow, "goes on without");
  for (const char* part :
       {"a rank of a test, sending to a rank of a test", "a rank of a test, receiving from a rank of a test",
        "Reason: The port a1:1 is down", "Reason: the peer says: The port a1:1 is down"}) {
    EXPECT_TRUE(logged(part)) << part;
  }
  flow.finish();
}

TEST_F(IbFailover, MovesThemFromAPathThatGivesNoAnswer) {
  allowLog("goes on without");
  fuse();
  IbFlow flow(*pair, {});
  flow.run(50);
  tuttiFakeVerbs()->unplugWire("a1");
  runUntilBothSaid(flow, "goes on without");
  EXPECT_TRUE(logged("IBV_WC_RETRY_EXC_ERR(12)"));
  flow.finish();
}

TEST_F(IbFailover, DeliversOnceWhatHadComeWithoutAnAnswer) {
  allowLog("goes on without");
  for (const auto& [queuePairs, splits] : {std::pair{1, false}, {1, true}, {2, true}, {2, false}}) {
    fuse(with(queuePairs, splits));
    IbFlow flow(*pair, {.window = 8});
    flow.run(40);
    tuttiFakeVerbs()->failWork(IBV_WR_RDMA_WRITE_WITH_IMM, 3, IBV_WC_RETRY_EXC_ERR, 0, true);
    flow.finish();
  }
  EXPECT_TRUE(bothSaid("goes on without"));
}

TEST_F(IbFailover, RepeatsGrantsThatWereLost) {
  allowLog("goes on without");
  for (const bool arrives : {false, true}) {
    fuse();
    IbFlow flow(*pair, {.window = 8});
    flow.run(40);
    tuttiFakeVerbs()->failWork(IBV_WR_RDMA_WRITE, 2, IBV_WC_RETRY_EXC_ERR, 0, arrives);
    flow.finish();
  }
  EXPECT_TRUE(bothSaid("goes on without"));
}

TEST_F(IbFailover, CarriesReceivesOfSeveralMessagesOnWhateverQueuePairs) {
  allowLog("goes on without");
  for (const std::size_t group : {std::size_t{1}, std::size_t{3}, std::size_t{8}}) {
    for (const auto& [queuePairs, splits] : {std::pair{1, false}, {1, true}, {2, true}, {2, false}}) {
      SCOPED_TRACE(std::to_string(group) + " " + std::to_string(queuePairs) + (splits ? "s" : ""));
      fuse(with(queuePairs, splits));
      // All at once: more than one queue pair has room for.
      IbFlow flow(*pair, {.window = 64, .group = group, .bytes = 300});
      flow.run(70);
      tuttiFakeVerbs()->hold(true);
      for (int i = 0; i < 10; ++i) EXPECT_TRUE(flow.turn());
      down("b1");
      for (int i = 0; i < 10; ++i) EXPECT_TRUE(flow.turn());
      tuttiFakeVerbs()->hold(false);
      flow.finish();
      up("b1");
    }
  }
}

TEST_F(IbFailover, CarriesThemBetweenDevicesOfDifferentlyManyPorts) {
  allowLog("goes on without");
  for (const auto& [sends, recvs] : {std::pair{2, 1}, {1, 2}, {2, 3}, {4, 2}}) {
    SCOPED_TRACE(std::to_string(sends) + std::to_string(recvs));
    fuse(with(2), with(2), sends, recvs);
    IbFlow flow(*pair, {});
    flow.run(50);
    // A port of the side that has several.
    const std::string nic = sends > 1 ? "a1" : "b1";
    down(nic);
    flow.finish();
    up(nic);
  }
  EXPECT_TRUE(bothSaid("goes on without"));
}

TEST_F(IbFailover, OutlivesOnePortAfterTheOther) {
  allowLog("goes on without");
  fuse(with(), 4);
  IbFlow flow(*pair, {});
  for (const char* nic : {"a2", "b0", "a1"}) {
    flow.run(80);
    down(nic);
    EXPECT_TRUE(until([&] { return !flow.turn() || logged(std::string("The port ") + nic + ":1 is down"); }));
  }
  flow.finish();
  EXPECT_TRUE(logged("over 1 of 4 queue pairs, a3:1 to b3:1"));
}

TEST_F(IbFailover, OutlivesPortsThatFailDuringAnAgreement) {
  allowLog("goes on without");
  // The second port fails after so many more turns of both ends.
  for (int turns = 0; turns < 12; ++turns) {
    for (const char* second : {"a2", "b2"}) {
      SCOPED_TRACE(std::to_string(turns) + second);
      plugAgain();
      fuse(with(), 4);
      IbFlow flow(*pair, {});
      flow.run(40);
      down("a1");
      for (int i = 0; i < turns; ++i) EXPECT_TRUE(i % 2 == 0 ? flow.turnSend() : flow.turnRecv());
      down(second);
      flow.finish();
    }
  }
}

TEST_F(IbFailover, LeavesOutAPortWhoseNewQueuePairDoesNotStand) {
  allowLog("goes on without");
  for (const char* call : {"ibv_create_qp", "ibv_create_cq", "ibv_query_port"}) {
    SCOPED_TRACE(call);
    plugAgain();
    fuse(with(), 4);
    IbFlow flow(*pair, {});
    flow.run(40);
    tuttiFakeVerbs()->failCall(call, 2, EIO);
    down("a1");
    flow.finish();
  }
  for (const ibv_qp_state state : {IBV_QPS_RTR, IBV_QPS_RTS}) {
    plugAgain();
    fuse(with(), 4);
    IbFlow flow(*pair, {});
    flow.run(40);
    tuttiFakeVerbs()->failChange(state, EINVAL, 1);
    down("a1");
    flow.finish();
  }
  EXPECT_TRUE(logged("over 2 of 4 queue pairs"));
}

TEST_F(IbFailover, EndsWhereEachEndHasLostAnotherPort) {
  expectLog("No port is left between a rank of a test and a rank of a test");
  allowLog("No port is left");
  fuse();
  IbFlow flow(*pair, {});
  flow.run(20);
  down("a0");
  down("b1");
  EXPECT_TRUE(until([] { return bothSaid("port error"); }));
  EXPECT_TRUE(until([&] { return !flow.turn(); }));
  EXPECT_EQ(flow.failure().code(), ncclRemoteError);
  EXPECT_TRUE(logged("The port a0:1 is down"));
  EXPECT_TRUE(logged("The port b1:1 is down"));
}

TEST_F(IbFailover, EndsWithinTheTimeOfTheSettingsWhereTheLastPortGoesToo) {
  allowLog("goes on without");
  expectLog("The port a0:1 has been down");
  allowLog("its process or host is gone");
  Params quick = with();
  quick.ib.timeout = 12;
  quick.ib.retryCount = 0;
  fuse(quick);
  IbFlow flow(*pair, {});
  flow.run(20);
  down("a1");
  runUntilBothSaid(flow, "goes on without");
  tuttiFakeVerbs()->hold(true);
  down("a0");
  const auto begin = SteadyClock::now();
  EXPECT_TRUE(until([&] { return !flow.turn(); }));
  EXPECT_EQ(flow.failure().code(), ncclRemoteError);
  EXPECT_GE(secondsSince(begin), 0.05);
}

TEST_F(IbFailover, IsLeftOutWhereEitherEndIsTold) {
  expectLog("IBV_WC_RETRY_EXC_ERR(12)");
  allowLog("IBV_WC_RETRY_EXC_ERR(12)");
  Params off = with();
  off.ib.portFailover = false;
  for (const auto& [sending, receiving] : {std::pair{off, with()}, {with(), off}}) {
    plugAgain();
    fuse(sending, receiving);
    IbFlow flow(*pair, {});
    flow.run(20);
    tuttiFakeVerbs()->unplugWire("a1");
    EXPECT_TRUE(until([&] { return !flow.turn(); }));
    EXPECT_EQ(flow.failure().code(), ncclRemoteError);
  }
  EXPECT_FALSE(logged("goes on without"));
}

TEST_F(IbFailover, EndsWhatThePeerRefusesWhateverPortsThereAre) {
  allowLog("IBV_WC_REM_ACCESS_ERR(10)");
  allowLog("is gone");
  fuse();
  IbFlow flow(*pair, {});
  flow.run(20);
  tuttiFakeVerbs()->failWork(IBV_WR_RDMA_WRITE_WITH_IMM, 1, IBV_WC_REM_ACCESS_ERR);
  EXPECT_TRUE(until([&] { return !flow.turn(); }));
  EXPECT_TRUE(logged("IBV_WC_REM_ACCESS_ERR(10)"));
  EXPECT_FALSE(logged("goes on without"));
}

TEST_F(IbFailover, OutlivesANicThatHasFailedAndRegistersWithTheOthers) {
  allowLog("Got async fatal event");
  allowLog("goes on without");
  fuse();
  IbFlow flow(*pair, {});
  flow.run(40);
  tuttiFakeVerbs()->portEvent("a1", IBV_EVENT_DEVICE_FATAL, 0);
  runUntilBothSaid(flow, "goes on without");
  EXPECT_TRUE(logged("a1:1 has failed (local catastrophic error)"));
  const std::size_t before = tuttiFakeVerbs()->regions("a1").size();
  IbFlow other(*pair, {});
  EXPECT_EQ(tuttiFakeVerbs()->regions("a1").size(), before);
  flow.finish();
}

TEST_F(IbFailover, SendsMemoryThatIsRegisteredBeforeTheFailureOfANicIsLookedAt) {
  allowLog("Got async fatal event");
  allowLog("goes on without");
  fuse(with(1, true));
  IbBuffer to(pair->recvNet, pair->receiver, 4096);
  void* const received = pair->recv(to.place(4096));
  tuttiFakeVerbs()->portEvent("a1", IBV_EVENT_DEVICE_FATAL, 0);
  EXPECT_TRUE(until([] { return logged("Got async fatal event"); }));
  IbBuffer from(pair->sendNet, pair->sender, 4096, 7);
  void* const sent = pair->trySend(from.place(4096));
  ASSERT_NE(sent, nullptr) << "it was granted before";
  bool isSent = false, isReceived = false;
  EXPECT_TRUE(until([&] {
    isSent = isSent || IbPair::done(pair->sendNet, sent);
    isReceived = isReceived || IbPair::done(pair->recvNet, received);
    return isSent && isReceived;
  }));
  EXPECT_TRUE(std::equal(from.data.begin(), from.data.begin() + 4096, to.data.begin()));
}

TEST_F(IbFailover, OutlivesAQueuePairThatItsNicHasGivenUp) {
  allowLog("Got async event on queue pair");
  allowLog("goes on without");
  fuse();
  IbFlow flow(*pair, {});
  flow.run(40);
  EXPECT_EQ(tuttiFakeVerbs()->queuePairEvents("b1", IBV_EVENT_QP_FATAL), 1);
  runUntilBothSaid(flow, "goes on without");
  flow.finish();
}

TEST_F(IbFailover, OutlivesAPortThatTakesNoWork) {
  allowLog("goes on without");
  for (const char* call : {"ibv_post_send", "ibv_post_recv"}) {
    fuse();
    IbFlow flow(*pair, {});
    flow.run(40);
    tuttiFakeVerbs()->failCall(call, 5, EIO);
    flow.finish();
    EXPECT_TRUE(logged(std::string("Call to ") + call + " failed"));
  }
}

TEST_F(IbFailover, EndsWhereAMessageIsMissingThatTheNicHadAcknowledged) {
  expectLog("which the NIC had acknowledged before it failed");
  allowLog("goes on without");
  allowLog("is gone");
  fuse();
  IbFlow flow(*pair, {});
  flow.run(40);
  tuttiFakeVerbs()->loseReceives("b1");
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(flow.turn());
  down("b1");
  EXPECT_TRUE(until([&] { return !flow.turn(); }));
}

TEST_F(IbFailover, GoesOnWithARowThatHasSomeOfItsMessages) {
  allowLog("goes on without");
  fuse();
  IbBuffer& from = outgoing(200, 3);
  IbBuffer& to = incoming(200);
  const std::vector<plugin::NetBuffer> places{{to.data.data(), 100, 1, to.registration},
                                              {to.data.data() + 100, 100, 2, to.registration}};
  void* const received = pair->recv(places);
  void* const first = pair->send({from.data.data(), 100, 1, from.registration});
  down("a0");
  EXPECT_TRUE(until([&] {
    return !IbPair::done(*a->net, first) && !IbPair::done(*b->net, received) && bothSaid("goes on without");
  }));
  void* const second = pair->send({from.data.data() + 100, 100, 2, from.registration});
  pair->finishSend(first);
  pair->finishSend(second);
  EXPECT_EQ(pair->finishRecv(received, 2), (std::vector<int>{100, 100}));
  EXPECT_TRUE(std::equal(from.data.begin(), from.data.end() - 1, to.data.begin()));
}

TEST_F(IbFailover, MakesQueuePairsWithOtherNumbersForPackets) {
  allowLog("goes on without");
  fuse();
  EXPECT_EQ(tuttiFakeVerbs()->readyToReceive("a0").front().rq_psn, 0u);
  IbFlow flow(*pair, {});
  down("a1");
  runUntilBothSaid(flow, "goes on without");
  flow.finish();
  const std::uint32_t here = tuttiFakeVerbs()->readyToReceive("a0").front().rq_psn;
  EXPECT_NE(here, 0u);
  EXPECT_EQ(tuttiFakeVerbs()->readyToReceive("b0").front().rq_psn, here);
  EXPECT_EQ(tuttiFakeVerbs()->queuePairs("a1").size(), 0u);
  EXPECT_EQ(tuttiFakeVerbs()->queuePairs("b1").size(), 0u);
}

TEST_F(IbFailover, GivesTheLastMessagesOfASenderThatLeavesDuringAnAgreement) {
  // The receiver says nothing for so many turns of the sender.
  for (int turns = 0; turns < 4; ++turns) {
    plugAgain();
    fuse();
    void* const received = pair->recv(incoming(100).place(100));
    void* const open = pair->recv(incoming(100).place(100));
    pair->finishSend(pair->send(outgoing(100).place(100)));
    down("a1");
    const plugin::NetBuffer place = outgoing(1).place(1, 77);
    for (int i = 0; i < turns * 100; ++i) EXPECT_EQ(pair->trySend(place), nullptr) << "nobody has asked for it";
    out.clear();
    pair->closeSend();
    EXPECT_EQ(pair->finishRecv(received), std::vector<int>{100});
    for (int i = 0; i < 100; ++i) EXPECT_FALSE(IbPair::done(*b->net, open));
    in.clear();
  }
}

TEST_F(IbFailover, NamesAReceiverThatLeavesOrDiesDuringAnAgreement) {
  allowLog("has closed the connection, in order");
  allowLog("is gone");
  fuse();
  pair->recv(incoming(100).place(100));
  pair->recv(incoming(100).place(100));
  tuttiFakeVerbs()->hold(true);
  void* const sent = pair->send(outgoing(100).place(100));
  down("a0");
  EXPECT_TRUE(until([&] { return !IbPair::done(*a->net, sent) && logged("port error"); }));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(IbPair::done(*a->net, sent)) << "the receiver says nothing";
  in.clear();
  pair->closeRecv();
  Status status;
  EXPECT_TRUE(until([&] { return !(status = a->net->test(sent, {}).status()).ok(); }));
  EXPECT_EQ(status.code(), ncclRemoteError);
}

TEST_F(IbFailover, TakesNothingThatComesLateForNew) {
  allowLog("goes on without");
  for (int turns = 0; turns < 20; ++turns) {
    plugAgain();
    fuse(with(2, true));
    tuttiFakeVerbs()->keepLate();
    IbFlow flow(*pair, {.window = 8});
    flow.run(40);
    tuttiFakeVerbs()->hold(true);
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(flow.turn());
    down("a1");
    EXPECT_TRUE(until([] { return logged("port error"); }));
    // Some of it comes while both agree, the rest when all is new.
    for (int i = 0; i < turns; ++i) {
      EXPECT_TRUE(i % 3 == 0 ? flow.turnRecv() : flow.turnSend());
      tuttiFakeVerbs()->deliverLate();
    }
    tuttiFakeVerbs()->hold(false);
    EXPECT_TRUE(until([&] { return !flow.turn() || !tuttiFakeVerbs()->deliverLate(); }));
    flow.finish();
  }
}

TEST_F(IbFailover, BearsFailuresAtAnyTimeInAnyOrder) {
  allowLog("goes on without");
  allowLog("No port is left");
  allowLog("is gone");
  for (unsigned seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    plugAgain();
    std::minstd_rand draw(seed);
    fuse(with(1 + static_cast<int>(draw() % 3), draw() % 2 == 0), 4);
    tuttiFakeVerbs()->keepLate();
    IbFlow flow(*pair, {.window = 1 + draw() % 32, .group = 1 + draw() % 4, .bytes = 500});
    tuttiFakeVerbs()->deliverByThread();
    // Each time another path, so that one is left.
    for (int path = 0; path < 3; ++path) {
      const std::size_t turns = draw() % 200;
      for (std::size_t i = 0; i < turns; ++i) EXPECT_TRUE(draw() % 2 == 0 ? flow.turnSend() : flow.turnRecv());
      const std::string nic = (draw() % 2 == 0 ? "a" : "b") + std::to_string(path);
      if (draw() % 3 == 0) {
        tuttiFakeVerbs()->unplugWire(nic);
      } else {
        down(nic);
      }
    }
    flow.finish();
    tuttiFakeVerbs()->hold(false);
  }
}

/// Whichever it is of what goes again after a port has failed.
TEST_F(IbFailover, BearsWorkThatIsRefusedWhenItGoesAgain) {
  allowLog("goes on without");
  for (const char* call : {"ibv_post_send", "ibv_post_recv"}) {
    for (int nth = 1; nth <= 32; ++nth) {
      SCOPED_TRACE(std::string(call) + " " + std::to_string(nth));
      plugAgain();
      fuse(with(), 3);
      IbFlow flow(*pair, {});
      flow.run(40);
      for (int i = 0; i < 20; ++i) EXPECT_TRUE(flow.turnRecv());
      tuttiFakeVerbs()->hold(true);
      EXPECT_TRUE(flow.turnSend());
      down("a0");
      // Until it has stopped, with much under way, or a moment less, which is right as well.
      for (int i = 0; i < 50; ++i) {
        EXPECT_TRUE(flow.turnSend());
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
      tuttiFakeVerbs()->hold(false);
      tuttiFakeVerbs()->failCall(call, nth, EIO);
      flow.finish();
    }
  }
}

}  // namespace
}  // namespace tutti::net::ib
