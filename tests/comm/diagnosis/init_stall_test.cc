// Inits that do not go on, and calls of plugins that do not return.
#include "comm/diagnosis/init_stall.h"

#include <gtest/gtest.h>

#include <string>

#include "support/log_capture.h"

namespace tutti::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string describe(int rank) {
  return "rank " + std::to_string(rank) + " (host b)";
}

TEST(InitStall, SaysInWhichCallOrForWhomAThreadWaits) {
  EXPECT_EQ(describeActivity({}, describe), "");
  EXPECT_EQ(describeActivity({.wait = "a barrier", .peer = 2}, describe), "it waits for rank 2 (host b): a barrier");
  EXPECT_EQ(describeActivity({.wait = "the root's word"}, describe), "it waits for the root's word");
  const Activity inside{.wait = "a", .peer = 2, .call = "connect", .callee = "network x", .device = 3, .inCall = true};
  EXPECT_EQ(describeActivity(inside, describe),
            "it is in the call connect of network x, device 3, which does not return");
  const Activity after{.wait = "a", .peer = 2, .call = "accept", .callee = "network x"};
  EXPECT_EQ(describeActivity(after, describe),
            "it waits for rank 2 (host b): a; its last call of a plugin was accept of network x, which has returned");
}

TEST(InitStall, IsToldOnceForEachStage) {
  InitStall stall({.who = "rank 1 of 4", .function = "ncclCommInitRank", .limits = {seconds(2)}, .describe = describe});
  const auto start = SteadyClock::now();
  stall.enter("network");
  stall.tick(start + milliseconds(1000));
  EXPECT_EQ(test::capturedText().find("Stalled init"), std::string::npos);
  test::expectLog("Stalled init: rank 1 of 4: ncclCommInitRank has been in its stage \"network\" for ");
  const CallNote call("init", "network x", -1);
  stall.tick(start + milliseconds(1250));
  stall.tick(start + milliseconds(3500));
  stall.tick(start + milliseconds(60'000));
  EXPECT_NE(test::capturedText().find("it is in the call init of network x, which"), std::string::npos);
  stall.enter("connections");
  test::expectLog("in its stage \"connections\"");
  stall.tick(start + milliseconds(120'000));
  stall.tick(start + milliseconds(180'000));
}

TEST(InitStall, IsToldAgainToEverybodyWhenItHasLastedForLong) {
  InitStall stall({.who = "rank 1 of 4", .function = "f", .limits = {seconds(2), seconds(300)}, .describe = describe});
  stall.enter("network");
  for (int i = 0; i < 2; ++i) test::expectLog("Stalled init: rank 1 of 4: f has been in its stage \"network\" for ");
  const auto start = SteadyClock::now();
  const auto told = [] { return test::countOf(test::capturedText(), "Stalled init: "); };
  for (const int second : {3, 100, 299}) stall.tick(start + seconds(second));
  EXPECT_EQ(told(), 1U);
  for (const int second : {301, 1000, 10'000}) stall.tick(start + seconds(second));
  EXPECT_EQ(told(), 2U);
}

TEST(InitStall, ACallThatHasJustBegunIsNotSaidToHang) {
  InitStall stall({.who = "rank 1 of 4", .function = "f", .limits = {seconds(0)}, .describe = describe});
  const auto start = SteadyClock::now();
  for (int i = 0; i < 10; ++i) {
    const CallNote call("accept", "network x", -1);
    stall.tick(start + seconds(i));
    EXPECT_NE(stall.line(start + seconds(i)).find("accept of network x, which has returned"), std::string::npos);
  }
}

TEST(InitStall, IsNotToldWhereNobodyWantsToHear) {
  InitStall stall({.who = "rank 1 of 4", .function = "f", .limits = {seconds(0)}, .describe = describe});
  stall.tick(SteadyClock::now() + seconds(10'000));
  EXPECT_NE(stall.line(SteadyClock::now()).find("stage \"start\""), std::string::npos);
}

TEST(HungCalls, AreToldOnceUnlessTheyReturn) {
  const ActivitySlot* const own = &ActivitySlot::own();
  HungCalls calls;
  const auto start = SteadyClock::now();
  for (int i = 0; i < 100; ++i) {
    const CallNote call("test", "network x", -1);
    calls.tick(start + seconds(i), {seconds(2)}, {});
  }
  EXPECT_EQ(test::capturedText().find("has not returned"), std::string::npos) << "each of them has";
  {
    const CallNote call("isend", "network x", 1);
    calls.tick(start + seconds(100), {seconds(2)}, {});
    EXPECT_TRUE(calls.lines(start + milliseconds(100'500)).empty());
    test::expectLog("Stall: the call isend of network x, device 1 has not returned for 2.5 s");
    calls.tick(start + milliseconds(102'500), {seconds(2)}, {});
    calls.tick(start + seconds(200), {seconds(2)}, {});
    EXPECT_EQ(calls.lines(start + seconds(110)).size(), 1U);
  }
  calls.tick(start + seconds(201), {seconds(2)}, {});
  EXPECT_TRUE(calls.lines(start + seconds(300)).empty());
  HungCalls patient;
  {
    const CallNote call("test", "network x", 2);
    for (int i = 0; i < 2; ++i) test::expectLog("the call test of network x, device 2 has not returned for ");
    for (const int second : {201, 204, 250, 502, 600})
      patient.tick(start + seconds(second), {seconds(2), seconds(300)}, {});
    EXPECT_EQ(test::countOf(test::capturedText(), "device 2 has not returned"), 2U) << "the second time at every level";
  }
  // Somebody else speaks for that thread, or nobody wants to hear.
  const CallNote call("isend", "network x", 1);
  for (const int second : {300, 400}) calls.tick(start + seconds(second), {seconds(2)}, {own});
  HungCalls silent;
  for (const int second : {300, 400}) silent.tick(start + seconds(second), {}, {});
}

}  // namespace
}  // namespace tutti::comm
