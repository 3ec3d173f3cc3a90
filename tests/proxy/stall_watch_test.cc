#include "proxy/stall_watch.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

constexpr SteadyClock::time_point at(int ms) {
  return SteadyClock::time_point(milliseconds(1000 + ms));
}
constexpr TaskCounters kSome{.posted = 3, .done = 2, .bytes = 512, .stalls = 0};

TEST(StallWatch, IsSilentWhereSwitchedOff) {
  StallWatch watch(milliseconds(0));
  watch.begin(at(0));
  EXPECT_FALSE(watch.due(at(1'000'000)));
}

TEST(StallWatch, ReportsOncePerStall) {
  StallWatch watch(milliseconds(100));
  watch.begin(at(0));
  ASSERT_TRUE(watch.due(at(0)));
  EXPECT_FALSE(watch.look(at(0), kSome));
  EXPECT_FALSE(watch.due(at(5)));
  EXPECT_FALSE(watch.look(at(99), kSome));
  EXPECT_TRUE(watch.look(at(100), kSome));
  EXPECT_FALSE(watch.look(at(300), kSome));
}

TEST(StallWatch, IsArmedAgainByProgress) {
  StallWatch watch(milliseconds(100));
  watch.begin(at(0));
  watch.look(at(0), kSome);
  ASSERT_TRUE(watch.look(at(100), kSome));
  TaskCounters more = kSome;
  ++more.done;
  EXPECT_FALSE(watch.look(at(150), more));
  EXPECT_FALSE(watch.look(at(249), more));
  EXPECT_TRUE(watch.look(at(250), more));
}

TEST(StallWatch, TakesRefusalsOfTheNetworkForNoProgress) {
  StallWatch watch(milliseconds(100));
  watch.begin(at(0));
  watch.look(at(0), kSome);
  TaskCounters refused = kSome;
  refused.stalls = 1000;
  EXPECT_TRUE(watch.look(at(100), refused));
}

TEST(StallWatch, BeginsAnewWithTheGroup) {
  StallWatch watch(milliseconds(100));
  watch.begin(at(0));
  watch.look(at(0), kSome);
  watch.begin(at(1000));
  EXPECT_FALSE(watch.look(at(1000), kSome));
  EXPECT_FALSE(watch.look(at(1099), kSome));
  EXPECT_TRUE(watch.look(at(1100), kSome));
}

}  // namespace
}  // namespace tutti
