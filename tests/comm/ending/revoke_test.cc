#include "comm/ending/revoke.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "bootstrap/local_ranks.h"
#include "comm/ending/ending.h"
#include "comm/enqueue/shell.h"
#include "comm/lifecycle.h"
#include "comm/state/background.h"
#include "comm/state/call_gate.h"
#include "support/log_capture.h"

namespace tutti::comm {
namespace {

TEST(Revoke, ACallThatIsStuckDoesNotHoldItUpForEver) {
  test::expectLog("a call on another thread did not end within 10 s after ncclCommRevoke");
  test::Shell shell;
  shell.comm.progress.starting = false;
  const CallGate::Pass stuck(*shell.comm.gate);
  const auto start = SteadyClock::now();
  const Result<Progress> revoked = revokeComm(shell.comm);
  EXPECT_EQ(revoked.status().code(), ncclSystemError);
  EXPECT_GE(secondsSince(start), 9.9);
  EXPECT_LT(secondsSince(start), 15.0);
  EXPECT_EQ(commAsyncError(shell.comm), ncclSystemError);
  EXPECT_TRUE(shell.comm.abort.raised());
}

TEST(Revoke, IsInProgressUntilOtherThreadsHaveLeft) {
  test::Shell shell;
  shell.comm.progress.starting = false;
  std::atomic<bool> returned{false};
  std::thread revoker;
  {
    const CallGate::Pass inside(*shell.comm.gate);
    revoker = std::thread([&] {
      EXPECT_TRUE(revokeComm(shell.comm).ok());
      returned = true;
    });
    while (!shell.comm.abort.raised()) std::this_thread::yield();
    EXPECT_EQ(commAsyncError(shell.comm), ncclInProgress);
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_FALSE(returned);
  }
  revoker.join();
  EXPECT_EQ(commAsyncError(shell.comm), ncclSuccess);
}

TEST(Revoke, WaitsForBackgroundWorkBeforeIt) {
  test::Shell shell(false);
  shell.comm.progress.starting = false;
  std::atomic<bool> go{false};
  shell.comm.progress.task = BackgroundTask::start([&] {
                               while (!go) std::this_thread::sleep_for(milliseconds(1));
                               return Status();
                             }).value();
  const Result<Progress> revoked = revokeComm(shell.comm);
  ASSERT_TRUE(revoked.ok());
  EXPECT_EQ(revoked.value(), Progress::Pending);
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(commAsyncError(shell.comm), ncclInProgress);
  go = true;
  const Deadline deadline = Deadline::in(milliseconds(8'000));
  while (commAsyncError(shell.comm) == ncclInProgress && !deadline.expired()) std::this_thread::yield();
  EXPECT_EQ(commAsyncError(shell.comm), ncclSuccess);
}

TEST(Revoke, IsRefusedWhileADestroyWaits) {
  test::expectLog("is being destroyed");
  test::Shell shell;
  shell.comm.progress.destroying = true;
  EXPECT_EQ(revokeComm(shell.comm).status().code(), ncclInvalidArgument);
  EXPECT_FALSE(shell.comm.abort.raised());
}

}  // namespace
}  // namespace tutti::comm
