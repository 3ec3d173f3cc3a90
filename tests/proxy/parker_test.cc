#include "proxy/parker.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/clock.h"

namespace tutti::proxy {
namespace {

TEST(Parker, DoesNotSleepOverATokenLeftBefore) {
  Parker parker;
  parker.wake();
  parker.wake();
  EXPECT_FALSE(parker.settleDown());
  EXPECT_FALSE(parker.pause(std::chrono::microseconds(1))) << "two tokens left before are one";
}

TEST(Parker, PauseEndsByItself) {
  Parker parker;
  const auto start = SteadyClock::now();
  EXPECT_FALSE(parker.pause(milliseconds(5)));
  EXPECT_LT(secondsSince(start), 5.0);
}

TEST(Parker, NudgeEndsAPauseAndNothingElse) {
  Parker parker;
  parker.nudge();
  EXPECT_FALSE(parker.pause(std::chrono::microseconds(1)));
  std::atomic<bool> ended{false};
  std::thread other([&] {
    while (!ended.load()) parker.nudge();
  });
  EXPECT_TRUE(parker.pause(std::chrono::seconds(60)));
  ended.store(true);
  other.join();
}

TEST(Parker, NudgeDoesNotEndANapAndATokenDoes) {
  Parker parker;
  std::atomic<bool> ended{false};
  std::thread other([&] {
    while (!ended.load()) parker.nudge();
  });
  EXPECT_FALSE(parker.nap(milliseconds(5))) << "it ended by itself";
  ended.store(true);
  other.join();
  std::thread waker([&] { parker.wake(); });
  EXPECT_TRUE(parker.nap(std::chrono::seconds(60)));
  waker.join();
}

TEST(Parker, LosesNoWakeUpBetweenTwoThreads) {
  constexpr int kTurns = 5'000;
  Parker ping;
  Parker pong;
  std::atomic<int> turns{0};
  std::thread other([&] {
    for (int i = 0; i < kTurns; ++i) {
      if (ping.settleDown()) ping.sleep();
      turns.fetch_add(1);
      pong.wake();
    }
  });
  for (int i = 0; i < kTurns; ++i) {
    ping.wake();
    if (pong.settleDown()) pong.sleep();
    ASSERT_EQ(turns.load(), i + 1);
  }
  other.join();
}

}  // namespace
}  // namespace tutti::proxy
