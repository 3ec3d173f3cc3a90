// Making, asking and ending communicators, and what happens when ranks disagree, stay away, or go.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <latch>

#include "comm/state/call_gate.h"
#include "comm/state/communicator.h"
#include "comm/world.h"

namespace tutti::comm {
namespace {

using test::awaitError;
using test::Ints;
using test::Member;
using test::settle;
using test::withComm;

ncclConfig_t nonBlocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

std::size_t entries(const char* folder) {
  const std::filesystem::directory_iterator all(folder);
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

std::size_t freeDeviceMemory() {
  using Query = int (*)(std::size_t*, std::size_t*);
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const auto query = reinterpret_cast<Query>(dlsym(library, "cuMemGetInfo_v2"));
  std::size_t available = 0;
  std::size_t total = 0;
  EXPECT_EQ(query(&available, &total), 0);
  return available;
}

TEST(WorldInit, DifferentNumbersOfRanksAreRefusedEverywhere) {
  test::allowLog("rank");
  const ncclUniqueId id = test::newId();
  test::runRanks(2, [&](int rank) {
    test::useDevice(rank);
    ncclComm_t comm = reinterpret_cast<ncclComm_t>(16);
    EXPECT_EQ(ncclCommInitRank(&comm, 2 + rank, id, rank), ncclInvalidUsage);
    EXPECT_EQ(comm, nullptr);
  });
}

TEST(WorldInit, TwoRanksWithOneNumberAreRefusedEverywhere) {
  test::allowLog("rank");
  const ncclUniqueId id = test::newId();
  test::runRanks(3, [&](int thread) {
    test::useDevice(thread);
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, 3, id, std::min(thread, 1)), ncclInvalidUsage);
  });
  EXPECT_NE(test::capturedText().find("rank 1"), std::string::npos);
}

TEST(WorldInit, NonBlockingReportsTheSameErrorAsBlocking) {
  test::allowLog("rank");
  const ncclUniqueId id = test::newId();
  test::runRanks(2, [&](int rank) {
    test::useDevice(rank);
    ncclConfig_t config = nonBlocking();
    ncclComm_t comm = nullptr;
    ASSERT_EQ(ncclCommInitRankConfig(&comm, 2 + rank, id, rank, &config), ncclInProgress);
    EXPECT_EQ(test::settle(comm), ncclInvalidUsage);
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  });
}

TEST(WorldInit, IsPolledToItsEnd) {
  const ncclUniqueId id = test::newId();
  test::runRanks(2, [&](int rank) {
    test::useDevice(rank);
    ncclConfig_t config = nonBlocking();
    ncclComm_t comm = nullptr;
    ASSERT_EQ(ncclCommInitRankConfig(&comm, 2, id, rank, &config), ncclInProgress);
    ASSERT_EQ(test::settle(comm), ncclSuccess);
    int count = 0;
    EXPECT_EQ(ncclCommCount(comm, &count), ncclSuccess);
    EXPECT_EQ(count, 2);
    EXPECT_EQ(ncclCommFinalize(comm), ncclInProgress);
    EXPECT_EQ(test::settle(comm), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

TEST(WorldInit, IsNotUnderWayBeforeItsGroupEnds) {
  test::allowLog("before the previous operation returned");
  const ncclUniqueId id = test::newId();
  test::runRanks(2, [&](int rank) {
    test::useDevice(rank);
    ncclConfig_t config = nonBlocking();
    ncclComm_t comm = nullptr;
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, id, rank, &config), ncclSuccess);
    // As frameworks do, which would wait here for ever.
    EXPECT_EQ(test::settle(comm, std::chrono::seconds(1)), ncclSuccess);
    int count = 0;
    EXPECT_EQ(ncclCommCount(comm, &count), ncclInvalidArgument) << "it cannot be used yet all the same";
    const ncclResult_t ended = ncclGroupEnd();
    EXPECT_TRUE(ended == ncclInProgress || ended == ncclSuccess) << ended;
    EXPECT_EQ(test::settle(comm), ncclSuccess);
    EXPECT_EQ(ncclCommCount(comm, &count), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

TEST(WorldInit, CannotBeUsedWhileItGoesOn) {
  test::expectLog("before the previous operation returned");
  test::useDevice(0);
  ncclConfig_t config = nonBlocking();
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclCommInitRankConfig(&comm, 2, test::newId(), 0, &config), ncclInProgress);
  int count = 0;
  EXPECT_EQ(ncclCommCount(comm, &count), ncclInvalidArgument);
  EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
}

TEST(WorldAbort, EndsAnInitWhosePeerNeverComes) {
  const auto start = SteadyClock::now();
  test::useDevice(0);
  std::atomic<ncclComm_t> shared{nullptr};
  std::thread aborter([&] {
    while (shared.load() == nullptr) std::this_thread::sleep_for(milliseconds(1));
    std::this_thread::sleep_for(milliseconds(30));
    EXPECT_EQ(ncclCommAbort(shared.load()), ncclSuccess);
  });
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(ncclCommInitRankConfig(&comm, 2, test::newId(), 0, &config), ncclSuccess);
  shared = comm;
  EXPECT_NE(ncclGroupEnd(), ncclSuccess) << "blocks until the other thread aborts";
  aborter.join();
  EXPECT_LT(secondsSince(start), 10.0);
}

TEST(WorldAbort, EndsACollectiveThatWaitsAndIsAnnouncedByName) {
  test::allowLog("rank 0");
  std::atomic<int> issued{0};
  std::atomic<int> failed{0};
  test::withComm(3, [&](test::Member& m) {
    const test::Ints data(m.gpu, 1000, 1);
    // The first call connects, and waits for everybody.
    ASSERT_EQ(ncclAllReduce(data.at(), data.at(), 1000, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
    m.sync();
    if (m.rank != 2) {  // rank 2 takes no further part
      EXPECT_EQ(ncclAllReduce(data.at(), data.at(), 1000, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
      ++issued;
    }
    while (m.rank == 0 && issued < 2) std::this_thread::yield();  // else rank 1 may come when all is over
    if (m.rank == 1) {
      EXPECT_EQ(test::awaitError(m.comm), ncclRemoteError);
      ++failed;
    }
    while (m.rank == 2 && failed == 0) std::this_thread::yield();
    EXPECT_EQ(ncclCommAbort(m.comm), ncclSuccess);
    m.comm = nullptr;
    m.sync();
  });
  EXPECT_NE(test::capturedText().find("rank 0"), std::string::npos);
}

TEST(WorldAbort, IsToldToPeersAtOnceThoughACallOfItsOwnIsStuck) {
  test::allowLog("rank 0");
  test::expectLog("a call on another thread did not return within 10 s");
  std::atomic<bool> issued{false};
  test::withComm(2, [&](test::Member& m) {
    const test::Ints data(m.gpu, 1000, 1);
    ASSERT_EQ(ncclAllReduce(data.at(), data.at(), 1000, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
    m.sync();
    const auto start = SteadyClock::now();
    if (m.rank == 0) {
      while (!issued) std::this_thread::yield();  // else rank 1 may come when all is over
      // The memory stays: what is stuck may come back.
      const CallGate::Pass stuck(*m.comm->gate);
      EXPECT_EQ(ncclCommAbort(m.comm), ncclSuccess);
      EXPECT_GE(secondsSince(start), 9.9);
    } else {
      EXPECT_EQ(ncclAllReduce(data.at(), data.at(), 1000, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
      issued = true;
      EXPECT_EQ(test::awaitError(m.comm), ncclRemoteError);
      EXPECT_LT(secondsSince(start), 5.0);
      EXPECT_EQ(ncclCommAbort(m.comm), ncclSuccess);
    }
    m.comm = nullptr;
    m.sync();
  });
  EXPECT_NE(test::capturedText().find("aborted its communicator"), std::string::npos);
}

TEST(WorldEnd, ASecondFinalizeIsRefused) {
  test::allowLog("finalized");
  test::withComm(2, [](test::Member& m) {
    EXPECT_EQ(ncclCommFinalize(m.comm), ncclSuccess);
    EXPECT_EQ(ncclCommFinalize(m.comm), ncclInvalidArgument);
    const test::Ints data(m.gpu, 4, 1);
    EXPECT_EQ(ncclAllReduce(data.at(), data.at(), 4, ncclInt32, ncclSum, m.comm, m.stream()), ncclInvalidArgument);
  });
}

TEST(WorldEnd, AGroupThatFailsEndsWhatWasToEnd) {
  test::allowLog("invalid type");
  test::withComm(1, [](test::Member&) {});  // loads what stays
  test::useDevice(0);
  const std::size_t before = freeDeviceMemory();
  test::withComm(1, [](test::Member& m) {
    const test::Ints data(m.gpu, 4, 1);
    ncclComm_t starts = nullptr;
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclCommInitRank(&starts, 1, test::newId(), 0), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(data.at(), data.at(), 4, static_cast<ncclDataType_t>(77), ncclSum, m.comm, m.stream()),
              ncclInvalidArgument);
    EXPECT_EQ(ncclCommDestroy(m.comm), ncclSuccess);
    EXPECT_EQ(ncclCommAbort(starts), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
    m.comm = nullptr;
  });
  EXPECT_EQ(freeDeviceMemory(), before);
}

TEST(WorldEnd, DestroyWaitsForWhatIsOnTheStream) {
  test::withComm(2, [](test::Member& m) {
    constexpr std::size_t kCount = 200'000;
    const test::Ints in(m.gpu, kCount, 1);
    const test::Ints out(m.gpu, kCount, -1);
    ASSERT_EQ(ncclAllReduce(in.at(), out.at(), kCount, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
    ASSERT_EQ(ncclCommDestroy(m.comm), ncclSuccess);
    m.comm = nullptr;
    EXPECT_EQ(out.read(), std::vector<int>(kCount, 2));
  });
}

TEST(WorldEnd, OneThreadMayDestroyInAnyOrder) {
  test::useDevice(0);
  for (const bool backwards : {false, true}) {
    ncclComm_t comms[4] = {};
    ASSERT_EQ(ncclCommInitAll(comms, 4, nullptr), ncclSuccess);
    if (backwards) std::reverse(std::begin(comms), std::end(comms));
    for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  }
}

void cycle() {
  ncclComm_t comms[2] = {};
  ASSERT_EQ(ncclCommInitAll(comms, 2, nullptr), ncclSuccess);
  for (ncclComm_t comm : comms) ASSERT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(WorldEnd, FiftyLivesLeaveNothingBehind) {
  test::useDevice(0);
  for (int i = 0; i < 3; ++i) cycle();
  // The thread that answers for a unique id ends a moment after its ranks have met.
  const auto settled = [](const char* folder, std::size_t limit) {
    const Deadline deadline = Deadline::in(std::chrono::seconds(5));
    while (entries(folder) > limit && !deadline.expired()) std::this_thread::sleep_for(milliseconds(5));
    return entries(folder);
  };
  std::this_thread::sleep_for(milliseconds(200));
  const std::size_t files = entries("/proc/self/fd");
  const std::size_t threads = entries("/proc/self/task");
  const std::size_t memory = freeDeviceMemory();
  for (int i = 0; i < 50; ++i) cycle();
  EXPECT_LE(settled("/proc/self/fd", files), files);
  EXPECT_LE(settled("/proc/self/task", threads), threads);
  EXPECT_EQ(freeDeviceMemory(), memory);
}

TEST(WorldGroup, DestroysEvenWhereItsOperationsFail) {
  test::allowLog("rank");
  // So that what every process needs once is there.
  test::useDevice(0);
  ncclComm_t first = nullptr;
  ASSERT_EQ(ncclCommInitRank(&first, 1, test::newId(), 0), ncclSuccess);
  ASSERT_EQ(ncclCommDestroy(first), ncclSuccess);
  std::atomic<bool> asked{false};
  test::withComm(2, [&](test::Member& m) {
    if (m.rank == 1) {
      const Deadline limit = Deadline::in(std::chrono::seconds(20));
      while (!asked && !limit.expired()) std::this_thread::sleep_for(milliseconds(1));
      std::this_thread::sleep_for(milliseconds(30));  // now the other waits for us to connect
      EXPECT_EQ(ncclCommAbort(m.comm), ncclSuccess);
      m.comm = nullptr;
      return;
    }
    const std::size_t memory = freeDeviceMemory();
    ncclComm_t ends = nullptr;
    ASSERT_EQ(ncclCommInitRank(&ends, 1, test::newId(), 0), ncclSuccess);
    ASSERT_LT(freeDeviceMemory(), memory);
    const test::Ints data(m.gpu, 8, 1);
    const std::size_t held = freeDeviceMemory();
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(ends), ncclSuccess);
    EXPECT_EQ(ncclSend(data.at(), 8, ncclInt32, 1, m.comm, m.stream()), ncclSuccess);
    asked = true;
    EXPECT_EQ(ncclGroupEnd(), ncclRemoteError);
    EXPECT_GT(freeDeviceMemory(), held);
    EXPECT_EQ(ncclCommAbort(m.comm), ncclSuccess);
    m.comm = nullptr;
  });
}

TEST(WorldGroup, BlockingAndNonBlockingDoNotMix) {
  test::expectLog("not allowed in the same group");
  test::useDevice(0);
  ncclComm_t blocking = nullptr;
  ASSERT_EQ(ncclCommInitRank(&blocking, 1, test::newId(), 0), ncclSuccess);
  ncclConfig_t config = nonBlocking();
  ncclComm_t other = nullptr;
  ncclCommInitRankConfig(&other, 1, test::newId(), 0, &config);
  ASSERT_EQ(test::settle(other), ncclSuccess);
  const test::Ints data(test::device(0), 8, 1);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(ncclSend(data.at(), 8, ncclInt32, 0, blocking, nullptr), ncclSuccess);
  EXPECT_EQ(ncclSend(data.at(), 8, ncclInt32, 0, other, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_EQ(ncclCommDestroy(blocking), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(other), ncclSuccess);
}

TEST(WorldGroup, ConnectsNonBlockingCommunicatorsInTheBackground) {
  const ncclUniqueId id = test::newId();
  test::runRanks(2, [&](int rank) {
    test::useDevice(rank);
    ncclConfig_t config = nonBlocking();
    ncclComm_t comm = nullptr;
    ncclCommInitRankConfig(&comm, 2, id, rank, &config);
    ASSERT_EQ(test::settle(comm), ncclSuccess);
    const gpu::Stream stream = gpu::Stream::create(test::device(rank)).value();
    const test::Ints in(test::device(rank), 100, rank);
    const test::Ints out(test::device(rank), 100, -1);
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclSend(in.at(), 100, ncclInt32, 1 - rank, comm, stream.get()), ncclSuccess);
    EXPECT_EQ(ncclRecv(out.at(), 100, ncclInt32, 1 - rank, comm, stream.get()), ncclSuccess);
    const ncclResult_t ended = ncclGroupEnd();
    EXPECT_TRUE(ended == ncclInProgress || ended == ncclSuccess) << ended;
    ASSERT_EQ(test::settle(comm), ncclSuccess);
    ASSERT_TRUE(gpu::waitStream(test::device(rank), stream.get(), nullptr).ok());
    EXPECT_EQ(out.read(), std::vector<int>(100, 1 - rank));
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

/// Freeing memory of a device waits for all that runs there, and what runs may wait for whom the application only then
/// gives up.
TEST(WorldAbort, IsNotHeldUpByAnotherCommunicatorsKernel) {
  test::allowLog("aborted its communicator");
  test::useDevice(0);
  // What the process keeps for each device is made with the first communicator.
  withComm(2, [](Member&) {});
  const std::size_t before = freeDeviceMemory();
  const ncclUniqueId id = test::newId();
  std::atomic<bool> aborted{false};
  std::latch bothThere(2);
  withComm(2, [&](Member& m) {
    ncclComm_t doomed = nullptr;
    EXPECT_EQ(ncclCommInitRank(&doomed, 2, id, m.rank), ncclSuccess);
    bothThere.arrive_and_wait();
    const Ints data(m.gpu, 4, 1);
    const auto allReduce = [&] {
      EXPECT_EQ(ncclAllReduce(data.at(), data.at(), 4, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
    };
    if (m.rank == 0) {
      allReduce();
      EXPECT_EQ(ncclCommAbort(doomed), ncclSuccess);
      aborted.store(true);
    } else {
      const Deadline deadline = Deadline::in(std::chrono::seconds(20));
      while (!aborted.load() && !deadline.expired()) std::this_thread::sleep_for(milliseconds(1));
      EXPECT_TRUE(aborted.load()) << "it waits for the other communicator's kernel";
      EXPECT_EQ(ncclCommAbort(doomed), ncclSuccess);
      allReduce();
    }
    m.sync();
    EXPECT_EQ(data.read(), std::vector<int>(4, 2));
  });
  // Its memory comes back when the kernel is done.
  const Deadline deadline = Deadline::in(std::chrono::seconds(20));
  while (freeDeviceMemory() < before && !deadline.expired()) std::this_thread::sleep_for(milliseconds(5));
  EXPECT_GE(freeDeviceMemory(), before);
}

}  // namespace
}  // namespace tutti::comm
