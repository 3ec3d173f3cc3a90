// Clocks of hosts against each other.
#include "trace/clock_offset.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "support/fake_control_channel.h"
#include "support/thread_ranks.h"

namespace tutti::trace {
namespace {

TEST(ClockOffset, IsRightWithinHalfOfTheWay) {
  // The other clock is 1000 ahead; there in 30, back in 10.
  const ClockOffset found = offsetOf(100, 100 + 30 + 1000, 100 + 40);
  EXPECT_EQ(found.offset, 1010);
  EXPECT_GE(found.error, 10u);
  EXPECT_LE(found.error, 21u);
}

TEST(ClockOffset, IsRightForAClockThatIsBehind) {
  const ClockOffset found = offsetOf(5000, 5010 - 4000, 5020);
  EXPECT_EQ(found.offset, -4000);
}

TEST(ClockOffset, OfOneHostIsNoneWithinItsError) {
  test::FakeWorld world(2);
  test::runRanks(2, [&](int rank) {
    if (rank == 1) {
      EXPECT_TRUE(answerClock(world.channel(1), 0).ok());
      return;
    }
    const auto found = askClock(world.channel(0), 1);
    ASSERT_TRUE(found.ok());
    EXPECT_LE(static_cast<std::uint64_t>(std::abs(found.value().offset)), found.value().error);
  });
}

}  // namespace
}  // namespace tutti::trace
