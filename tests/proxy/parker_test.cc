#include "proxy/parker.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/clock.h"

namespace tutti::proxy {
namespace {

TEST(Sleeper, DoesNotSleepOverATokenLeftBefore) {
  Sleeper sleeper;
  sleeper.wake();
  sleeper.wake();
  EXPECT_FALSE(sleeper.settleDown());
  EXPECT_FALSE(sleeper.pause(std::chrono::microseconds(1))) << "two tokens left before are one";
}

TEST(Sleeper, PauseEndsByItself) {
  Sleeper sleeper;
  const auto start = SteadyClock::now();
  EXPECT_FALSE(sleeper.pause(milliseconds(5)));
  EXPECT_LT(secondsSince(start), 5.0);
}

TEST(Sleeper, NudgeEndsAPauseAndNothingElse) {
  Sleeper sleeper;
  sleeper.nudge();
  EXPECT_FALSE(sleeper.pause(std::chrono::microseconds(1)));
  std::atomic<bool> ended{false};
  std::thread other([&] {
    while (!ended.load()) sleeper.nudge();
  });
  EXPECT_TRUE(sleeper.pause(std::chrono::seconds(60)));
  ended.store(true);
  other.join();
}

TEST(Sleeper, NudgeDoesNotEndANapAndATokenDoes) {
  Sleeper sleeper;
  std::atomic<bool> ended{false};
  std::thread other([&] {
    while (!ended.load()) sleeper.nudge();
  });
  EXPECT_FALSE(sleeper.nap(milliseconds(5))) << "it ended by itself";
  ended.store(true);
  other.join();
  std::thread waker([&] { sleeper.wake(); });
  EXPECT_TRUE(sleeper.nap(std::chrono::seconds(60)));
  waker.join();
}

TEST(Sleeper, LosesNoWakeUpBetweenTwoThreads) {
  constexpr int kTurns = 5'000;
  Sleeper ping;
  Sleeper pong;
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
