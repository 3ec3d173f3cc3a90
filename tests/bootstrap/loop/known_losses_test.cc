#include "bootstrap/loop/known_losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tutti::bootstrap {
namespace {

const auto kEver = SteadyClock::time_point();

TEST(KnownLosses, AProcessIsKnownByItsBestKnownCause) {
  KnownLosses losses;
  losses.add({"a", 7, Cause::Failed, "failed"});
  losses.add({"a", 7, Cause::Died, "died"});
  losses.add({"a", 7, Cause::Silent, "silent"});
  ASSERT_TRUE(losses.of("a", 7, kEver));
  EXPECT_EQ(losses.of("a", 7, kEver)->text, "died");
  EXPECT_FALSE(losses.of("b", 7, kEver)) << "another host";
  EXPECT_FALSE(losses.of("a", 8, kEver)) << "another process";
}

TEST(KnownLosses, WhatOneRankSawOfAnotherIsNoLossOfIts) {
  KnownLosses losses;
  losses.add({"a", 7, Cause::Observed, "it hung up"});
  EXPECT_FALSE(losses.of("a", 7, kEver));
  ASSERT_TRUE(losses.latest(kEver));
  EXPECT_EQ(losses.latest(kEver)->text, "it hung up");
}

TEST(KnownLosses, EarlierOnesMayBeOfAnotherProcessWithThatNumber) {
  KnownLosses losses;
  losses.add({"a", 7, Cause::Died, "died"});
  const auto later = SteadyClock::now() + milliseconds(1);
  EXPECT_FALSE(losses.of("a", 7, later));
  EXPECT_FALSE(losses.latest(later));
}

TEST(KnownLosses, OfAChainOfAbortsTheFirstReasonIsKept) {
  KnownLosses first;
  first.add({"a", 7, Cause::Observed, "rank 4 has left"});
  KnownLosses second;
  second.addAbort({"a", 8, Cause::Aborted, "rank 3 aborted" + first.perhapsBecause(kEver)});
  EXPECT_THAT(second.perhapsBecause(kEver), testing::EndsWith(" failed: rank 4 has left"));
  KnownLosses third;
  third.addAbort({"a", 9, Cause::Aborted, "rank 5 aborted" + second.perhapsBecause(kEver)});
  EXPECT_THAT(third.perhapsBecause(kEver), testing::EndsWith(" failed: rank 4 has left"));
  EXPECT_FALSE(third.of("a", 9, kEver)) << "who aborts has not failed";
}

TEST(KnownLosses, WhatATextQuotesIsNotQuotedAgain) {
  KnownLosses losses;
  losses.add({"", 0, Cause::Observed, "rank 1 did not come"});
  losses.add({"", 0, Cause::Observed, "rank 2 did not come" + losses.perhapsBecause(kEver)});
  EXPECT_EQ(losses.latest(kEver)->text, "rank 2 did not come");
}

TEST(KnownLosses, AnAbortsReasonIsKeptWithoutWhatItQuotesItself) {
  KnownLosses first;
  first.add({"a", 7, Cause::Observed, "rank 4 has left"});
  const std::string perhaps = first.perhapsBecause(kEver);
  KnownLosses second;
  second.addAbort({"a", 8, Cause::Aborted, "rank 3 aborted" + perhaps + perhaps});
  EXPECT_EQ(second.latest(kEver)->text, "rank 4 has left");
}

TEST(KnownLosses, AnAbortWithoutAReasonIsBetterThanNothingOnly) {
  KnownLosses losses;
  losses.addAbort({"a", 8, Cause::Aborted, "rank 3 aborted"});
  EXPECT_EQ(losses.latest(kEver)->text, "rank 3 aborted");
  losses.add({"a", 7, Cause::Observed, "rank 4 has left"});
  losses.addAbort({"a", 9, Cause::Aborted, "rank 5 aborted"});
  EXPECT_EQ(losses.latest(kEver)->text, "rank 4 has left");
}

TEST(KnownLosses, OnlyTheLastOnesAreKept) {
  KnownLosses losses;
  for (int pid = 1; pid <= 100; ++pid) losses.add({"a", pid, Cause::Died, std::to_string(pid)});
  EXPECT_FALSE(losses.of("a", 1, kEver));
  EXPECT_TRUE(losses.of("a", 100, kEver));
  EXPECT_EQ(losses.latest(kEver)->text, "100");
}

}  // namespace
}  // namespace tutti::bootstrap
