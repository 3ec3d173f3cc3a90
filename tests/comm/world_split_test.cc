// Communicators that are split.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <thread>

#include "comm/family.h"

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

TEST(WorldSplit, RanksOfOneColorReduceAmongThemselves) {
  withComm(6, [](Member& m) {
    ncclComm_t child = nullptr;
    ASSERT_EQ(ncclCommSplit(m.comm, m.rank % 2, 0, &child, nullptr), ncclSuccess);
    EXPECT_EQ(gathered(m, child, m.rank), m.rank % 2 == 0 ? (std::vector<int>{0, 2, 4}) : (std::vector<int>{1, 3, 5}));
    EXPECT_EQ(sumOf(m, child, m.rank), m.rank % 2 == 0 ? 6 : 9);
    EXPECT_EQ(sumOf(m, m.comm, 1), 6) << "the parent works on";
    destroy(child);
    EXPECT_EQ(sumOf(m, m.comm, 1), 6);
  });
}

TEST(WorldSplit, KeysGiveTheOrder) {
  withComm(4, [](Member& m) {
    ncclComm_t child = nullptr;
    ASSERT_EQ(ncclCommSplit(m.comm, -7, -m.rank, &child, nullptr), ncclSuccess) << "only -1 is no color";
    EXPECT_EQ(gathered(m, child, m.rank), (std::vector<int>{3, 2, 1, 0}));
    int rank = -1;
    int device = -1;
    EXPECT_EQ(ncclCommUserRank(child, &rank), ncclSuccess);
    EXPECT_EQ(rank, 3 - m.rank);
    EXPECT_EQ(ncclCommCuDevice(child, &device), ncclSuccess);
    EXPECT_EQ(device, m.rank);
    destroy(child);
  });
}

TEST(WorldSplit, WhoHasNoColorGetsNoCommunicator) {
  withComm(4, [](Member& m) {
    ncclComm_t child = reinterpret_cast<ncclComm_t>(16);
    ASSERT_EQ(ncclCommSplit(m.comm, m.rank == 1 ? NCCL_SPLIT_NOCOLOR : 3, 0, &child, nullptr), ncclSuccess);
    if (m.rank == 1) {
      EXPECT_EQ(child, nullptr);
    } else {
      EXPECT_EQ(gathered(m, child, m.rank), (std::vector<int>{0, 2, 3}));
      destroy(child);
    }
  });
}

TEST(WorldSplit, AColorMayHaveOneMember) {
  withComm(3, [](Member& m) {
    ncclComm_t child = nullptr;
    ASSERT_EQ(ncclCommSplit(m.comm, m.rank, 0, &child, nullptr), ncclSuccess);
    EXPECT_EQ(sumOf(m, child, m.rank), m.rank);
    destroy(child);
  });
}

TEST(WorldSplit, FourGenerationsOutliveTheirParents) {
  withComm(8, [](Member& m) {
    std::vector<ncclComm_t> line{m.comm};
    for (int generation = 0; generation < 4; ++generation) {
      int rank = 0;
      ASSERT_EQ(ncclCommUserRank(line.back(), &rank), ncclSuccess);
      ncclComm_t child = nullptr;
      ASSERT_EQ(ncclCommSplit(line.back(), rank % (generation < 3 ? 2 : 1), -rank, &child, nullptr), ncclSuccess);
      line.push_back(child);
      if (generation == 1) {  // the first goes before its grandchildren are made
        destroy(line.front());
        line.front() = m.comm = nullptr;
      }
    }
    for (ncclComm_t comm : line) {
      if (comm == nullptr) continue;
      int count = 0;
      EXPECT_EQ(ncclCommCount(comm, &count), ncclSuccess);
      EXPECT_EQ(sumOf(m, comm, 1), count);
      destroy(comm);
    }
  });
}

TEST(WorldSplit, ParentsAndChildrenEndInAnyOrder) {
  for (const bool parentFirst : {true, false}) {
    withComm(3, [&](Member& m) {
      ncclComm_t child = nullptr;
      ASSERT_EQ(ncclCommSplit(m.comm, 0, 0, &child, nullptr), ncclSuccess);
      ncclComm_t both[2] = {child, m.comm};
      if (parentFirst) std::swap(both[0], both[1]);
      m.comm = nullptr;
      destroy(both[0]);
      EXPECT_EQ(sumOf(m, both[1], 2), 6);
      destroy(both[1]);
    });
  }
}

TEST(WorldSplit, OfANonBlockingParentIsPolledThere) {
  const ncclUniqueId id = test::newId();
  test::runRanks(3, [&](int rank) {
    test::useDevice(rank);
    Member m{rank, 3, nullptr, test::device(rank), gpu::Stream::create(test::device(rank)).value()};
    ncclConfig_t config = nonBlocking();
    ncclCommInitRankConfig(&m.comm, 3, id, rank, &config);
    ASSERT_EQ(settle(m.comm), ncclSuccess);
    ncclComm_t child = reinterpret_cast<ncclComm_t>(16);
    ASSERT_EQ(ncclCommSplit(m.comm, 0, rank, &child, nullptr), ncclSuccess);
    ASSERT_EQ(settle(m.comm), ncclSuccess);
    ASSERT_NE(child, nullptr);
    ncclResult_t state = ncclInProgress;
    EXPECT_EQ(ncclCommGetAsyncError(child, &state), ncclSuccess);
    EXPECT_EQ(state, ncclSuccess);
    const Ints data(m.gpu, 10, 1);
    const ncclResult_t begun = ncclAllReduce(data.at(), data.at(), 10, ncclInt32, ncclSum, child, m.stream());
    EXPECT_TRUE(begun == ncclSuccess || begun == ncclInProgress) << "the child has the parent's configuration";
    ASSERT_EQ(settle(child), ncclSuccess);
    m.sync();
    EXPECT_EQ(data.read(), std::vector<int>(10, 3));
    destroy(child);
    destroy(m.comm);
  });
}

TEST(WorldSplit, TheParentSaysWhatItIsBusyWith) {
  test::expectLog("ncclCommSplit is still in progress");
  const ncclUniqueId id = test::newId();
  std::atomic<bool> asked{false};
  test::runRanks(2, [&](int rank) {
    test::useDevice(rank);
    ncclConfig_t config = nonBlocking();
    ncclComm_t comm = nullptr;
    ncclCommInitRankConfig(&comm, 2, id, rank, &config);
    ASSERT_EQ(settle(comm), ncclSuccess);
    ncclComm_t child = nullptr;
    while (rank == 1 && !asked) std::this_thread::sleep_for(milliseconds(1));
    ASSERT_EQ(ncclCommSplit(comm, 0, 0, &child, nullptr), ncclSuccess);
    if (rank == 0) {
      EXPECT_EQ(child, nullptr);
      ncclResult_t state = ncclSuccess;
      EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
      EXPECT_EQ(state, ncclInProgress);
      int count = 0;
      EXPECT_EQ(ncclCommCount(comm, &count), ncclInvalidArgument);
      asked = true;
    }
    ASSERT_EQ(settle(comm), ncclSuccess);
    destroy(child);
    destroy(comm);
  });
}

TEST(WorldSplit, AChildThatFailsLeavesTheParentUsable) {
  test::allowLog("nowhere");
  withComm(2, [](Member& m) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.netName = "nowhere";
    ncclComm_t child = nullptr;
    EXPECT_NE(ncclCommSplit(m.comm, 0, 0, &child, &config), ncclSuccess);
    const std::string why = ncclGetLastError(nullptr);
    EXPECT_NE(why.find("ncclCommSplit"), std::string::npos) << why;
    EXPECT_NE(why.find("nowhere"), std::string::npos) << why;
    ASSERT_NE(child, nullptr);
    EXPECT_EQ(ncclCommAbort(child), ncclSuccess);
    EXPECT_EQ(sumOf(m, m.comm, 1), 2);
    ASSERT_EQ(ncclCommSplit(m.comm, 0, 0, &child, nullptr), ncclSuccess);
    EXPECT_EQ(sumOf(m, child, 1), 2);
    destroy(child);
  });
}

TEST(WorldSplit, AChildThatFailsHasItsErrorToItselfWhereNobodyWaits) {
  test::allowLog("nowhere");
  const ncclUniqueId id = test::newId();
  test::runRanks(2, [&](int rank) {
    test::useDevice(rank);
    ncclConfig_t config = nonBlocking();
    ncclComm_t comm = nullptr;
    ncclCommInitRankConfig(&comm, 2, id, rank, &config);
    ASSERT_EQ(settle(comm), ncclSuccess);
    ncclConfig_t bad = NCCL_CONFIG_INITIALIZER;
    bad.netName = "nowhere";
    ncclComm_t child = nullptr;
    EXPECT_EQ(ncclCommSplit(comm, 0, 0, &child, &bad), ncclSuccess);
    EXPECT_EQ(settle(comm), ncclSuccess) << "the parent is healthy";
    ASSERT_NE(child, nullptr);
    ncclResult_t state = ncclSuccess;
    EXPECT_EQ(ncclCommGetAsyncError(child, &state), ncclSuccess);
    EXPECT_NE(state, ncclSuccess);
    EXPECT_NE(std::string(ncclGetLastError(child)).find("nowhere"), std::string::npos);
    EXPECT_EQ(ncclCommAbort(child), ncclSuccess);
    destroy(comm);
  });
}

TEST(WorldSplit, ABadConfigurationIsRefusedAtOnce) {
  test::allowLog("minCTAs");
  test::allowLog("channels");
  withComm(1, [](Member& m) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.minCTAs = 8;
    config.maxCTAs = 4;
    ncclComm_t child = reinterpret_cast<ncclComm_t>(16);
    EXPECT_EQ(ncclCommSplit(m.comm, 0, 0, &child, &config), ncclInvalidArgument);
    EXPECT_EQ(child, nullptr);
    EXPECT_EQ(sumOf(m, m.comm, 4), 4);
  });
}

TEST(WorldSplit, AFailureOfTheChildIsNoneOfTheParentAndTheOtherWayRound) {
  test::allowLog("rank");
  for (const bool childFails : {true, false}) {
    Turns turns(3);
    withComm(3, [&](Member& m) {
      ncclComm_t child = nullptr;
      ASSERT_EQ(ncclCommSplit(m.comm, 0, 0, &child, nullptr), ncclSuccess);
      turns.next();  // an abort may hit who is still at it
      ncclComm_t failing = childFails ? child : m.comm;
      ncclComm_t healthy = childFails ? m.comm : child;
      m.comm = nullptr;
      if (m.rank == 1) {
        EXPECT_EQ(ncclCommAbort(failing), ncclSuccess);
      } else {
        EXPECT_EQ(test::errorOfUse(m, failing), ncclRemoteError);
      }
      turns.next();
      EXPECT_EQ(sumOf(m, healthy, 1), 3);
      turns.next();
      if (m.rank != 1) {
        EXPECT_EQ(ncclCommAbort(failing), ncclSuccess);
      }
      turns.next();
      EXPECT_EQ(sumOf(m, healthy, 2), 6);
      destroy(healthy);
    });
  }
}

TEST(WorldSplit, AWaitForARankThatDoesNotCallEndsWithTheParentsAbort) {
  test::allowLog("abort");
  std::atomic<int> over{0};
  std::atomic<int> waiting{0};
  const auto start = SteadyClock::now();
  withComm(3, [&](Member& m) {
    if (m.rank != 2) {
      std::thread aborter([&, comm = m.comm] {
        while (waiting < 2) std::this_thread::sleep_for(milliseconds(1));
        std::this_thread::sleep_for(milliseconds(100));
        EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
      });
      ncclComm_t child = nullptr;
      ++waiting;
      EXPECT_NE(ncclCommSplit(m.comm, 0, 0, &child, nullptr), ncclSuccess);
      EXPECT_EQ(child, nullptr);
      aborter.join();
      ++over;
    }
    while (over < 2) std::this_thread::sleep_for(milliseconds(1));
    if (m.rank == 2) {
      EXPECT_EQ(ncclCommAbort(m.comm), ncclSuccess);
    }
    m.comm = nullptr;
  });
  EXPECT_LT(secondsSince(start), 15.0);
}

TEST(WorldSplit, GroupsSplitSeveralCommunicatorsOfOneThread) {
  test::useDevice(0);
  ncclComm_t parents[4] = {};
  ncclComm_t halves[4] = {};
  ncclComm_t again[4] = {};
  ASSERT_EQ(ncclCommInitAll(parents, 4, nullptr), ncclSuccess);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(ncclCommSplit(parents[i], i / 2, i, &halves[i], nullptr), ncclSuccess);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(ncclCommSplit(parents[i], i % 2, i, &again[i], nullptr), ncclSuccess);
  EXPECT_EQ(halves[0], nullptr) << "made at the group's end";
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  std::vector<Ints> data;
  for (int i = 0; i < 4; ++i) data.emplace_back(test::device(i), 8, i + 1);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(ncclAllReduce(data[i].at(), data[i].at(), 8, ncclInt32, ncclSum, again[i], nullptr), ncclSuccess);
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(gpu::waitStream(test::device(i), nullptr, nullptr).ok());
    EXPECT_EQ(data[static_cast<std::size_t>(i)].read(), std::vector<int>(8, i % 2 == 0 ? 4 : 6));
  }
  for (const auto& comms : {parents, halves, again}) {
    for (int i = 0; i < 4; ++i) destroy(comms[i]);
  }
}

std::size_t entries(const char* folder) {
  const std::filesystem::directory_iterator all(folder);
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST(WorldSplit, FiftyChildrenLeaveNothingBehind) {
  test::useDevice(0);
  ncclComm_t parents[2] = {};
  ASSERT_EQ(ncclCommInitAll(parents, 2, nullptr), ncclSuccess);
  const auto cycle = [&] {
    ncclComm_t children[2] = {};
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (int i = 0; i < 2; ++i) ASSERT_EQ(ncclCommSplit(parents[i], 0, 0, &children[i], nullptr), ncclSuccess);
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    for (ncclComm_t child : children) destroy(child);
  };
  for (int i = 0; i < 3; ++i) cycle();
  std::this_thread::sleep_for(milliseconds(200));  // the thread that answered for the unique id ends
  const std::size_t files = entries("/proc/self/fd");
  const std::size_t threads = entries("/proc/self/task");
  for (int i = 0; i < 50; ++i) cycle();
  EXPECT_LE(entries("/proc/self/fd"), files);
  EXPECT_LE(entries("/proc/self/task"), threads);
  for (ncclComm_t parent : parents) destroy(parent);
}

TEST(WorldSplit, ThreadsSplitDifferentParentsAtOnce) {
  constexpr int kParents = 3;
  std::vector<ncclUniqueId> ids;
  for (int i = 0; i < kParents; ++i) ids.push_back(test::newId());
  test::runRanks(2 * kParents, [&](int thread) {
    const int rank = thread % 2;
    test::useDevice(thread);
    Member m{rank, 2, nullptr, test::device(thread), gpu::Stream::create(test::device(thread)).value()};
    ncclConfig_t config = nonBlocking();
    ncclCommInitRankConfig(&m.comm, 2, ids[static_cast<std::size_t>(thread / 2)], rank, &config);
    ASSERT_EQ(settle(m.comm), ncclSuccess);
    for (int round = 0; round < 4; ++round) {
      ncclComm_t child = nullptr;
      ncclConfig_t blocking = NCCL_CONFIG_INITIALIZER;
      ASSERT_EQ(ncclCommSplit(m.comm, round % 2 == 0 ? 0 : rank, 0, &child, &blocking), ncclSuccess);
      ASSERT_EQ(settle(m.comm), ncclSuccess);
      EXPECT_EQ(sumOf(m, child, 1), round % 2 == 0 ? 2 : 1);
      destroy(child);
    }
    destroy(m.comm);
  });
}

TEST(WorldSplit, SixtyFourCommunicatorsOverSixteenRanks) {
  withComm(
      16,
      [](Member& m) {
        std::vector<ncclComm_t> children;
        for (int i = 0; i < 16; ++i) {
          // Four communicators a round, of four ranks each, ever others.
          ncclComm_t child = nullptr;
          const int color = i % 2 == 0 ? (m.rank + i) / 4 % 4 : (m.rank + i) % 4;
          ASSERT_EQ(ncclCommSplit(m.comm, color, (m.rank * 7 + i) % 16, &child, nullptr), ncclSuccess);
          children.push_back(child);
        }
        for (ncclComm_t child : children) {
          int count = 0;
          ASSERT_EQ(ncclCommCount(child, &count), ncclSuccess);
          EXPECT_EQ(count, 4);
          const std::vector<int> all = gathered(m, child, m.rank);
          EXPECT_EQ(std::count(all.begin(), all.end(), m.rank), 1);
        }
        for (ncclComm_t child : children) destroy(child);
      },
      16);
}

}  // namespace
}  // namespace tutti::comm
