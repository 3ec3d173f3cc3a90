#include "proxy/backoff_policy.h"

#include <gtest/gtest.h>

namespace tutti::proxy {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

TEST(Patience, ClimbsFromLookingOverYieldingToPauses) {
  const Patience patience = Patience::forProcessors(64);
  EXPECT_EQ(patience.next(nanoseconds(0)).step, Patience::Step::Spin);
  EXPECT_EQ(patience.next(patience.spin).step, Patience::Step::Yield);
  EXPECT_EQ(patience.next(patience.beforePauses()).step, Patience::Step::Pause);
}

TEST(Patience, PausesForAQuarterOfTheWaitWithinItsBounds) {
  const Patience patience = Patience::forProcessors(64);
  for (const auto idle : {microseconds(100), microseconds(200), microseconds(799)}) {
    EXPECT_EQ(patience.next(idle).pause, nanoseconds(idle) / 4);
  }
  EXPECT_EQ(patience.next(std::chrono::hours(1)).pause, patience.longestPause);
  const Patience few = Patience::forProcessors(1);
  EXPECT_EQ(few.next(nanoseconds(0)).pause, few.shortestPause);
}

TEST(Patience, NeverSpinsWhereProcessorsAreFew) {
  for (int count = 1; count < 8; ++count) {
    const Patience patience = Patience::forProcessors(count);
    EXPECT_NE(patience.next(nanoseconds(0)).step, Patience::Step::Spin) << count;
    EXPECT_EQ(patience.next(patience.beforePauses()).step, Patience::Step::Pause) << count;
    EXPECT_GT(patience.next(milliseconds(10)).pause, Patience{}.longestPause) << count;
  }
}

TEST(Patience, AsksTheDriverRarelyAndMoreRarelyWithTime) {
  const Patience patience;
  EXPECT_EQ(patience.untilNextQuestion(microseconds(10)), patience.askEvery);
  EXPECT_EQ(patience.untilNextQuestion(microseconds(4000)), nanoseconds(microseconds(1000)));
  EXPECT_EQ(patience.untilNextQuestion(std::chrono::seconds(10)), patience.askAtLeastEvery);
}

}  // namespace
}  // namespace tutti::proxy
