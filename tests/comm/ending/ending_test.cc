#include "comm/ending/ending.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "base/log.h"
#include "bootstrap/local_ranks.h"
#include "comm/enqueue/shell.h"
#include "comm/lifecycle.h"
#include "comm/state/background.h"
#include "support/log_capture.h"

namespace tutti::comm {
namespace {

using namespace test;

TEST(Ending, AnAbortFreesNothingUnderADestroyThatWaits) {
  auto* const comm = new ncclComm(CommIdentity(), test::configOf(false), std::make_shared<const CommSettings>(), {});
  std::atomic<bool> go{false};
  auto task = BackgroundTask::start([&] {
                while (!go) std::this_thread::sleep_for(milliseconds(1));
                return Status();
              }).value();
  comm->progress.task = task;
  std::thread destroyer([&] { EXPECT_TRUE(destroyComm(comm).ok()); });
  while (task.use_count() < 3) std::this_thread::yield();  // now it waits for the task
  {
    const std::lock_guard lock(comm->progress.mutex);
    comm->progress.task.reset();
  }
  std::atomic<bool> freed{false};
  std::thread aborter([&] {
    EXPECT_TRUE(abortComm(comm).ok());
    freed = true;
  });
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_FALSE(freed) << "the other thread is still inside";
  go = true;
  destroyer.join();
  aborter.join();
}

TEST(Ending, AnAbortDoesNotWaitForBackgroundWorkForEver) {
  auto* const comm = new ncclComm(CommIdentity(), test::configOf(false), std::make_shared<const CommSettings>(), {});
  test::expectLog("a call on another thread did not return within 10 s");
  std::atomic<bool> go{false};
  comm->progress.task = BackgroundTask::start([&] {
                          while (!go) std::this_thread::sleep_for(milliseconds(1));
                          return Status();
                        }).value();
  const auto start = SteadyClock::now();
  EXPECT_TRUE(abortAndRelease(comm).ok());
  EXPECT_LT(SteadyClock::now() - start, milliseconds(15'000));
  go = true;
  delete comm;  // nobody has freed it
}

TEST(Ending, AnAbortBeforeTheBootstrapWasThereIsToldByTheInit) {
  test::allowLog("aborted its communicator");
  const bootstrap::BootstrapSettings settings = test::localSettings();
  const auto ids = test::makeIds(1, settings);
  std::atomic<int> joinedRanks{0};
  std::atomic<bool> told{false};
  test::runRanks(2, [&](int rank) {
    auto joined = bootstrap::Bootstrap::join(test::joinOptions(ids, rank, 2, settings));
    ASSERT_TRUE(joined.ok());
    ++joinedRanks;
    const Deadline limit = Deadline::in(milliseconds(20'000));
    if (rank == 1) {
      while (joined.value()->lost().ok() && !limit.expired()) std::this_thread::sleep_for(milliseconds(1));
      EXPECT_EQ(joined.value()->lost().code(), ncclRemoteError);
      told = true;
      return;
    }
    while (joinedRanks < 2) std::this_thread::sleep_for(milliseconds(1));
    test::Shell shell;
    shell.comm.abort.raise(Status(ncclInvalidUsage), "aborted while it joined");
    shell.comm.parts.bootstrap = std::move(joined).value();
    noteJoined(shell.comm);
    while (!told && !limit.expired()) std::this_thread::sleep_for(milliseconds(1));
    EXPECT_TRUE(told) << "before this rank's init has left";
  });
}

TEST(Failure, HasItsTextBeforeTheApplicationCanSeeIt) {
  for (const bool first : {true, false}) {
    test::Shell shell;
    restoreLastError("an older one");
    test::expectLog("rank 1 has died");
    // Listeners run when the error can be seen by others, but before failComm() has returned.
    std::string read;
    shell.comm.abort.addListener([&](Status) { std::thread([&] { read = lastErrorText(); }).join(); });
    const OwnLastError own;  // as the engine's thread
    if (!first) shell.comm.abort.raise(Status(ncclRemoteError), "rank 2 has died", "rank 2 has died");
    failComm(shell.comm, fail(ncclSystemError, "rank 1 has died"));
    const std::string expected = first ? "rank 1 has died" : "rank 2 has died";
    EXPECT_EQ(read, expected);
    std::thread([&] { EXPECT_EQ(lastErrorText(), expected) << "an echo"; }).join();
  }
}

TEST(Ending, ADestroyAfterAFailureFreesWithoutWaiting) {
  auto* const comm = new ncclComm(CommIdentity(), test::configOf(true), std::make_shared<const CommSettings>(), {});
  comm->abort.raise(Status(ncclRemoteError), "a peer has died");
  EXPECT_TRUE(destroyComm(comm).ok());
}

}  // namespace
}  // namespace tutti::comm
