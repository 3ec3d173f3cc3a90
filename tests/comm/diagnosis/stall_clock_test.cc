#include "comm/diagnosis/stall_clock.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace tutti::comm {
namespace {

using Time = StallClock::Time;

Time at(int ms) {
  return Time(milliseconds(1'000'000 + ms));
}

TEST(StallClock, AsksForNothingAsLongAsOperationsEndInTime) {
  StallClock clock({milliseconds(5000)});
  for (int ms = 0; ms < 100'000; ms += 250) {
    clock.follow(at(ms), ms % 4750 != 0);
    EXPECT_FALSE(clock.due(at(ms))) << ms;
    EXPECT_FALSE(clock.stalled(at(ms))) << ms;
  }
}

TEST(StallClock, KnowsSinceWhenNothingMovesOnceItWasRead) {
  StallClock clock({});
  clock.follow(at(0), true);
  EXPECT_EQ(clock.unmoved(at(9000)), milliseconds(0)) << "nobody has looked";
  clock.read(at(9000), 1);
  clock.read(at(9250), 2);
  EXPECT_EQ(clock.unmoved(at(9250)), milliseconds(0));
  clock.read(at(9500), 2);
  EXPECT_EQ(clock.unmoved(at(9600)), milliseconds(350));
  clock.follow(at(9700), false);
  EXPECT_EQ(clock.unmoved(at(9700)), milliseconds(0)) << "it has ended";
}

TEST(StallClock, SaysOnceThatNothingMoves) {
  StallClock clock({milliseconds(5000)});
  int reports = 0;
  for (int ms = 0; ms < 60'000; ms += 250) {
    clock.follow(at(ms), true);
    if (clock.due(at(ms))) clock.read(at(ms), 42);
    if (!clock.stalled(at(ms))) continue;
    EXPECT_GE(ms, 6000) << "unmoved for a second at least";
    EXPECT_LE(ms, 6500);
    clock.report(at(ms));
    ++reports;
  }
  EXPECT_EQ(reports, 1);
  EXPECT_EQ(clock.age(at(60'000)), milliseconds(60'000));
}

TEST(StallClock, SaysItAgainToEverybodyWhenItHasLastedForLong) {
  StallClock clock({milliseconds(5000), milliseconds(30'000)});
  std::vector<std::pair<int, bool>> reports;
  for (int ms = 0; ms < 200'000; ms += 250) {
    clock.follow(at(ms), true);
    if (clock.due(at(ms))) clock.read(at(ms), 42);
    if (!clock.stalled(at(ms))) continue;
    reports.emplace_back(ms, clock.alarms(at(ms)));
    clock.report(at(ms));
  }
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_LE(reports[0].first, 6500);
  EXPECT_FALSE(reports[0].second);
  EXPECT_EQ(reports[1], std::pair(30'000, true));
}

TEST(StallClock, SaysItOnceWhereEverybodyIsToldAtOnce) {
  StallClock clock({milliseconds(5000), milliseconds(1000)});
  int reports = 0;
  for (int ms = 0; ms < 60'000; ms += 250) {
    clock.follow(at(ms), true);
    if (clock.due(at(ms))) clock.read(at(ms), 42);
    if (!clock.stalled(at(ms))) continue;
    EXPECT_TRUE(clock.alarms(at(ms)));
    clock.report(at(ms));
    ++reports;
  }
  EXPECT_EQ(reports, 1);
}

TEST(StallClock, AlarmsAnewAfterTheOperationHasMoved) {
  StallClock clock({milliseconds(1000), milliseconds(10'000)});
  int alarms = 0;
  for (int ms = 0; ms < 60'000; ms += 250) {
    clock.follow(at(ms), true);
    if (clock.due(at(ms))) clock.read(at(ms), ms < 30'000 ? 1 : 2);
    if (!clock.stalled(at(ms))) continue;
    if (clock.alarms(at(ms))) ++alarms;
    clock.report(at(ms));
  }
  EXPECT_EQ(alarms, 2);
}

TEST(StallClock, WhatMovesIsNoStall) {
  StallClock clock({milliseconds(2000)});
  std::uint64_t counter = 0;
  for (int ms = 0; ms < 60'000; ms += 250) {
    clock.follow(at(ms), true);
    if (ms % 750 == 0) ++counter;
    if (clock.due(at(ms))) clock.read(at(ms), counter);
    EXPECT_FALSE(clock.stalled(at(ms))) << ms;
  }
}

TEST(StallClock, IsReadyForTheNextStallAfterTheOperationHasMoved) {
  StallClock clock({milliseconds(1000)});
  const auto run = [&](int from, int to, std::uint64_t fingerprint) {
    int reports = 0;
    for (int ms = from; ms < to; ms += 250) {
      clock.follow(at(ms), true);
      if (clock.due(at(ms))) clock.read(at(ms), fingerprint);
      if (!clock.stalled(at(ms))) continue;
      clock.report(at(ms));
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
  StallClock clock({milliseconds(0)});
  clock.follow(at(0), true);
  clock.read(at(0), 1);
  clock.read(at(500), 1);
  EXPECT_FALSE(clock.movedAfter(at(250)));
  clock.read(at(1000), 2);
  EXPECT_TRUE(clock.movedAfter(at(250)));
  EXPECT_FALSE(clock.movedAfter(at(1000)));
}

TEST(StallClock, WhatMovesElsewhereGivesItTimeAgain) {
  StallClock clock({milliseconds(2000)});
  for (int ms = 0; ms < 60'000; ms += 250) {
    clock.follow(at(ms), true);
    if (clock.due(at(ms))) clock.read(at(ms), 42);
    if (clock.suspects(at(ms)) && ms % 1000 == 0) clock.moved(at(ms));
    EXPECT_FALSE(clock.stalled(at(ms))) << ms;
  }
  EXPECT_LE(clock.age(at(60'000)), milliseconds(3000));
}

TEST(StallClock, IsOffWithoutALimit) {
  StallClock clock({milliseconds(0), milliseconds(300'000)});
  for (int ms = 0; ms < 1'000'000; ms += 1000) {
    clock.follow(at(ms), true);
    EXPECT_FALSE(clock.due(at(ms)));
    clock.read(at(ms), 7);  // somebody asks
    EXPECT_FALSE(clock.stalled(at(ms)));
    EXPECT_FALSE(clock.alarms(at(ms)));
  }
}

TEST(StallLimits, TheShorterOfTwoIsTheOneThatIsSet) {
  const StallLimits none;
  const StallLimits some{milliseconds(5), milliseconds(50)};
  const StallLimits mixed = some.shorterOf({milliseconds(9), milliseconds(20)});
  EXPECT_EQ(mixed.report, milliseconds(5));
  EXPECT_EQ(mixed.alarm, milliseconds(20));
  for (const StallLimits& one : {none.shorterOf(some), some.shorterOf(none)}) {
    EXPECT_EQ(one.report, milliseconds(5));
    EXPECT_EQ(one.alarm, milliseconds(50));
  }
  EXPECT_FALSE(none.shorterOf(none).reports(milliseconds(1'000'000)));
}

}  // namespace
}  // namespace tutti::comm
