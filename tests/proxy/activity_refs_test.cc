#include "proxy/activity_refs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace tutti::proxy {
namespace {

/// A group that the engine has dropped.
void drop(ActivityRefs& holds) {
  ASSERT_TRUE(holds.rest(holds.look()));
}

TEST(ActivityRefs, OfANewGroupNeedNoList) {
  ActivityRefs holds;
  EXPECT_FALSE(holds.hold());
  EXPECT_TRUE(holds.look().held());
  holds.release();
  EXPECT_FALSE(holds.look().held());
}

TEST(ActivityRefs, OnlyTheFirstOfADroppedGroupListsIt) {
  ActivityRefs holds;
  drop(holds);
  EXPECT_TRUE(holds.hold());
  EXPECT_FALSE(holds.hold());
  EXPECT_FALSE(holds.list());
  holds.release();
  EXPECT_TRUE(holds.look().held());
}

TEST(ActivityRefs, GroupIsNotDroppedWhenHeldSinceTheLook) {
  ActivityRefs holds;
  const ActivityRefs::Seen seen = holds.look();
  holds.hold();
  EXPECT_FALSE(holds.rest(seen));
}

TEST(ActivityRefs, GroupIsNotDroppedWhenHeldAndLetGoOfSinceTheLook) {
  ActivityRefs holds;
  const ActivityRefs::Seen seen = holds.look();
  holds.hold();
  holds.release();
  EXPECT_FALSE(holds.look().held());
  EXPECT_EQ(holds.look().holdsMade(), seen.holdsMade() + 1);
  EXPECT_FALSE(holds.rest(seen));
  EXPECT_TRUE(holds.rest(holds.look()));
}

TEST(ActivityRefs, StormListsADroppedGroupOnceEachTime) {
  constexpr int kThreads = 4;
  constexpr int kEach = 5'000;
  ActivityRefs holds;
  drop(holds);
  std::atomic<int> listed{0};
  std::atomic<int> worst{0};
  std::atomic<bool> ended{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        if (holds.hold()) worst.store(std::max(worst.load(), listed.fetch_add(1) + 1));
        holds.release();
      }
    });
  }
  std::thread engine([&] {
    while (!ended.load()) {
      if (listed.load() == 0) continue;
      const ActivityRefs::Seen seen = holds.look();
      if (seen.held()) continue;
      listed.fetch_sub(1);
      if (!holds.rest(seen)) listed.fetch_add(1);
    }
  });
  for (auto& thread : threads) thread.join();
  ended.store(true);
  engine.join();
  EXPECT_EQ(holds.look().holdsMade(), static_cast<std::uint32_t>(kThreads * kEach));
  EXPECT_FALSE(holds.look().held());
  EXPECT_LE(worst.load(), 1);
}

}  // namespace
}  // namespace tutti::proxy
