#include "softgpu/exec/yield_pace.h"

#include <gtest/gtest.h>

namespace tutti::softgpu::test {
namespace {

constexpr std::int64_t kToNobody = 500;
constexpr std::int64_t kToSomebody = 5'000;

/// Yields whenever one is due during a wait of `length`, a look each 100 ns. Returns how many there were.
int yieldsDuring(YieldPace& pace, std::int64_t& now, std::int64_t length, std::int64_t each) {
  int yields = 0;
  for (const std::int64_t since = now; now - since < length; now += 100) {
    if (!pace.due(now, since)) continue;
    pace.yielded(now, now + each);
    now += each;
    ++yields;
  }
  return yields;
}

TEST(YieldPace, NothingIsYieldedInTheFirstMicroseconds) {
  const YieldPace pace;
  EXPECT_FALSE(pace.due(1'000'000, 1'000'000));
  EXPECT_FALSE(pace.due(1'001'900, 1'000'000));
  EXPECT_TRUE(pace.due(1'002'000, 1'000'000));
}

TEST(YieldPace, SaysWhetherSomebodyWantedTheProcessor) {
  YieldPace pace;
  EXPECT_FALSE(pace.yielded(1'000'000, 1'000'000 + kToNobody));
  EXPECT_TRUE(pace.yielded(2'000'000, 2'000'000 + kToSomebody));
}

TEST(YieldPace, WhereSomebodyWantsTheProcessorAWaitYieldsAllTheTime) {
  YieldPace pace;
  std::int64_t now = 1'000'000;
  for (int wait = 0; wait < 3; ++wait) EXPECT_GE(yieldsDuring(pace, now, 100'000, kToSomebody), 19) << wait;
}

TEST(YieldPace, WhereNobodyWantsItAFewYieldsTellAndThenTheyAreRare) {
  YieldPace pace;
  std::int64_t now = 1'000'000;
  EXPECT_LE(yieldsDuring(pace, now, 100'000, kToNobody), 4 + 9) << "four to find out, then one each 10 microseconds";
  EXPECT_LE(yieldsDuring(pace, now, 100'000, kToNobody), 10);
  for (int wait = 0; wait < 100; ++wait) EXPECT_EQ(yieldsDuring(pace, now, 9'000, kToNobody), 0) << wait;
}

TEST(YieldPace, OneThatSomebodyTookBringsTheOthersBack) {
  YieldPace pace;
  std::int64_t now = 1'000'000;
  yieldsDuring(pace, now, 1'000'000, kToNobody);
  pace.yielded(now, now + kToSomebody);
  now += kToSomebody;
  EXPECT_GE(yieldsDuring(pace, now, 100'000, kToSomebody), 19);
}

}  // namespace
}  // namespace tutti::softgpu::test
