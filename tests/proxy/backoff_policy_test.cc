#include "proxy/backoff_policy.h"

#include <gtest/gtest.h>

namespace tutti::proxy {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

TEST(BackoffPolicy, ClimbsFromLookingOverYieldingToPauses) {
  const BackoffPolicy backoff = BackoffPolicy::forProcessors(64);
  EXPECT_EQ(backoff.next(nanoseconds(0)).step, BackoffPolicy::Step::Spin);
  EXPECT_EQ(backoff.next(backoff.spin).step, BackoffPolicy::Step::Yield);
  EXPECT_EQ(backoff.next(backoff.beforePauses()).step, BackoffPolicy::Step::Pause);
}

TEST(BackoffPolicy, PausesForAQuarterOfTheWaitWithinItsBounds) {
  const BackoffPolicy backoff = BackoffPolicy::forProcessors(64);
  for (const auto idle : {microseconds(100), microseconds(200), microseconds(799)}) {
    EXPECT_EQ(backoff.next(idle).pause, nanoseconds(idle) / 4);
  }
  EXPECT_EQ(backoff.next(std::chrono::hours(1)).pause, backoff.longestPause);
  const BackoffPolicy few = BackoffPolicy::forProcessors(1);
  EXPECT_EQ(few.next(nanoseconds(0)).pause, few.shortestPause);
}

TEST(BackoffPolicy, NeverSpinsWhereProcessorsAreFew) {
  for (int count = 1; count < 8; ++count) {
    const BackoffPolicy backoff = BackoffPolicy::forProcessors(count);
    EXPECT_NE(backoff.next(nanoseconds(0)).step, BackoffPolicy::Step::Spin) << count;
    EXPECT_EQ(backoff.next(backoff.beforePauses()).step, BackoffPolicy::Step::Pause) << count;
    EXPECT_GT(backoff.next(milliseconds(10)).pause, BackoffPolicy{}.longestPause) << count;
  }
}

TEST(BackoffPolicy, AsksTheDriverRarelyAndMoreRarelyWithTime) {
  const BackoffPolicy backoff;
  EXPECT_EQ(backoff.untilNextQuestion(microseconds(10)), backoff.askEvery);
  EXPECT_EQ(backoff.untilNextQuestion(microseconds(4000)), nanoseconds(microseconds(1000)));
  EXPECT_EQ(backoff.untilNextQuestion(std::chrono::seconds(10)), backoff.askAtLeastEvery);
}

}  // namespace
}  // namespace tutti::proxy
