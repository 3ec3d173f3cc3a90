// What threads say that they are in.
#include "base/threads/activity.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace tutti {
namespace {

TEST(Activity, TellsOfTheCallUntilItReturnsAndOfTheLastOneAfterwards) {
  const ActivitySlot& own = ActivitySlot::own();
  {
    const WaitNote wait("its end", 3);
    EXPECT_EQ(own.read().call, nullptr);
    std::uint64_t before = 0;
    {
      const CallNote call("connect", "network x", 1);
      const Activity now = own.read();
      EXPECT_TRUE(now.inCall);
      EXPECT_STREQ(now.call, "connect");
      EXPECT_STREQ(now.callee, "network x");
      EXPECT_EQ(now.device, 1);
      EXPECT_STREQ(now.wait, "its end");
      EXPECT_EQ(now.peer, 3);
      before = now.calls;
    }
    EXPECT_FALSE(own.read().inCall);
    EXPECT_STREQ(own.read().call, "connect");
    EXPECT_NE(own.read().calls, before);
  }
  EXPECT_EQ(own.read().wait, nullptr);
}

TEST(Activity, AWaitInAWaitEndsWithTheOuterOne) {
  const ActivitySlot& own = ActivitySlot::own();
  WaitNote outer("a barrier", 1);
  outer.now("a broadcast", 2);
  { const WaitNote inner("a message", 5); }
  EXPECT_STREQ(own.read().wait, "a broadcast");
  EXPECT_EQ(own.read().peer, 2);
}

TEST(Activity, ThreadsThatEndLeaveTheirPlacesToOthers) {
  const auto count = [] {
    int slots = 0;
    ActivitySlot::forEach([&](const ActivitySlot&) { ++slots; });
    return slots;
  };
  std::thread([] { const CallNote call("test", "x", -1); }).join();
  const int before = count();
  for (int i = 0; i < 20; ++i) std::thread([] { const CallNote call("test", "x", -1); }).join();
  EXPECT_EQ(count(), before);
}

TEST(Activity, MayBeReadWhileItChanges) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        WaitNote wait("a", 1);
        const CallNote call("isend", "x", 0);
        wait.now("b", 2);
      }
    });
  }
  for (int n = 0; n < 2000; ++n) {
    ActivitySlot::forEach([](const ActivitySlot& slot) {
      const Activity now = slot.read();
      if (now.call != nullptr) {
        EXPECT_TRUE(std::string(now.call) == "isend" || std::string(now.call) == "test");
      }
    });
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tutti
