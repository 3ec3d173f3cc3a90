#include "comm/enqueue/group.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <thread>
#include <vector>

#include "base/log.h"
#include "comm/enqueue/group_work.h"
#include "comm/enqueue/run_group.h"
#include "comm/enqueue/shell.h"
#include "comm/lifecycle.h"
#include "comm/plan/op.h"
#include "comm/state/background.h"
#include "support/log_capture.h"

namespace tutti::comm {
namespace {

using test::Shell;

TEST(Group, EndWithoutStartIsRefused) {
  test::expectLog("ncclGroupEnd: not in a group call.");
  EXPECT_EQ(groupEnd().status().code(), ncclInvalidUsage);
}

TEST(Group, OutermostEndReturnsTheLastErrorOnce) {
  groupStart();
  groupStart();
  latchGroupError(Status(ncclInvalidArgument));
  EXPECT_TRUE(groupEnd().ok()) << "the inner end acts not at all";
  latchGroupError(Status(ncclInvalidUsage));
  latchGroupError(Status());
  EXPECT_EQ(groupEnd().status().code(), ncclInvalidUsage);
  EXPECT_EQ(groupDepth(), 0);
  groupStart();
  EXPECT_TRUE(groupEnd().ok()) << "forgotten afterwards";
}

TEST(Group, NothingIsLatchedOutsideAGroup) {
  latchGroupError(Status(ncclSystemError));
  groupStart();
  EXPECT_TRUE(groupEnd().ok());
}

TEST(Group, BelongsToItsThread) {
  groupStart();
  std::thread([] { EXPECT_EQ(groupDepth(), 0); }).join();
  EXPECT_EQ(groupDepth(), 1);
  EXPECT_TRUE(groupEnd().ok());
}

TEST(Group, MixOfBlockingAndNonBlockingIsRefused) {
  test::expectLog("Blocking and nonblocking communicators are not allowed in the same group");
  test::Shell blocking;
  test::Shell other(false);
  GroupWork work;
  EXPECT_TRUE(work.admit(blocking.comm).ok());
  EXPECT_EQ(work.admit(other.comm).code(), ncclInvalidArgument);
}

TEST(Group, LatchedErrorDropsAnInitForGood) {
  test::Shell shell;
  bool ran = false;
  groupStart();
  ASSERT_TRUE(openGroup()
                  ->add({&shell.comm, JobKind::Init,
                         [&] {
                           ran = true;
                           return Status();
                         }})
                  .ok());
  latchGroupError(Status(ncclInvalidArgument));
  EXPECT_EQ(groupEnd().status().code(), ncclInvalidArgument);
  EXPECT_FALSE(ran);
  EXPECT_FALSE(shell.comm.progress.starting.load());
  EXPECT_EQ(shell.comm.abort.status().code(), ncclInvalidArgument);
}

TEST(Group, LatchedErrorDoesNotKeepACommunicatorFromEnding) {
  using End = Status (*)();
  const End ends[] = {[] { return groupEnd().status(); },
                      [] {
                        float microseconds = 0;
                        return groupSimulateEnd(microseconds).status();
                      }};
  for (const End end : ends) {
    test::Shell starts;
    test::Shell shell;
    bool ended = false;
    groupStart();
    ASSERT_TRUE(openGroup()->add({&starts.comm, JobKind::Init, [] { return Status(); }}).ok());
    ASSERT_TRUE(openGroup()
                    ->add({&shell.comm, JobKind::End,
                           [&] {
                             ended = true;
                             return Status();
                           }})
                    .ok());
    latchGroupError(Status(ncclInvalidArgument));
    EXPECT_EQ(end().code(), ncclInvalidArgument);
    EXPECT_TRUE(ended) << "its handle is the caller's no more";
    EXPECT_EQ(starts.comm.abort.status().code(), ncclInvalidArgument) << "given up";
  }
}

TEST(Group, ASimulatedGroupEndsCommunicatorsToo) {
  test::Shell shell;
  bool ended = false;
  groupStart();
  ASSERT_TRUE(openGroup()
                  ->add({&shell.comm, JobKind::End,
                         [&] {
                           ended = true;
                           return Status();
                         }})
                  .ok());
  float microseconds = 0;
  EXPECT_TRUE(groupSimulateEnd(microseconds).ok());
  EXPECT_TRUE(ended);
}

TEST(Group, ASimulatedGroupMakesCommunicatorsAndFinalizesThem) {
  test::Shell starts;
  test::Shell finalized;
  std::vector<JobKind> ran;
  const auto note = [&](JobKind kind) {
    return [&ran, kind] {
      ran.push_back(kind);
      return Status();
    };
  };
  groupStart();
  ASSERT_TRUE(openGroup()->add({&finalized.comm, JobKind::Finalize, note(JobKind::Finalize)}).ok());
  ASSERT_TRUE(openGroup()->add({&starts.comm, JobKind::Init, note(JobKind::Init)}).ok());
  float microseconds = 0;
  EXPECT_TRUE(groupSimulateEnd(microseconds).ok());
  EXPECT_EQ(ran, (std::vector<JobKind>{JobKind::Init, JobKind::Finalize}));
  EXPECT_FALSE(starts.comm.progress.starting.load());
  EXPECT_FALSE(starts.comm.abort.raised());
  EXPECT_EQ(microseconds, -1.0F) << "nothing to estimate";
}

TEST(Group, AJobThatFailsFailsItsSimulatedGroup) {
  test::Shell starts;
  groupStart();
  ASSERT_TRUE(openGroup()->add({&starts.comm, JobKind::Init, [] { return Status(ncclSystemError); }}).ok());
  float microseconds = 0;
  EXPECT_EQ(groupSimulateEnd(microseconds).status().code(), ncclSystemError);
  EXPECT_EQ(starts.comm.abort.status().code(), ncclSystemError);
}

TEST(Group, NonBlockingJobsOfASimulatedGroupGoOnInTheBackground) {
  test::Shell shell(false);
  std::atomic<bool> go{false};
  groupStart();
  ASSERT_TRUE(openGroup()
                  ->add({&shell.comm, JobKind::Init,
                         [&] {
                           while (!go) std::this_thread::yield();
                           return Status();
                         }})
                  .ok());
  float microseconds = 0;
  const auto progress = groupSimulateEnd(microseconds);
  ASSERT_TRUE(progress.ok());
  EXPECT_EQ(progress.value(), Progress::Pending);
  go = true;
  ASSERT_NE(shell.comm.progress.task, nullptr);
  EXPECT_TRUE(shell.comm.progress.task->wait().ok());
}

TEST(Group, JobsRunTogether) {
  test::Shell a;
  test::Shell b;
  std::atomic<int> inside{0};
  const auto meet = [&] {
    ++inside;
    while (inside < 2) std::this_thread::yield();
    return Status();
  };
  GroupWork work;
  ASSERT_TRUE(work.add({&a.comm, JobKind::Init, meet}).ok());
  ASSERT_TRUE(work.add({&b.comm, JobKind::Init, meet}).ok());
  EXPECT_TRUE(runGroup(work).ok());
}

TEST(Group, ErrorOfOneJobWakesTheOthersAndIsReturned) {
  test::Shell waits;
  test::Shell fails;
  GroupWork work;
  ASSERT_TRUE(work.add({&waits.comm, JobKind::Init,
                        [&] {
                          while (!waits.comm.abort.raised()) std::this_thread::yield();
                          return waits.comm.abort.status();
                        }})
                  .ok());
  ASSERT_TRUE(work.add({&fails.comm, JobKind::Init, [] { return Status(ncclSystemError); }}).ok());
  EXPECT_EQ(runGroup(work).status().code(), ncclSystemError);
}

TEST(Group, AnExceptionInAJobIsItsError) {
  test::expectLog("out of host memory");
  test::Shell throws;
  test::Shell waits;
  GroupWork work;
  ASSERT_TRUE(work.add({&throws.comm, JobKind::Init, []() -> Status { throw std::bad_alloc(); }}).ok());
  ASSERT_TRUE(work.add({&waits.comm, JobKind::Init,
                        [&] {
                          while (!waits.comm.abort.raised()) std::this_thread::yield();
                          return waits.comm.abort.status();
                        }})
                  .ok());
  EXPECT_EQ(runGroup(work).status().code(), ncclSystemError);
  EXPECT_FALSE(throws.comm.progress.starting.load());
}

TEST(Group, AnInitThatThrowsLeavesAFailedCommunicator) {
  test::expectLog("out of host memory");
  test::Shell throws;
  GroupWork work;
  ASSERT_TRUE(work.add({&throws.comm, JobKind::Init, []() -> Status { throw std::bad_alloc(); }}).ok());
  EXPECT_EQ(runGroup(work).status().code(), ncclSystemError);
  EXPECT_EQ(commAsyncError(throws.comm), ncclSystemError) << "it must not look as if it had come up";
}

TEST(Group, OwnErrorCountsMoreThanItsEcho) {
  test::Shell echo;
  test::Shell origin;
  GroupWork work;
  ASSERT_TRUE(work.add({&echo.comm, JobKind::Init, [&] { return Status(ncclRemoteError); }}).ok());
  ASSERT_TRUE(work.add({&origin.comm, JobKind::Init,
                        [&] {
                          while (!origin.comm.abort.raised()) std::this_thread::yield();
                          return Status(ncclUnhandledCudaError);
                        }})
                  .ok());
  EXPECT_EQ(runGroup(work).status().code(), ncclUnhandledCudaError);
}

TEST(Group, CommunicatorsEndAlsoWhereTheRestOfTheGroupFails) {
  test::Shell fails;
  test::Shell finalized;
  test::Shell ends;
  finalized.comm.progress.finalized.store(true);  // as the call has left it
  bool flushed = false;
  bool ended = false;
  GroupWork work;
  ASSERT_TRUE(work.add({&ends.comm, JobKind::End,
                        [&] {
                          ended = true;
                          return Status(ncclInternalError);
                        }})
                  .ok());
  ASSERT_TRUE(work.add({&finalized.comm, JobKind::Finalize,
                        [&] {
                          flushed = true;
                          return Status();
                        }})
                  .ok());
  ASSERT_TRUE(work.add({&fails.comm, JobKind::Init, [] { return Status(ncclSystemError); }}).ok());
  EXPECT_EQ(runGroup(work).status().code(), ncclSystemError) << "the first error";
  EXPECT_TRUE(ended);
  EXPECT_FALSE(flushed);
  EXPECT_FALSE(finalized.comm.progress.finalized.load()) << "given up: it may be tried again";
}

TEST(Group, AnInitThatRanIsNotGivenUpWithTheRest) {
  test::Shell up;
  test::Shell fails;
  GroupWork work;
  ASSERT_TRUE(work.add({&up.comm, JobKind::Init, [] { return Status(); }}).ok());
  ASSERT_TRUE(work.add({&fails.comm, JobKind::Finalize, [] { return Status(ncclSystemError); }}).ok());
  EXPECT_EQ(runGroup(work).status().code(), ncclSystemError);
  EXPECT_TRUE(up.comm.abort.status().ok());
}

TEST(Group, NonBlockingJobsGoOnInTheBackground) {
  test::Shell shell(false);
  std::atomic<bool> go{false};
  GroupWork work;
  ASSERT_TRUE(work.add({&shell.comm, JobKind::Init,
                        [&] {
                          while (!go) std::this_thread::yield();
                          return Status();
                        }})
                  .ok());
  const auto progress = runGroup(work);
  ASSERT_TRUE(progress.ok());
  EXPECT_EQ(progress.value(), Progress::Pending);
  ASSERT_NE(shell.comm.progress.task, nullptr);
  EXPECT_FALSE(shell.comm.progress.task->done());
  go = true;
  EXPECT_TRUE(shell.comm.progress.task->wait().ok());
}

TEST(Group, WorkThatIsUsedAgainIsEmpty) {
  test::Shell blocking;
  test::Shell other(false);
  GroupWork work;
  ASSERT_TRUE(work.add(blocking.comm, Op{}).ok());
  ASSERT_TRUE(work.add(blocking.comm, Op{}).ok());
  EXPECT_EQ(work.comms().size(), 1U) << "one communicator, whatever is asked of it";
  work.clear();
  EXPECT_TRUE(work.empty());
  EXPECT_TRUE(work.comms().empty());
  EXPECT_TRUE(work.add(other.comm, Op{}).ok()) << "of another kind than those before";
  GroupWork moved(std::move(work));
  EXPECT_EQ(moved.comms().size(), 1U);
  EXPECT_TRUE(work.empty());  // NOLINT(bugprone-use-after-move): says so
}

TEST(Group, OpenedByAJobIsAGroupOfItsOwn) {
  test::Shell outer;
  test::Shell inner;
  bool ran = false;
  groupStart();
  ASSERT_TRUE(openGroup()
                  ->add({&outer.comm, JobKind::Init,
                         [&] {
                           groupStart();
                           EXPECT_TRUE(openGroup()->empty()) << "the outer one is under way";
                           EXPECT_TRUE(openGroup()
                                           ->add({&inner.comm, JobKind::Init,
                                                  [&] {
                                                    ran = true;
                                                    return Status();
                                                  }})
                                           .ok());
                           return groupEnd().status();
                         }})
                  .ok());
  EXPECT_TRUE(groupEnd().ok());
  EXPECT_TRUE(ran);
  EXPECT_EQ(groupDepth(), 0);
}

}  // namespace
}  // namespace tutti::comm
