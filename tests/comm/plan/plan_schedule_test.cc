#include "comm/plan/plan_schedule.h"

#include <gtest/gtest.h>

#include <set>

namespace tutti::comm {
namespace {

TEST(MessageSchedule, EveryRoundPairsEveryRankOnceInEachDirection) {
  for (int n = 1; n <= 40; ++n) {
    for (const int perGroup : {1, 2, 4, 8, 100}) {
      const MessageSchedule schedule(n, perGroup);
      for (int rank = 0; rank < n; ++rank) {
        std::set<int> sending, receiving;
        for (int peer = 0; peer < n; ++peer) {
          sending.insert(schedule.roundOf(rank, peer));
          receiving.insert(schedule.roundOf(peer, rank));
        }
        ASSERT_EQ(sending.size(), static_cast<std::size_t>(n)) << n << " ranks in groups of " << perGroup;
        ASSERT_EQ(receiving.size(), static_cast<std::size_t>(n)) << n << " ranks in groups of " << perGroup;
        ASSERT_EQ(*sending.begin(), 0);
        ASSERT_EQ(*sending.rbegin(), n - 1);
        ASSERT_EQ(schedule.roundOf(rank, rank), 0);
      }
    }
  }
}

TEST(MessageSchedule, ANodeRotates) {
  const MessageSchedule schedule(8, 8);
  for (int d = 0; d < 8; ++d) EXPECT_EQ(schedule.roundOf(3, (3 + d) % 8), d);
}

TEST(MessageSchedule, AGroupIsTheLargestThatDividesTheRanks) {
  EXPECT_EQ(MessageSchedule(24, 8).roundOf(9, 8), 7) << "the last of its own group";
  EXPECT_EQ(MessageSchedule(24, 6).roundOf(7, 6), 5);
  EXPECT_EQ(MessageSchedule(24, 5).roundOf(5, 4), 3) << "5 does not divide 24, 4 does";
  EXPECT_EQ(MessageSchedule(24, 24).roundOf(1, 0), 23) << "all are one group";
  EXPECT_EQ(MessageSchedule(7, 6).roundOf(1, 2), 1) << "a group each";
}

TEST(MessageSchedule, GroupsAreFinishedOneAfterAnother) {
  const MessageSchedule schedule(16, 4);
  EXPECT_EQ(schedule.roundOf(0, 3), 3) << "its own group first";
  EXPECT_EQ(schedule.roundOf(0, 4), 4) << "then the next";
  EXPECT_EQ(schedule.roundOf(0, 12), 8) << "1 + 2 = 3 groups on";
  EXPECT_EQ(schedule.roundOf(0, 8), 12) << "1 + 2 + 3 = 6 = 2 modulo 4";
}

}  // namespace
}  // namespace tutti::comm
