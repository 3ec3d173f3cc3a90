// Communicators that are shrunk and grown.
#include <array>
#include <atomic>
#include <barrier>
#include <mutex>
#include <set>
#include <thread>

#include "comm/family.h"
#include "comm/state/communicator.h"
#include "support/log_capture.h"
#include "support/scoped_log.h"
#include "support/until.h"

namespace tutti::comm {
namespace {

using test::destroy;
using test::gathered;
using test::Ints;
using test::Member;
using test::nonBlocking;
using test::settle;
using test::sumOf;
using test::Turns;
using test::withComm;

TEST(WorldShrink, SurvivorsKeepTheirOrderAndTheParentStays) {
  withComm(6, [](Member& m) {
    int exclude[] = {4, 1};
    if (m.rank != 1 && m.rank != 4) {
      for (int round = 0; round < 2; ++round) {
        ncclComm_t child = nullptr;
        ASSERT_EQ(ncclCommShrink(m.comm, exclude, 2, &child, nullptr, NCCL_SHRINK_DEFAULT), ncclSuccess);
        EXPECT_EQ(exclude[0], 4) << "the caller's list is the caller's";
        EXPECT_EQ(gathered(m, child, m.rank), (std::vector<int>{0, 2, 3, 5}));
        destroy(child);
      }
    }
    EXPECT_EQ(sumOf(m, m.comm, 1), 6);
    // The excluded ones count their splits as the others do.
    ncclComm_t all = nullptr;
    ASSERT_EQ(ncclCommSplit(m.comm, 0, 0, &all, nullptr), ncclSuccess);
    EXPECT_EQ(sumOf(m, all, 1), 6);
    destroy(all);
  });
}

TEST(WorldShrink, EachOfOneListHasANumberOfItsOwnOnWhichSurvivorsAgree) {
  constexpr int kRounds = 3;
  std::array<std::set<std::uint64_t>, kRounds> numbers;
  std::mutex mutex;
  withComm(5, [&](Member& m) {
    int exclude[] = {3};
    int others[] = {0, 3};
    for (int round = 0; round < kRounds && m.rank != 3; ++round) {
      ncclComm_t child = nullptr;
      ASSERT_EQ(ncclCommShrink(m.comm, exclude, 1, &child, nullptr, NCCL_SHRINK_DEFAULT), ncclSuccess);
      {
        const std::lock_guard lock(mutex);
        numbers[static_cast<std::size_t>(round)].insert(child->identity.commId);
      }
      destroy(child);
      if (m.rank == 0) continue;  // some make shrinks in between that others do not make
      ASSERT_EQ(ncclCommShrink(m.comm, others, 2, &child, nullptr, NCCL_SHRINK_DEFAULT), ncclSuccess);
      destroy(child);
    }
  });
  std::set<std::uint64_t> all;
  for (const auto& ofOne : numbers) {
    EXPECT_EQ(ofOne.size(), 1U) << "the survivors disagree";
    all.insert(ofOne.begin(), ofOne.end());
  }
  EXPECT_EQ(all.size(), numbers.size()) << "two of them look alike";
}

TEST(WorldShrink, OneMayBeLeft) {
  withComm(3, [](Member& m) {
    int exclude[] = {0, 2};
    if (m.rank == 1) {
      ncclComm_t child = nullptr;
      ASSERT_EQ(ncclCommShrink(m.comm, exclude, 2, &child, nullptr, NCCL_SHRINK_DEFAULT), ncclSuccess);
      EXPECT_EQ(sumOf(m, child, 5), 5);
      destroy(child);
    }
  });
}

TEST(WorldShrink, AListThatIsWrongIsRefusedByItsEntry) {
  test::allowLog("CommShrink");
  withComm(1, [](Member& m) {
    ncclComm_t child = nullptr;
    const auto refused = [&](std::vector<int> list, const char* words) {
      EXPECT_EQ(ncclCommShrink(m.comm, list.data(), static_cast<int>(list.size()), &child, nullptr, 0),
                ncclInvalidArgument);
      EXPECT_NE(std::string(ncclGetLastError(nullptr)).find(words), std::string::npos) << ncclGetLastError(nullptr);
    };
    refused({0}, "rank 0 is in the list");
    refused({7}, "7 in the list of ranks to exclude is no rank");
    refused({-2}, "-2 in the list of ranks to exclude is no rank");
    EXPECT_EQ(ncclCommShrink(m.comm, nullptr, 1, &child, nullptr, 0), ncclInvalidArgument);
    int one = 0;
    EXPECT_EQ(ncclCommShrink(m.comm, &one, 0, &child, nullptr, 0), ncclInvalidArgument);
    EXPECT_EQ(ncclCommShrink(m.comm, &one, 1, &child, nullptr, 6), ncclInvalidArgument);
    EXPECT_EQ(sumOf(m, m.comm, 4), 4);
  });
  withComm(4, [](Member& m) {
    int twice[] = {3, 2, 3};
    ncclComm_t child = nullptr;
    if (m.rank == 0) {
      EXPECT_EQ(ncclCommShrink(m.comm, twice, 3, &child, nullptr, 0), ncclInvalidArgument);
      EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("rank 3 stands twice"), std::string::npos);
    }
  });
}

TEST(WorldShrink, WithAbortGoesOnAlthoughKernelsHang) {
  test::allowLog("rank");
  std::atomic<int> shrunk{0};
  std::atomic<int> issued{0};
  Turns turns(3);
  const auto start = SteadyClock::now();
  withComm(4, [&](Member& m) {
    EXPECT_EQ(sumOf(m, m.comm, 1), 4);
    if (m.rank == 2) {  // takes no part any more
      while (shrunk < 3) std::this_thread::sleep_for(milliseconds(1));
      EXPECT_EQ(ncclCommAbort(m.comm), ncclSuccess);
      m.comm = nullptr;
      return;
    }
    const Ints data(m.gpu, 1000, 1);
    EXPECT_EQ(ncclAllReduce(data.at(), data.at(), 1000, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
    ++issued;
    while (issued < 3) std::this_thread::sleep_for(milliseconds(1));
    int exclude[] = {2};
    ncclComm_t child = nullptr;
    ASSERT_EQ(ncclCommShrink(m.comm, exclude, 1, &child, nullptr, NCCL_SHRINK_ABORT), ncclSuccess)
        << ncclGetLastError(nullptr);
    ++shrunk;
    EXPECT_EQ(gathered(m, child, m.rank), (std::vector<int>{0, 1, 3}));
    ncclResult_t state = ncclSuccess;
    EXPECT_EQ(ncclCommGetAsyncError(m.comm, &state), ncclSuccess);
    EXPECT_EQ(state, ncclSuccess) << "replaced, not failed: nobody takes it for the end of the shrink";
    turns.next();
    EXPECT_EQ(ncclCommAbort(m.comm), ncclSuccess);
    m.comm = nullptr;
    turns.next();
    EXPECT_EQ(sumOf(m, child, 1), 3);
    destroy(child);
  });
  EXPECT_LT(secondsSince(start), 15.0);
}

TEST(WorldShrink, AfterTheAbortOfARankTheOthersGoOn) {
  test::allowLog("rank");
  Turns summed(5);
  Turns turns(4);
  withComm(5, [&](Member& m) {
    EXPECT_EQ(sumOf(m, m.comm, 1), 5);
    summed.next();      // a rank that has its sum may be ahead of others, whose sum an abort would cut off
    if (m.rank == 0) {  // the top of the tree
      EXPECT_EQ(ncclCommAbort(m.comm), ncclSuccess);
      m.comm = nullptr;
      return;
    }
    EXPECT_EQ(test::errorOfUse(m, m.comm), ncclRemoteError);
    int exclude[] = {0};
    ncclComm_t child = nullptr;
    EXPECT_EQ(ncclCommShrink(m.comm, exclude, 1, &child, nullptr, NCCL_SHRINK_DEFAULT), ncclRemoteError)
        << "the parent is not ready";
    ASSERT_EQ(ncclCommShrink(m.comm, exclude, 1, &child, nullptr, NCCL_SHRINK_ABORT), ncclSuccess)
        << ncclGetLastError(nullptr);
    EXPECT_EQ(ncclCommAbort(m.comm), ncclSuccess);
    m.comm = nullptr;
    turns.next();
    EXPECT_EQ(sumOf(m, child, 1), 4);
    // And once more.
    if (m.rank != 4) {
      int last[] = {3};
      ncclComm_t smaller = nullptr;
      ASSERT_EQ(ncclCommShrink(child, last, 1, &smaller, nullptr, NCCL_SHRINK_DEFAULT), ncclSuccess);
      EXPECT_EQ(gathered(m, smaller, m.rank), (std::vector<int>{1, 2, 3}));
      destroy(smaller);
    }
    destroy(child);
  });
}

TEST(WorldShrink, AWaitForARankThatDoesNotCallEndsWithTheParentsAbort) {
  test::allowLog("rank");
  std::atomic<bool> over{false};
  withComm(3, [&](Member& m) {
    if (m.rank == 0) {
      std::thread aborter([comm = m.comm] {
        std::this_thread::sleep_for(milliseconds(200));
        EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
      });
      int exclude[] = {2};
      ncclComm_t child = nullptr;
      EXPECT_EQ(ncclCommShrink(m.comm, exclude, 1, &child, nullptr, 0), ncclInvalidUsage);
      aborter.join();
      ASSERT_NE(child, nullptr);
      EXPECT_EQ(ncclCommAbort(child), ncclSuccess);
      over = true;
    }
    while (!over) std::this_thread::sleep_for(milliseconds(1));
    if (m.rank != 0) {
      EXPECT_EQ(ncclCommAbort(m.comm), ncclSuccess);
    }
    m.comm = nullptr;
  });
}

TEST(WorldShrink, WhoDoesNotComeIsNamedToThoseWhoWaitAndWaitedFor) {
  const test::ScopedEnv setting("TUTTI_SPLIT_REPORT_SEC", "1");
  test::allowLog("waits in ncclCommShrink for rank 1 (host ");
  withComm(4, [](Member& m) {
    if (m.rank == 3) return;
    if (m.rank == 1) {
      EXPECT_TRUE(
          test::until([] { return test::capturedText().find("ncclCommShrink for rank 1") != std::string::npos; }));
    }
    int exclude[] = {3};
    ncclComm_t child = nullptr;
    ASSERT_EQ(ncclCommShrink(m.comm, exclude, 1, &child, nullptr, NCCL_SHRINK_DEFAULT), ncclSuccess);
    EXPECT_EQ(sumOf(m, child, 1), 3);
    destroy(child);
  });
}

TEST(WorldGrow, TwoBecomeFourAndTheOldOnesKeepTheirNumbers) {
  const ncclUniqueId id = test::newId();
  ncclUniqueId growth{};
  std::barrier made(4);
  test::runRanks(4, [&](int thread) {
    test::useDevice(thread);
    Member m{thread, 4, nullptr, test::device(thread), gpu::Stream::create(test::device(thread)).value()};
    ncclComm_t grown = nullptr;
    if (thread < 2) {
      ASSERT_EQ(ncclCommInitRank(&m.comm, 2, id, thread), ncclSuccess);
      if (thread == 1) {
        ASSERT_EQ(ncclCommGetUniqueId(m.comm, &growth), ncclSuccess);
      }
    }
    made.arrive_and_wait();
    if (thread < 2) {
      ASSERT_EQ(ncclCommGrow(m.comm, 4, thread == 1 ? &growth : nullptr, -1, &grown, nullptr), ncclSuccess);
    } else {
      ASSERT_EQ(ncclCommGrow(nullptr, 4, &growth, thread, &grown, nullptr), ncclSuccess);
    }
    EXPECT_EQ(gathered(m, grown, thread), (std::vector<int>{0, 1, 2, 3}));
    if (thread < 2) {
      EXPECT_EQ(sumOf(m, m.comm, 1), 2) << "the parent stays";
      destroy(m.comm);
    }
    EXPECT_EQ(sumOf(m, grown, 1), 4);
    destroy(grown);
  });
}

TEST(WorldGrow, OfNonBlockingMembersReturnsAtOnce) {
  const ncclUniqueId id = test::newId();
  ncclUniqueId growth{};
  std::atomic<bool> made{false};
  test::runRanks(3, [&](int thread) {
    test::useDevice(thread);
    ncclConfig_t config = nonBlocking();
    ncclComm_t comm = nullptr;
    ncclComm_t grown = nullptr;
    if (thread == 2) {
      while (!made) std::this_thread::sleep_for(milliseconds(1));
      ASSERT_EQ(ncclCommGrow(nullptr, 3, &growth, 2, &grown, &config), ncclSuccess);
    } else {
      ncclCommInitRankConfig(&comm, 2, id, thread, &config);
      ASSERT_EQ(settle(comm), ncclSuccess);
      if (thread == 1) {  // waits for the id, which nobody has made yet
        ASSERT_EQ(ncclCommGrow(comm, 3, nullptr, -1, &grown, nullptr), ncclSuccess);
      } else {
        std::this_thread::sleep_for(milliseconds(50));
        ASSERT_EQ(ncclCommGetUniqueId(comm, &growth), ncclSuccess);
        made = true;
        ASSERT_EQ(ncclCommGrow(comm, 3, &growth, -1, &grown, nullptr), ncclSuccess);
      }
    }
    ASSERT_NE(grown, nullptr);
    EXPECT_EQ(settle(grown), ncclSuccess);
    int count = 0;
    EXPECT_EQ(ncclCommCount(grown, &count), ncclSuccess);
    EXPECT_EQ(count, 3);
    destroy(grown);
    if (comm != nullptr) destroy(comm);
  });
}

TEST(WorldGrow, NumbersThatDoNotFitAreRefused) {
  test::allowLog("CommGrow");
  test::allowLog("used before");
  test::allowLog("Bootstrap");
  withComm(2, [](Member& m) {
    if (m.rank != 0) return;
    ncclUniqueId growth{};
    ASSERT_EQ(ncclCommGetUniqueId(m.comm, &growth), ncclSuccess);
    ncclComm_t grown = nullptr;
    const auto refused = [&](ncclComm_t comm, int nRanks, const ncclUniqueId* id, int rank, const char* words) {
      EXPECT_EQ(ncclCommGrow(comm, nRanks, id, rank, &grown, nullptr), ncclInvalidArgument);
      EXPECT_NE(std::string(ncclGetLastError(nullptr)).find(words), std::string::npos) << ncclGetLastError(nullptr);
      EXPECT_EQ(grown, nullptr);
    };
    refused(m.comm, 2, &growth, -1, "2 ranks are not more than the 2");
    refused(m.comm, 3, &growth, 0, "invalid rank 0");
    refused(nullptr, 2, &growth, 2, "2 ranks are not more than the 2");
    refused(nullptr, 4, &growth, 1, "invalid rank 1: the communicator has 2 ranks");
    refused(nullptr, 4, &growth, 4, "invalid rank 4");
    refused(nullptr, 4, nullptr, 3, "uniqueId argument is NULL");
    const ncclUniqueId ordinary = test::newId();
    refused(nullptr, 4, &ordinary, 3, "made by ncclGetUniqueId");
    refused(m.comm, 4, &ordinary, -1, "made by ncclGetUniqueId");
    ncclComm_t lone = nullptr;
    ASSERT_EQ(ncclCommInitRank(&lone, 1, test::newId(), 0), ncclSuccess);
    refused(lone, 4, &growth, -1, "another communicator, of 2 ranks");
    destroy(lone);
  });
}

bool said(const char* words) {
  return test::until([&] { return test::capturedText().find(words) != std::string::npos; });
}

TEST(WorldGrow, WhoDoesNotComeIsNamedAndWaitedFor) {
  const test::ScopedEnv setting("TUTTI_SPLIT_REPORT_SEC", "1");
  test::allowLog("ncclCommGrow waits for");
  const ncclUniqueId id = test::newId();
  ncclUniqueId first{};
  ncclUniqueId second{};
  std::barrier made(4);
  test::runRanks(4, [&](int thread) {
    test::useDevice(thread);
    ncclComm_t comm = nullptr;
    ncclComm_t grown = nullptr;
    const bool member = thread < 3;
    if (member) {
      ASSERT_EQ(ncclCommInitRank(&comm, 3, id, thread), ncclSuccess);
    }
    if (thread == 0) {
      ASSERT_EQ(ncclCommGetUniqueId(comm, &first), ncclSuccess);
    }
    made.arrive_and_wait();
    // A member is late, and then who is new.
    if (thread == 1) {
      EXPECT_TRUE(said("ncclCommGrow waits for rank 1 (host "));
    }
    ASSERT_EQ(member ? ncclCommGrow(comm, 4, thread == 0 ? &first : nullptr, -1, &grown, nullptr)
                     : ncclCommGrow(nullptr, 4, &first, 3, &grown, nullptr),
              ncclSuccess);
    destroy(grown);
    if (thread == 0) {
      ASSERT_EQ(ncclCommGetUniqueId(comm, &second), ncclSuccess);
    }
    made.arrive_and_wait();
    if (thread == 3) {
      EXPECT_TRUE(
          said("ncclCommGrow waits for rank 3: all members have to call it, and who is new (rank 3 and above)"));
    }
    // Meanwhile nobody has the id.
    if (thread == 0) {
      EXPECT_TRUE(said("ncclCommGrow waits for the unique id by which to grow"));
    }
    ASSERT_EQ(member ? ncclCommGrow(comm, 4, thread == 0 ? &second : nullptr, -1, &grown, nullptr)
                     : ncclCommGrow(nullptr, 4, &second, 3, &grown, nullptr),
              ncclSuccess);
    destroy(grown);
    if (member) destroy(comm);
  });
}

TEST(WorldGrow, AnIdIsUsedOnce) {
  test::allowLog("used before");
  test::allowLog("Bootstrap");
  test::useDevice(0);
  ncclComm_t one = nullptr;
  ASSERT_EQ(ncclCommInitRank(&one, 1, test::newId(), 0), ncclSuccess);
  ncclUniqueId growth{};
  ASSERT_EQ(ncclCommGetUniqueId(one, &growth), ncclSuccess);
  test::runRanks(2, [&](int rank) {
    test::useDevice(rank);
    ncclComm_t grown = nullptr;
    if (rank == 0) {
      ASSERT_EQ(ncclCommGrow(one, 2, &growth, -1, &grown, nullptr), ncclSuccess);
    }
    if (rank == 1) {
      ASSERT_EQ(ncclCommGrow(nullptr, 2, &growth, 1, &grown, nullptr), ncclSuccess);
    }
    destroy(grown);
  });
  ncclComm_t again = nullptr;
  EXPECT_EQ(ncclCommGrow(one, 2, &growth, -1, &again, nullptr), ncclInvalidArgument);
  EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("used before"), std::string::npos);
  EXPECT_EQ(ncclCommGrow(nullptr, 2, &growth, 1, &again, nullptr), ncclRemoteError);
  EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("was the id used before"), std::string::npos);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(ncclCommAbort(again), ncclSuccess);
  destroy(one);
}

TEST(WorldGrow, AWaitForNewcomersWhoDoNotComeEndsWithAnAbort) {
  test::allowLog("abort");
  test::useDevice(0);
  ncclConfig_t config = nonBlocking();
  ncclComm_t one = nullptr;
  ncclCommInitRankConfig(&one, 1, test::newId(), 0, &config);
  ASSERT_EQ(settle(one), ncclSuccess);
  ncclUniqueId growth{};
  ASSERT_EQ(ncclCommGetUniqueId(one, &growth), ncclSuccess);
  ncclComm_t grown = nullptr;
  ASSERT_EQ(ncclCommGrow(one, 3, &growth, -1, &grown, nullptr), ncclSuccess);
  ncclResult_t state = ncclSuccess;
  EXPECT_EQ(ncclCommGetAsyncError(grown, &state), ncclSuccess);
  EXPECT_EQ(state, ncclInProgress);
  destroy(one);  // the new one does not need it
  const auto start = SteadyClock::now();
  EXPECT_EQ(ncclCommAbort(grown), ncclSuccess);
  EXPECT_LT(secondsSince(start), 10.0);
}

}  // namespace
}  // namespace tutti::comm
