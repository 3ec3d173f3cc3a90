// Communicators that give their memory back for a while. Run once for each transport (meson.build).
#include <array>
#include <atomic>
#include <barrier>
#include <filesystem>
#include <thread>

#include "comm/graph.h"
#include "comm/world.h"
#include "gpu/driver_calls.h"
#include "support/log_capture.h"
#include "support/scoped_log.h"
#include "support/until.h"

namespace tutti::comm {
namespace {

using test::Ints;
using test::Member;
using test::Recording;
using test::withComm;

constexpr std::size_t kCount = 5000;

std::uint64_t stat(const Member& m, ncclCommMemStat_t which) {
  std::uint64_t value = ~std::uint64_t{0};
  EXPECT_EQ(ncclCommMemStats(m.comm, which, &value), ncclSuccess);
  return value;
}

void suspend(const Member& m) {
  ASSERT_EQ(ncclCommSuspend(m.comm, NCCL_SUSPEND_MEM), ncclSuccess);
}

void resume(const Member& m) {
  ASSERT_EQ(ncclCommResume(m.comm), ncclSuccess);
}

/// What all ranks' AllReduce of `factor` times the rank plus one comes to.
int sumOfRanks(const Member& m, int factor) {
  return factor * m.size * (m.size + 1) / 2;
}

void checkAllReduce(const Member& m, int factor) {
  const Ints in(m.gpu, kCount, factor * (m.rank + 1));
  const Ints out(m.gpu, kCount, -1);
  ASSERT_EQ(ncclAllReduce(in.at(), out.at(), kCount, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
  m.sync();
  EXPECT_EQ(out.read(), std::vector<int>(kCount, sumOfRanks(m, factor)));
}

void checkMessages(const Member& m, int factor) {
  const Ints in(m.gpu, kCount, factor * (m.rank + 1));
  const Ints out(m.gpu, kCount, -1);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(ncclSend(in.at(), kCount, ncclInt32, (m.rank + 1) % m.size, m.comm, m.stream()), ncclSuccess);
  const int from = (m.rank + m.size - 1) % m.size;
  ASSERT_EQ(ncclRecv(out.at(), kCount, ncclInt32, from, m.comm, m.stream()), ncclSuccess);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  m.sync();
  EXPECT_EQ(out.read(), std::vector<int>(kCount, factor * (from + 1)));
}

void checkAlltoAll(const Member& m) {
  const std::size_t block = kCount / static_cast<std::size_t>(m.size);
  const Ints in(m.gpu, kCount, m.rank);
  const Ints out(m.gpu, kCount, -1);
  ASSERT_EQ(ncclAlltoAll(in.at(), out.at(), block, ncclInt32, m.comm, m.stream()), ncclSuccess);
  m.sync();
  std::vector<int> expected(kCount, -1);
  for (std::size_t i = 0; i < block * static_cast<std::size_t>(m.size); ++i) expected[i] = static_cast<int>(i / block);
  EXPECT_EQ(out.read(), expected);
}

TEST(WorldSuspend, ResultsAreRightAfterResume) {
  withComm(3, [](Member& m) {
    checkAllReduce(m, 1);
    checkMessages(m, 1);
    suspend(m);
    resume(m);
    for (int factor = 2; factor < 12; ++factor) {
      checkAllReduce(m, factor);
      checkMessages(m, factor);
    }
    checkAlltoAll(m);  // over connections that were not there before
  });
}

TEST(WorldSuspend, TheBytesThatTheStatisticsNameAreFreeWhileSuspended) {
  withComm(3, [](Member& m) {
    checkAllReduce(m, 1);
    checkMessages(m, 1);
    const std::uint64_t releasable = stat(m, ncclStatGpuMemSuspend);
    const std::uint64_t persistent = stat(m, ncclStatGpuMemPersist);
    EXPECT_GT(releasable, 0U);
    EXPECT_GT(persistent, 0U);
    EXPECT_EQ(stat(m, ncclStatGpuMemTotal), releasable + persistent);
    EXPECT_EQ(stat(m, ncclStatGpuMemSuspended), 0U);
    const std::size_t before = test::freeDeviceMemory();
    suspend(m);
    EXPECT_EQ(test::freeDeviceMemory() - before, releasable);
    EXPECT_EQ(stat(m, ncclStatGpuMemSuspended), 1U);
    EXPECT_EQ(stat(m, ncclStatGpuMemSuspend), releasable);
    EXPECT_EQ(stat(m, ncclStatGpuMemPersist), persistent);
    resume(m);
    EXPECT_EQ(test::freeDeviceMemory(), before);
    EXPECT_EQ(stat(m, ncclStatGpuMemSuspended), 0U);
    EXPECT_EQ(stat(m, ncclStatGpuMemTotal), releasable + persistent);
    checkAllReduce(m, 2);
  });
}

TEST(WorldSuspend, GraphsThatWereCapturedBeforeAreReplayedAfterwards) {
  withComm(3, [](Member& m) {
    const Ints in(m.gpu, kCount, m.rank + 1);
    const Ints sums(m.gpu, kCount, -1);
    const Ints blocks(m.gpu, kCount, -1);
    const auto graph = Recording::of(m.stream(), [&] {
      EXPECT_EQ(ncclAllReduce(in.at(), sums.at(), kCount, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
      EXPECT_EQ(ncclAlltoAll(sums.at(), blocks.at(), kCount / 3, ncclInt32, m.comm, m.stream()), ncclSuccess);
    });
    for (int round = 0; round < 3; ++round) {
      const std::vector<int> values(kCount, (round + 1) * (m.rank + 1));
      ASSERT_TRUE(
          gpu::copyToDevice(m.gpu, reinterpret_cast<CUdeviceptr>(in.at()), std::as_bytes(std::span(values))).ok());
      graph->launch(m.stream());
      m.sync();
      EXPECT_EQ(sums.read(), std::vector<int>(kCount, sumOfRanks(m, round + 1)));
      EXPECT_EQ(blocks.read().front(), sumOfRanks(m, round + 1));
      suspend(m);
      resume(m);
    }
    checkAllReduce(m, 5);
  });
}

TEST(WorldSuspend, OperationsUnderWayAreWaitedFor) {
  withComm(2, [](Member& m) {
    const Ints in(m.gpu, kCount, m.rank + 1);
    const Ints out(m.gpu, kCount, -1);
    for (int call = 0; call < 20; ++call) {
      ASSERT_EQ(ncclAllReduce(in.at(), out.at(), kCount, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
    }
    suspend(m);
    EXPECT_EQ(out.read(), std::vector<int>(kCount, 3));
    resume(m);
  });
}

TEST(WorldSuspend, CallsInTheWrongOrderAreRefused) {
  for (int i = 0; i < 2; ++i) {  // of both ranks
    test::expectLog("CommResume : rank");
    test::expectLog("CommSuspend : invalid flags 0x2");
    test::expectLog("CommSuspend : rank");
    test::expectLog("until all ranks have called ncclCommResume");
    test::expectLog("CommMemStats : unknown statistic 9");
    test::expectLog("CommMemStats : value argument is NULL");
  }
  withComm(2, [](Member& m) {
    EXPECT_EQ(ncclCommResume(m.comm), ncclInvalidUsage);
    EXPECT_EQ(ncclCommSuspend(m.comm, 2), ncclInvalidArgument);
    EXPECT_EQ(ncclCommMemStats(m.comm, static_cast<ncclCommMemStat_t>(9), nullptr), ncclInvalidArgument);
    std::uint64_t value = 0;
    EXPECT_EQ(ncclCommMemStats(m.comm, static_cast<ncclCommMemStat_t>(9), &value), ncclInvalidArgument);
    suspend(m);
    EXPECT_EQ(ncclCommSuspend(m.comm, NCCL_SUSPEND_MEM), ncclInvalidUsage);
    const Ints data(m.gpu, kCount, 1);
    EXPECT_EQ(ncclAllReduce(data.at(), data.at(), kCount, ncclInt32, ncclSum, m.comm, m.stream()), ncclInvalidUsage);
    ncclResult_t state = ncclInternalError;
    EXPECT_EQ(ncclCommGetAsyncError(m.comm, &state), ncclSuccess);
    EXPECT_EQ(state, ncclSuccess) << "the caller's mistakes leave it usable";
    resume(m);
    checkAllReduce(m, 1);
  });
}

TEST(WorldSuspend, WithoutFlagsNothingHappens) {
  withComm(2, [](Member& m) {
    EXPECT_EQ(ncclCommSuspend(m.comm, 0), ncclSuccess);
    EXPECT_EQ(stat(m, ncclStatGpuMemSuspended), 0U);
    checkAllReduce(m, 1);
  });
}

TEST(WorldSuspend, TheMemoryManagerCanBeForbidden) {
  const test::ScopedEnv setting("NCCL_DISABLE_MEM_MANAGER", "1");
  test::allowLog("NCCL_DISABLE_MEM_MANAGER=1 forbids it");
  withComm(2, [](Member& m) {
    std::uint64_t value = 0;
    EXPECT_EQ(ncclCommSuspend(m.comm, NCCL_SUSPEND_MEM), ncclInvalidUsage);
    EXPECT_EQ(ncclCommResume(m.comm), ncclInvalidUsage);
    EXPECT_EQ(ncclCommMemStats(m.comm, ncclStatGpuMemTotal, &value), ncclInvalidUsage);
    checkAllReduce(m, 1);
  });
}

TEST(WorldSuspend, ALoneRankSuspendsToo) {
  withComm(1, [](Member& m) {
    suspend(m);
    EXPECT_EQ(stat(m, ncclStatGpuMemSuspended), 1U);
    resume(m);
    checkAllReduce(m, 1);
  });
}

TEST(WorldSuspend, NonBlockingCommunicatorsAreInProgressMeanwhile) {
  const ncclUniqueId id = test::newId();
  test::runRanks(3, [&](int rank) {
    test::useDevice(rank);
    Member m{rank, 3, nullptr, test::device(rank), gpu::Stream::create(test::device(rank)).value()};
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const auto done = [](ncclResult_t code) { return code == ncclSuccess || code == ncclInProgress; };
    ASSERT_TRUE(done(ncclCommInitRankConfig(&m.comm, 3, id, rank, &config)));
    ASSERT_EQ(test::settle(m.comm), ncclSuccess);
    EXPECT_EQ(ncclCommSuspend(m.comm, NCCL_SUSPEND_MEM), ncclInProgress);
    ASSERT_EQ(test::settle(m.comm), ncclSuccess);
    EXPECT_EQ(stat(m, ncclStatGpuMemSuspended), 1U);
    EXPECT_EQ(ncclCommResume(m.comm), ncclInProgress);
    ASSERT_EQ(test::settle(m.comm), ncclSuccess);
    EXPECT_EQ(stat(m, ncclStatGpuMemSuspended), 0U);
    const Ints data(m.gpu, kCount, rank + 1);
    ASSERT_TRUE(done(ncclAllReduce(data.at(), data.at(), kCount, ncclInt32, ncclSum, m.comm, m.stream())));
    ASSERT_EQ(test::settle(m.comm), ncclSuccess);
    m.sync();
    EXPECT_EQ(data.read(), std::vector<int>(kCount, 6));
    EXPECT_EQ(ncclCommDestroy(m.comm), ncclSuccess);
  });
}

TEST(WorldSuspend, OneThreadSuspendsAllRanksInAGroup) {
  constexpr int kRanks = 3;
  test::useDevice(0);
  std::array<ncclComm_t, kRanks> comms{};
  ASSERT_EQ(ncclCommInitAll(comms.data(), kRanks, nullptr), ncclSuccess);
  for (int cycle = 0; cycle < 2; ++cycle) {
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommSuspend(comm, NCCL_SUSPEND_MEM), ncclSuccess);
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommResume(comm), ncclSuccess);
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  }
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(WorldSuspend, AGroupThatFailsSuspendsNothing) {
  for (int i = 0; i < 2; ++i) test::expectLog("invalid flags");
  withComm(2, [](Member& m) {
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclCommSuspend(m.comm, NCCL_SUSPEND_MEM), ncclSuccess);
    EXPECT_EQ(ncclCommSuspend(m.comm, 8), ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
    EXPECT_EQ(stat(m, ncclStatGpuMemSuspended), 0U);
    checkAllReduce(m, 1);
  });
}

TEST(WorldSuspend, WithUnknownFlagsInAGroupEndsTheGroupAlone) {
  test::allowLog("invalid flags");
  test::allowLog("not in a group call");
  const auto names = [](const char* words) {
    return std::string(ncclGetLastError(nullptr)).find(words) != std::string::npos;
  };
  withComm(2, [&](Member& m) {
    const Ints data(m.gpu, kCount, 1);
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(data.at(), data.at(), kCount, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
    EXPECT_EQ(ncclCommSuspend(m.comm, 6), ncclInvalidArgument);
    EXPECT_TRUE(names("CommSuspend : invalid flags 0x6")) << ncclGetLastError(nullptr);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
    EXPECT_TRUE(names("CommSuspend : invalid flags 0x6")) << ncclGetLastError(nullptr);
    m.sync();
    EXPECT_EQ(data.read(), std::vector<int>(kCount, 1)) << "nothing of the group is carried out";
    EXPECT_EQ(stat(m, ncclStatGpuMemSuspended), 0U);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage) << "no group is open";
    checkAllReduce(m, 1);
  });
}

TEST(WorldSuspend, SuspendedCommunicatorsCanBeDestroyed) {
  withComm(3, [](Member& m) {
    checkAllReduce(m, 1);
    suspend(m);
  });
}

TEST(WorldSuspend, SuspendedCommunicatorsCanBeFinalized) {
  withComm(2, [](Member& m) {
    suspend(m);
    EXPECT_EQ(ncclCommFinalize(m.comm), ncclSuccess);
  });
}

TEST(WorldSuspend, SuspendedCommunicatorsCanBeAborted) {
  std::barrier suspended(3);
  test::allowLog("aborted its communicator");
  withComm(3, [&](Member& m) {
    suspend(m);
    suspended.arrive_and_wait();  // or the first to abort would disturb the others' suspension
    EXPECT_EQ(ncclCommAbort(m.comm), ncclSuccess);
    m.comm = nullptr;
  });
}

TEST(WorldSuspend, WaitingForARankThatDoesNotComeCanBeAborted) {
  test::allowLog("rank");
  std::atomic<ncclComm_t> waiting{nullptr};
  withComm(2, [&](Member& m) {
    if (m.rank == 0) {
      waiting.store(m.comm);
      EXPECT_NE(ncclCommSuspend(m.comm, NCCL_SUSPEND_MEM), ncclSuccess);
    } else {
      while (waiting.load() == nullptr) std::this_thread::sleep_for(milliseconds(1));
      std::this_thread::sleep_for(milliseconds(50));
      EXPECT_EQ(ncclCommAbort(waiting.load()), ncclSuccess);
      EXPECT_EQ(ncclCommAbort(m.comm), ncclSuccess);
    }
    m.comm = nullptr;
  });
}

TEST(WorldSuspend, ARankThatDoesNotComeBackIsNamed) {
  const test::ScopedEnv setting("TUTTI_BOOTSTRAP_TIMEOUT_SEC", "3");
  test::allowLog("rank");
  std::atomic<bool> over{false};
  withComm(2, [&](Member& m) {
    suspend(m);
    if (m.rank == 0) {
      EXPECT_EQ(ncclCommResume(m.comm), ncclRemoteError);
      EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("rank 1"), std::string::npos) << ncclGetLastError(nullptr);
      over.store(true);
    }
    while (!over.load()) std::this_thread::sleep_for(milliseconds(1));
    EXPECT_EQ(ncclCommAbort(m.comm), ncclSuccess);
    m.comm = nullptr;
  });
}

TEST(WorldSuspend, WhoDoesNotComeIsNamedToThoseWhoWaitAndWaitedFor) {
  const test::ScopedEnv setting("TUTTI_SPLIT_REPORT_SEC", "1");
  test::allowLog("waits in ncclComm");
  withComm(3, [](Member& m) {
    const auto comeLate = [&](const char* call) {
      const std::string words = std::string("waits in ") + call + " for rank 1 (host ";
      if (m.rank == 1) {
        EXPECT_TRUE(test::until([&] { return test::capturedText().find(words) != std::string::npos; })) << words;
      }
    };
    comeLate("ncclCommSuspend");
    suspend(m);
    comeLate("ncclCommResume");
    resume(m);
    checkAllReduce(m, 1);
  });
}

std::size_t openFiles() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST(WorldSuspend, TwentyCyclesLeaveNothingBehind) {
  std::size_t files = 0;
  withComm(3, [&](Member& m) {
    checkAllReduce(m, 1);
    checkMessages(m, 1);
    suspend(m);
    resume(m);
    const std::size_t free = test::freeDeviceMemory();
    const std::uint64_t total = stat(m, ncclStatGpuMemTotal);
    suspend(m);
    if (m.rank == 0) files = openFiles();  // the others wait for this one
    resume(m);
    for (int cycle = 0; cycle < 20; ++cycle) {
      suspend(m);
      resume(m);
      checkAllReduce(m, cycle);
    }
    EXPECT_EQ(test::freeDeviceMemory(), free);
    EXPECT_EQ(stat(m, ncclStatGpuMemTotal), total);
    suspend(m);
    if (m.rank == 0) {
      EXPECT_LE(openFiles(), files + 5) << "threads of the library's come and go with theirs";
    }
    resume(m);
  });
}

}  // namespace
}  // namespace tutti::comm
