#include "ras/registry.h"

#include <gtest/gtest.h>

#include "ras/settings.h"

namespace tutti::ras {
namespace {

TEST(RasRegistry, ListsRanksOfACommunicatorTogetherAsLongAsTheyAreHeld) {
  Registry registry;
  const auto state = [] { return RankState{}; };
  auto second = registry.add({{1, 2, 3}, 2, 1, 0, 0}, {{5, 0, 0}, {5, 1, 1}}, state);
  auto first = registry.add({{1, 2, 3}, 2, 0, 0, 0, "both", 8}, {{5, 0, 0}, {5, 1, 1}}, state);
  auto other = registry.add({{9, 2, 3}, 1, 0, 0, 0}, {{5, 0, 0}}, state);
  const auto all = registry.snapshot(5);
  ASSERT_EQ(all.size(), 2U);
  ASSERT_EQ(all[0].ranks.size(), 2U);
  EXPECT_EQ(all[0].ranks[0].rank, 0);
  EXPECT_EQ(all[0].ranks[1].process, 5U);
  EXPECT_EQ(all[0].name, "both");
  EXPECT_EQ(all[0].parent, 8U);
  EXPECT_EQ(all[1].name, "");
  EXPECT_EQ(all[1].parent, 0U);
  second.reset();
  EXPECT_EQ(registry.snapshot(5)[0].ranks.size(), 1U);
  first.reset();
  EXPECT_EQ(registry.snapshot(5).size(), 1U);
}

TEST(RasSettings, FactorIsANumberAboveZero) {
  EXPECT_EQ(timeoutFactorOf("1"), 1);
  EXPECT_EQ(timeoutFactorOf("0.05"), 0.05);
  EXPECT_EQ(timeoutFactorOf("10"), 10);
  for (const char* const wrong : {"", "0", "-1", "nan", "inf", "2x", "many"}) EXPECT_EQ(timeoutFactorOf(wrong), 1);
}

}  // namespace
}  // namespace tutti::ras
