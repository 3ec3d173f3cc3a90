#include <cerrno>
#include <random>

#include "transport/net/ib/failover_fixture.h"

namespace tutti::net::ib {
namespace {

using namespace test;

/// Paths that are lost and come back.
class IbRecovery : public IbFailover {
 protected:
  /// Work that carries nothing: the tries.
  static std::size_t tries() {
    const auto work = tuttiFakeVerbs()->work();
    return static_cast<std::size_t>(std::count_if(work.begin(), work.end(), [](const FakeWork& one) {
      return one.opcode == IBV_WR_RDMA_WRITE && one.bytes == 0;
    }));
  }
  void expectBack(IbFlow& flow, const std::string& nic) {
    runUntilBothSaid(flow, "is back");
    const std::size_t before = tuttiFakeVerbs()->work().size();
    flow.finish();
    EXPECT_GT(announced(nic, before), 0u);
  }
};

TEST_F(IbRecovery, TakesBackAPortThatIsUpAgainAtEitherEnd) {
  allowLog("goes on without");
  allowLog("is back");
  for (const char* nic : {"a1", "b1"}) {
    plugAgain();
    fuse(returning());
    IbFlow flow(*pair, {});
    flow.run(50);
    down(nic);
    EXPECT_TRUE(until([&] { return !flow.turn() || logged(std::string("The port ") + nic + ":1 is down"); }));
    flow.run(200);
    EXPECT_EQ(tries(), 0u) << "as long as it is down";
    up(nic);
    if (nic == std::string("b1")) {
      EXPECT_TRUE(until([&] { return !flow.turn() || tries() > 0; }));
      flow.run(500);
    } else {
      runUntilBothSaid(flow, "is back");
    }
    const std::size_t before = tuttiFakeVerbs()->work().size();
    flow.run(100);
    EXPECT_GT(announced("a1", before), 0u) << nic;
    EXPECT_GT(announced("a0", before), 0u);
    EXPECT_EQ(tries(), 1u);
  }
  EXPECT_TRUE(logged("a1:1 to b1:1 is back; goes on over 2 of 2 queue pairs"));
  EXPECT_TRUE(logged("b1:1 to a1:1 is back; goes on over 2 of 2 queue pairs"));
}

TEST_F(IbRecovery, TakesBackAPathThatNobodySpokeOf) {
  allowLog("goes on without");
  allowLog("is back");
  fuse(returning(2, true));
  IbFlow flow(*pair, {});
  flow.run(50);
  tuttiFakeVerbs()->unplugWire("b0");
  runUntilBothSaid(flow, "goes on without");
  EXPECT_TRUE(until([&] { return !flow.turn() || tries() >= 2; })) << "in vain";
  EXPECT_FALSE(logged("is back"));
  tuttiFakeVerbs()->plugWire("b0");
  expectBack(flow, "a0");
}

TEST_F(IbRecovery, GivesUpAPathThatSaysItIsUpAndCarriesNothing) {
  allowLog("goes on without");
  expectLog("a1:1 to a rank of a test is given up: it says that it is up, and has carried nothing in 3 tries");
  Params params = returning();
  params.ib.recoveryAttempts = 3;
  fuse(params);
  IbFlow flow(*pair, {});
  flow.run(50);
  tuttiFakeVerbs()->unplugWire("a1");
  EXPECT_TRUE(until([&] { return !flow.turn() || logged("is given up"); }));
  tuttiFakeVerbs()->plugWire("a1");
  flow.run(200);
  EXPECT_EQ(tries(), 3u);
}

TEST_F(IbRecovery, GivesUpATryThatIsNotAcknowledgedInTime) {
  allowLog("goes on without");
  allowLog("is given up");
  Params params = returning();
  params.ib.recoveryAliveTimeoutMs = 20;
  params.ib.recoveryAttempts = 1;
  fuse(params);
  IbFlow flow(*pair, {});
  flow.run(50);
  down("a1");
  runUntilBothSaid(flow, "goes on without");
  tuttiFakeVerbs()->hold(true);
  up("a1");
  EXPECT_TRUE(until([&] { return !flow.turn() || logged("is given up"); }));
  tuttiFakeVerbs()->hold(false);
  flow.run(200);
}

TEST_F(IbRecovery, IsLeftOutWhereEitherEndIsTold) {
  allowLog("goes on without");
  for (const auto& [sending, receiving] : {std::pair{with(), returning()}, {returning(), with()}}) {
    plugAgain();
    fuse(sending, receiving);
    IbFlow flow(*pair, {});
    down("a1");
    flow.run(100);
    up("a1");
    const Deadline while_ = Deadline::in(50ms);
    while (!while_.expired()) EXPECT_TRUE(flow.turn());
    EXPECT_EQ(tries(), 0u);
  }
}

TEST_F(IbRecovery, DoesNotTakeBackANicThatHasFailed) {
  allowLog("goes on without");
  allowLog("Got async fatal event");
  fuse(returning());
  IbFlow flow(*pair, {});
  tuttiFakeVerbs()->portEvent("b1", IBV_EVENT_DEVICE_FATAL, 0);
  runUntilBothSaid(flow, "goes on without");
  const Deadline while_ = Deadline::in(50ms);
  while (!while_.expired()) EXPECT_TRUE(flow.turn());
  EXPECT_EQ(tries(), 0u);
}

TEST_F(IbRecovery, BearsATryThatCannotBeMade) {
  allowLog("goes on without");
  allowLog("is back");
  for (const char* call : {"ibv_create_qp", "ibv_create_cq", "ibv_query_port", "ibv_modify_qp"}) {
    for (const int nth : {1, 2}) {
      SCOPED_TRACE(call);
      plugAgain();
      fuse(returning());
      IbFlow flow(*pair, {});
      down("a1");
      flow.run(100);
      // Of either end.
      tuttiFakeVerbs()->failCall(call, nth, EIO);
      up("a1");
      EXPECT_TRUE(until([&] { return !flow.turn() || announced("a1", 0) > 200; }));
      EXPECT_TRUE(flow.failure().ok());
    }
  }
}

TEST_F(IbRecovery, MovesToThePortThatIsBackWhenTheOtherFails) {
  allowLog("goes on without");
  allowLog("is back");
  fuse(returning());
  IbFlow flow(*pair, {});
  for (int turn = 0; turn < 6; ++turn) {
    const std::string nic = (turn % 4 < 2 ? "a" : "b") + std::to_string(turn % 2);
    const std::string other = "a" + std::to_string(1 - turn % 2);
    down(nic);
    std::size_t before = tuttiFakeVerbs()->work().size();
    EXPECT_TRUE(until([&] { return !flow.turn() || announced(other, before) > 50; }));
    up(nic);
    before = tuttiFakeVerbs()->work().size();
    EXPECT_TRUE(until([&] { return !flow.turn() || announced("a" + std::to_string(turn % 2), before) > 50; })) << turn;
  }
  EXPECT_TRUE(flow.failure().ok());
}

TEST_F(IbRecovery, UsesAPortThatIsBackUntriedWhereTheLastOneFails) {
  allowLog("goes on without");
  allowLog("is back");
  Params params = returning();
  params.ib.recoveryStartDelayMs = 3600000;
  for (const char* host : {"a", "b"}) {
    const std::string first = host + std::string("1"), second = host + std::string("0");
    plugAgain();
    fuse(params);
    IbFlow flow(*pair, {});
    down(first);
    EXPECT_TRUE(until([&] { return !flow.turn() || logged("The port " + first + ":1 is down"); }));
    up(first);
    EXPECT_TRUE(until([&] { return logged(first + ":1 Got non-fatal async event: port active"); }));
    flow.run(50);
    down(second);
    EXPECT_TRUE(until([&] { return !flow.turn() || logged("The port " + second + ":1 is down"); }));
    const std::size_t before = tuttiFakeVerbs()->work().size();
    flow.finish();
    EXPECT_GT(announced("a1", before), 0u);
    EXPECT_EQ(announced("a0", before), 0u);
    EXPECT_EQ(tries(), 0u);
  }
}

/// While its peer sleeps an end has told what it does without, and waits for the answer.
TEST_F(IbRecovery, KeepsAPortThatIsBackWhenTheOtherFailsDuringAnAgreement) {
  allowLog("goes on without");
  allowLog("is back");
  fuse(returning());
  IbFlow flow(*pair, {});
  flow.run(40);
  const auto sendUntil = [&](std::string_view part) {
    EXPECT_TRUE(until([&] { return !flow.turnSend() || logged(part); })) << part;
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(flow.turnSend());
  };
  down("a1");
  sendUntil("a1:1 Got non-fatal async event: port error");
  up("a1");
  sendUntil("a1:1 Got non-fatal async event: port active");
  down("a0");
  sendUntil("a0:1 Got non-fatal async event: port error");
  const std::size_t before = tuttiFakeVerbs()->work().size();
  EXPECT_TRUE(until([&] { return !flow.turn() || announced("a1", before) > 50; }));
  flow.finish();
}

TEST_F(IbRecovery, BearsPortsThatComeAndGoAtAnyTime) {
  allowLog("goes on without");
  allowLog("is back");
  allowLog("is given up");
  for (unsigned seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    plugAgain();
    std::minstd_rand draw(seed);
    fuse(returning(1 + static_cast<int>(draw() % 3), draw() % 2 == 0), 4);
    tuttiFakeVerbs()->keepLate();
    IbFlow flow(*pair, {.window = 1 + draw() % 32, .group = 1 + draw() % 4, .bytes = 500});
    tuttiFakeVerbs()->deliverByThread();
    // Path 3 stays, so that one is left.
    for (int change = 0; change < 10; ++change) {
      const std::size_t turns = draw() % 300;
      for (std::size_t i = 0; i < turns; ++i) EXPECT_TRUE(draw() % 2 == 0 ? flow.turnSend() : flow.turnRecv());
      const std::string nic = (draw() % 2 == 0 ? "a" : "b") + std::to_string(draw() % 3);
      switch (draw() % 5) {
        case 0:
          tuttiFakeVerbs()->unplugWire(nic);
          break;
        case 1:
          tuttiFakeVerbs()->plugWire(nic);
          break;
        case 2:
          down(nic);
          break;
        default:
          up(nic);
      }
    }
    flow.finish();
    tuttiFakeVerbs()->hold(false);
  }
}

TEST_F(IbRecovery, BeginsWithoutAPathThatCannotBeConnectedAtEitherEnd) {
  allowLog("goes on without");
  allowLog("is back");
  // Of four changes to a state the receiver makes the first two.
  for (const ibv_qp_state state : {IBV_QPS_RTR, IBV_QPS_RTS}) {
    for (const int refused : {1, 2, 3, 4}) {
      SCOPED_TRACE(std::to_string(state) + " " + std::to_string(refused));
      plugAgain();
      tuttiFakeVerbs()->failChange(state, ENETUNREACH, 1, refused);
      fuse(with());
      IbFlow flow(*pair, {});
      flow.finish();
      EXPECT_EQ(tuttiFakeVerbs()->queuePairs("a0").size() + tuttiFakeVerbs()->queuePairs("a1").size(), 1u);
      EXPECT_EQ(tuttiFakeVerbs()->queuePairs("b0").size() + tuttiFakeVerbs()->queuePairs("b1").size(), 1u);
    }
  }
  EXPECT_TRUE(logged("Network is unreachable"));
  plugAgain();
  tuttiFakeVerbs()->failChange(IBV_QPS_RTR, ENETUNREACH, 1);
  fuse(returning());
  IbFlow flow(*pair, {});
  expectBack(flow, "a0");
}

}  // namespace
}  // namespace tutti::net::ib
