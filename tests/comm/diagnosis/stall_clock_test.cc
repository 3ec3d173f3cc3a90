#include "comm/diagnosis/stall_clock.h"

#include <gtest/gtest.h>

namespace tutti::comm {
namespace {

using Time = StallClock::Time;

Time at(int ms) {
  return Time(milliseconds(1'000'000 + ms));
}

TEST(StallClock, AsksForNothingAsLongAsOperationsEndInTime) {
  StallClock clock(milliseconds(5000));
  for (int ms = 0; ms < 100'000; ms += 250) {
    clock.follow(at(ms), ms % 4750 != 0);
    EXPECT_FALSE(clock.due(at(ms))) << ms;
    EXPECT_FALSE(clock.stalled(at(ms))) << ms;
  }
}

TEST(StallClock, SaysOnceThatNothingMoves) {
  StallClock clock(milliseconds(5000));
  int reports = 0;
  for (int ms = 0; ms < 60'000; ms += 250) {
    clock.follow(at(ms), true);
    if (clock.due(at(ms))) clock.read(at(ms), 42);
    if (!clock.stalled(at(ms))) continue;
    EXPECT_GE(ms, 6000) << "unmoved for a second at least";
    EXPECT_LE(ms, 6500);
    clock.report();
    ++reports;
  }
  EXPECT_EQ(reports, 1);
  EXPECT_EQ(clock.age(at(60'000)), milliseconds(60'000));
}

TEST(StallClock, WhatMovesIsNoStall) {
  StallClock clock(milliseconds(2000));
  std::uint64_t counter = 0;
  for (int ms = 0; ms < 60'000; ms += 250) {
    clock.follow(at(ms), true);
    if (ms % 750 == 0) ++counter;
    if (clock.due(at(ms))) clock.read(at(ms), counter);
    EXPECT_FALSE(clock.stalled(at(ms))) << ms;
  }
}

TEST(StallClock, IsReadyForTheNextStallAfterTheOperationHasMoved) {
  StallClock clock(milliseconds(1000));
  const auto run = [&](int from, int to, std::uint64_t fingerprint) {
    int reports = 0;
    for (int ms = from; ms < to; ms += 250) {
      clock.follow(at(ms), true);
      if (clock.due(at(ms))) clock.read(at(ms), fingerprint);
      if (!clock.stalled(at(ms))) continue;
      clock.report();
      ++reports;
    }
    return reports;
  };
  EXPECT_EQ(run(0, 10'000, 1), 1);
  EXPECT_EQ(run(10'000, 20'000, 2), 1);
  clock.follow(at(20'000), false);
  EXPECT_EQ(run(20'250, 30'000, 2), 1);
}

TEST(StallClock, KnowsWhenSomethingMovedLast) {
  StallClock clock(milliseconds(0));
  clock.follow(at(0), true);
  clock.read(at(0), 1);
  clock.read(at(500), 1);
  EXPECT_FALSE(clock.movedAfter(at(250)));
  clock.read(at(1000), 2);
  EXPECT_TRUE(clock.movedAfter(at(250)));
  EXPECT_FALSE(clock.movedAfter(at(1000)));
}

TEST(StallClock, WhatMovesElsewhereGivesItTimeAgain) {
  StallClock clock(milliseconds(2000));
  for (int ms = 0; ms < 60'000; ms += 250) {
    clock.follow(at(ms), true);
    if (clock.due(at(ms))) clock.read(at(ms), 42);
    if (clock.suspects(at(ms)) && ms % 1000 == 0) clock.moved(at(ms));
    EXPECT_FALSE(clock.stalled(at(ms))) << ms;
  }
  EXPECT_LE(clock.age(at(60'000)), milliseconds(3000));
}

TEST(StallClock, IsOffWithoutALimit) {
  StallClock clock(milliseconds(0));
  for (int ms = 0; ms < 1'000'000; ms += 1000) {
    clock.follow(at(ms), true);
    EXPECT_FALSE(clock.due(at(ms)));
    clock.read(at(ms), 7);  // somebody asks
    EXPECT_FALSE(clock.stalled(at(ms)));
  }
}

}  // namespace
}  // namespace tutti::comm
