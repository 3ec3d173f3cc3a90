#include "comm/state/background.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <thread>

#include "support/log_capture.h"

namespace tutti::comm {
namespace {

TEST(BackgroundTask, ReportsItsStatus) {
  auto task = BackgroundTask::start([] { return Status(ncclRemoteError); });
  ASSERT_TRUE(task.ok());
  EXPECT_EQ(task.value()->wait().code(), ncclRemoteError);
  EXPECT_TRUE(task.value()->done());
}

TEST(BackgroundTask, TurnsExceptionsIntoErrors) {
  test::expectLog("out of host memory");
  test::expectLog("unexpected exception: thrown");
  auto memory = BackgroundTask::start([]() -> Status { throw std::bad_alloc(); });
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(memory.value()->wait().code(), ncclSystemError);
  auto other = BackgroundTask::start([]() -> Status { throw std::runtime_error("thrown"); });
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(other.value()->wait().code(), ncclSystemError);
}

TEST(BackgroundTask, IsNotDoneBeforeItsBodyIs) {
  std::atomic<bool> go{false};
  auto task = BackgroundTask::start([&go] {
    while (!go) std::this_thread::yield();
    return Status();
  });
  ASSERT_TRUE(task.ok());
  EXPECT_FALSE(task.value()->done());
  go = true;
  EXPECT_TRUE(task.value()->wait().ok());
}

TEST(BackgroundTask, CanBeWaitedForBeforeItBegins) {
  const auto task = BackgroundTask::idle();
  std::atomic<bool> returned{false};
  std::thread waiter([&] {
    EXPECT_EQ(task->wait().code(), ncclSystemError);
    returned = true;
  });
  EXPECT_FALSE(returned);
  EXPECT_TRUE(task->run([] { return Status(ncclSystemError); }).ok());
  waiter.join();
}

}  // namespace
}  // namespace tutti::comm
