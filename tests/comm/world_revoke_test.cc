// ncclCommRevoke: what is under way ends, the communicator stays, and its peers hear of it where they wait.
#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

#include "bootstrap/bootstrap.h"
#include "comm/graph.h"
#include "comm/state/communicator.h"
#include "comm/state/revocation.h"
#include "comm/world.h"
#include "support/until.h"

namespace tutti::comm {
namespace {

using test::Ints;
using test::Member;

constexpr std::size_t kCount = 3000;
/// Revoking takes as long as kernels and threads need to look at a word.
constexpr double kSoon = 8.0;

ncclResult_t allReduce(const Member& m, const Ints& data) {
  return ncclAllReduce(data.at(), data.at(), kCount, ncclInt32, ncclSum, m.comm, m.stream());
}

ncclResult_t stateOf(ncclComm_t comm) {
  ncclResult_t state = ncclInternalError;
  EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
  return state;
}

void awaitAll(const std::atomic<int>& count, int all) {
  const Deadline deadline = Deadline::in(std::chrono::seconds(20));
  while (count < all && !deadline.expired()) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_GE(count, all);
}

/// Ranks on threads, each with a non-blocking communicator.
void withNonBlocking(int ranks, const std::function<void(Member&)>& body) {
  const ncclUniqueId id = test::newId();
  test::runRanks(ranks, [&](int rank) {
    test::useDevice(rank);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    Member member{rank, ranks, nullptr, test::device(rank), gpu::Stream::create(test::device(rank)).value()};
    ncclCommInitRankConfig(&member.comm, ranks, id, rank, &config);
    ASSERT_EQ(test::settle(member.comm), ncclSuccess);
    body(member);
    EXPECT_EQ(ncclCommDestroy(member.comm), ncclSuccess);
  });
}

void expectRevoked(const Member& m, const Ints& data) {
  int number = -1;
  EXPECT_EQ(ncclCommCount(m.comm, &number), ncclSuccess);
  EXPECT_EQ(number, m.size);
  EXPECT_EQ(ncclCommUserRank(m.comm, &number), ncclSuccess);
  EXPECT_EQ(number, m.rank);
  EXPECT_EQ(stateOf(m.comm), ncclSuccess);
  EXPECT_EQ(allReduce(m, data), ncclInvalidUsage);
  EXPECT_NE(std::string(ncclGetLastError(m.comm)).find("AllReduce: communicator was revoked"), std::string::npos);
  EXPECT_EQ(ncclSend(data.at(), 1, ncclInt32, 0, m.comm, m.stream()), ncclInvalidUsage);
  EXPECT_EQ(ncclAllReduce(data.at(), data.at(), 0, ncclInt32, ncclSum, m.comm, m.stream()), ncclInvalidUsage);
  void* handle = &number;
  EXPECT_EQ(ncclCommRegister(m.comm, data.at(), 64, &handle), ncclInvalidUsage);
  EXPECT_EQ(ncclCommDeregister(m.comm, nullptr), ncclSuccess);
  ncclWindow_t window = nullptr;
  EXPECT_EQ(ncclCommWindowRegister(m.comm, data.at(), 64, &window, 0), ncclInvalidUsage);
  EXPECT_EQ(ncclCommFinalize(m.comm), ncclInvalidArgument);
  EXPECT_EQ(ncclCommRevoke(m.comm, NCCL_REVOKE_DEFAULT), ncclInvalidArgument) << "the second time";
  EXPECT_EQ(stateOf(m.comm), ncclSuccess);
}

void allowRefusals() {
  test::allowLog("communicator was revoked");
  test::allowLog("the communicator was revoked");
}

/// How ranks of this machine are connected.
struct Wire {
  const char* name;
  bool withoutP2p;
  bool withoutShm;
};

class WorldRevoke : public testing::TestWithParam<Wire> {
 protected:
  void SetUp() override {
    // No thread of the test runs yet.
    if (GetParam().withoutP2p) ::setenv("NCCL_P2P_DISABLE", "1", 1);  // NOLINT(concurrency-mt-unsafe)
    if (GetParam().withoutShm) ::setenv("NCCL_SHM_DISABLE", "1", 1);  // NOLINT(concurrency-mt-unsafe)
  }
  void TearDown() override {
    ::unsetenv("NCCL_P2P_DISABLE");  // NOLINT(concurrency-mt-unsafe)
    ::unsetenv("NCCL_SHM_DISABLE");  // NOLINT(concurrency-mt-unsafe)
  }
};

TEST_P(WorldRevoke, EndsACollectiveThatWaitsForARankThatNeverCalls) {
  allowRefusals();
  std::atomic<int> issued{0};
  std::atomic<int> revoked{0};
  test::withComm(3, [&](Member& m) {
    const Ints data(m.gpu, kCount, 1);
    ASSERT_EQ(allReduce(m, data), ncclSuccess);
    m.sync();
    if (m.rank != 2) {
      ASSERT_EQ(allReduce(m, data), ncclSuccess);
    }
    ++issued;
    awaitAll(issued, 3);
    const auto start = SteadyClock::now();
    EXPECT_EQ(ncclCommRevoke(m.comm, NCCL_REVOKE_DEFAULT), ncclSuccess);
    EXPECT_LT(secondsSince(start), kSoon);
    // The event after the kernel comes a moment before the stream is idle.
    const auto idle = [&] { return m.gpu.driver().cuStreamQuery(m.stream()) == CUDA_SUCCESS; };
    EXPECT_TRUE(test::until(idle)) << "the kernel has left";
    expectRevoked(m, data);
    ++revoked;
    awaitAll(revoked, 3);
    EXPECT_TRUE(m.comm->parts.bootstrap->barrier().ok()) << "the ranks still reach each other";
  });
}

TEST_P(WorldRevoke, IsPolledWhereTheCommunicatorIsNonBlocking) {
  allowRefusals();
  std::atomic<int> issued{0};
  withNonBlocking(3, [&](Member& m) {
    const Ints data(m.gpu, kCount, 1);
    allReduce(m, data);
    ASSERT_EQ(test::settle(m.comm), ncclSuccess);
    m.sync();
    if (m.rank != 2) {
      allReduce(m, data);
      ASSERT_EQ(test::settle(m.comm), ncclSuccess);
    }
    ++issued;
    awaitAll(issued, 3);
    EXPECT_EQ(ncclCommRevoke(m.comm, NCCL_REVOKE_DEFAULT), ncclInProgress);
    EXPECT_EQ(test::settle(m.comm, std::chrono::seconds(8)), ncclSuccess);
    // The event after the kernel comes a moment before the stream is idle.
    const auto idle = [&] { return m.gpu.driver().cuStreamQuery(m.stream()) == CUDA_SUCCESS; };
    EXPECT_TRUE(test::until(idle)) << "the kernel has left";
    expectRevoked(m, data);
  });
}

TEST_P(WorldRevoke, IsHeardByWhoWaitsAndByNobodyElse) {
  test::allowLog("has revoked the communicator");
  std::atomic<int> issued{0};
  std::atomic<bool> heard{false};
  test::withComm(3, [&](Member& m) {
    const Ints data(m.gpu, kCount, 1);
    ASSERT_EQ(allReduce(m, data), ncclSuccess);
    m.sync();
    if (m.rank == 1) {
      ASSERT_EQ(allReduce(m, data), ncclSuccess);
    }
    ++issued;
    awaitAll(issued, 3);
    if (m.rank == 0) {
      EXPECT_EQ(ncclCommRevoke(m.comm, NCCL_REVOKE_DEFAULT), ncclSuccess);
    }
    if (m.rank == 1) {
      EXPECT_EQ(test::awaitError(m.comm, std::chrono::seconds(8)), ncclRemoteError);
      const std::string text = ncclGetLastError(m.comm);
      EXPECT_EQ(text.rfind("rank 0 ", 0), 0U) << text;
      EXPECT_NE(text.find("has revoked the communicator"), std::string::npos) << text;
      EXPECT_EQ(ncclCommRevoke(m.comm, NCCL_REVOKE_DEFAULT), ncclSuccess) << "also after a failure";
      EXPECT_EQ(stateOf(m.comm), ncclSuccess);
      heard = true;
    }
    const Deadline deadline = Deadline::in(std::chrono::seconds(20));
    while (!heard && !deadline.expired()) std::this_thread::sleep_for(milliseconds(1));
    if (m.rank == 0) {
      EXPECT_EQ(stateOf(m.comm), ncclSuccess) << "who has revoked itself is not disturbed";
    }
    if (m.rank == 2) {
      EXPECT_EQ(stateOf(m.comm), ncclSuccess) << "it waits for nobody";
    }
  });
}

TEST_P(WorldRevoke, EndsACallOnAnotherThreadThatWaitsToBeConnected) {
  test::allowLog("revoked");
  std::atomic<bool> over{false};
  test::withComm(2, [&](Member& m) {
    const Ints data(m.gpu, kCount, 1);
    if (m.rank == 1) {
      const Deadline deadline = Deadline::in(std::chrono::seconds(20));
      while (!over && !deadline.expired()) std::this_thread::sleep_for(milliseconds(1));
      return;
    }
    std::thread revoker([&] {
      const Deadline deadline = Deadline::in(std::chrono::seconds(20));
      while (m.comm->progress.connecting.load() == nullptr && !deadline.expired()) std::this_thread::yield();
      EXPECT_EQ(ncclCommRevoke(m.comm, NCCL_REVOKE_DEFAULT), ncclSuccess);
    });
    const auto start = SteadyClock::now();
    EXPECT_EQ(ncclSend(data.at(), kCount, ncclInt32, 1, m.comm, m.stream()), ncclInvalidUsage);
    EXPECT_NE(std::string(ncclGetLastError(m.comm)).find("communicator was revoked"), std::string::npos)
        << ncclGetLastError(m.comm);
    EXPECT_LT(secondsSince(start), kSoon);
    revoker.join();
    EXPECT_EQ(stateOf(m.comm), ncclSuccess);
    over = true;
  });
}

TEST_P(WorldRevoke, EndsAReplayThatWaitsAndLaterOnesLeaveAtOnce) {
  std::atomic<int> issued{0};
  test::withComm(2, [&](Member& m) {
    const Ints data(m.gpu, kCount, 1);
    const auto graph = test::Recording::of(m.stream(), [&] { ASSERT_EQ(allReduce(m, data), ncclSuccess); });
    graph->launch(m.stream());
    m.sync();
    if (m.rank == 0) graph->launch(m.stream());  // and rank 1 does not
    ++issued;
    awaitAll(issued, 2);
    EXPECT_EQ(ncclCommRevoke(m.comm, NCCL_REVOKE_DEFAULT), ncclSuccess);
    m.sync();
    const auto start = SteadyClock::now();
    graph->launch(m.stream());
    m.sync();
    EXPECT_EQ(ncclCommDestroy(m.comm), ncclSuccess);
    m.comm = nullptr;
    graph->launch(m.stream());
    m.sync();
    EXPECT_LT(secondsSince(start), kSoon);
  });
}

INSTANTIATE_TEST_SUITE_P(Wires, WorldRevoke,
                         testing::Values(Wire{"P2P", false, false}, Wire{"SHM", true, false}, Wire{"TCP", true, true}),
                         [](const auto& wire) { return wire.param.name; });

TEST(WorldRevoked, IsRefusedAfterFinalize) {
  test::allowLog("finalized before");
  test::withComm(2, [](Member& m) {
    ASSERT_EQ(ncclCommFinalize(m.comm), ncclSuccess);
    EXPECT_EQ(ncclCommRevoke(m.comm, NCCL_REVOKE_DEFAULT), ncclInvalidArgument);
    EXPECT_EQ(stateOf(m.comm), ncclSuccess);
  });
}

TEST(WorldRevoked, WithWrongFlagsNothingHappens) {
  test::allowLog("invalid flags");
  test::withComm(2, [](Member& m) {
    EXPECT_EQ(ncclCommRevoke(m.comm, 2), ncclInvalidArgument);
    const Ints data(m.gpu, kCount, 1);
    EXPECT_EQ(allReduce(m, data), ncclSuccess);
    m.sync();
    EXPECT_EQ(data.read(), std::vector<int>(kCount, 2));
  });
}

/// Whether the last error of this thread names the call.
bool errorNames(const char* call) {
  return std::string(ncclGetLastError(nullptr)).find(call) != std::string::npos;
}

TEST(WorldRevoked, WithWrongFlagsInAGroupEndsTheGroupAlone) {
  test::allowLog("invalid flags");
  test::withComm(2, [](Member& m) {
    const Ints data(m.gpu, kCount, 1);
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(allReduce(m, data), ncclSuccess);
    EXPECT_EQ(ncclCommRevoke(m.comm, 2), ncclInvalidArgument);
    EXPECT_TRUE(errorNames("CommRevoke : invalid flags 0x2")) << ncclGetLastError(nullptr);
    EXPECT_EQ(allReduce(m, data), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
    EXPECT_TRUE(errorNames("CommRevoke : invalid flags 0x2")) << ncclGetLastError(nullptr);
    m.sync();
    EXPECT_EQ(data.read(), std::vector<int>(kCount, 1)) << "nothing of the group is carried out";
    EXPECT_EQ(stateOf(m.comm), ncclSuccess);
    EXPECT_EQ(allReduce(m, data), ncclSuccess) << "no group is open, and nothing was revoked";
    m.sync();
    EXPECT_EQ(data.read(), std::vector<int>(kCount, 2));
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  });
  test::allowLog("not in a group call");
}

TEST(WorldRevoked, InAGroupThatFailsIsRevokedAllTheSame) {
  test::allowLog("invalid root");
  test::allowLog("revoked");
  test::withComm(2, [](Member& m) {
    const Ints data(m.gpu, kCount, 1);
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclBroadcast(data.at(), data.at(), kCount, ncclInt32, 9, m.comm, m.stream()), ncclInvalidArgument);
    EXPECT_EQ(ncclCommRevoke(m.comm, NCCL_REVOKE_DEFAULT), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
    EXPECT_TRUE(errorNames("Broadcast : invalid root 9")) << ncclGetLastError(nullptr);
    EXPECT_EQ(allReduce(m, data), ncclInvalidUsage);
    EXPECT_TRUE(errorNames("AllReduce: communicator was revoked")) << ncclGetLastError(nullptr);
  });
}

TEST(WorldRevoked, CannotGrow) {
  test::allowLog("revoked");
  test::withComm(2, [](Member& m) {
    ncclUniqueId id{};
    if (m.rank == 0) {
      ASSERT_EQ(ncclCommGetUniqueId(m.comm, &id), ncclSuccess);
    }
    ASSERT_EQ(ncclCommRevoke(m.comm, NCCL_REVOKE_DEFAULT), ncclSuccess);
    ncclComm_t grown = nullptr;
    EXPECT_EQ(ncclCommGrow(m.comm, 3, m.rank == 0 ? &id : nullptr, -1, &grown, nullptr), ncclInvalidUsage);
    EXPECT_TRUE(errorNames("CommGrow: communicator was revoked")) << ncclGetLastError(nullptr);
    EXPECT_EQ(grown, nullptr);
    EXPECT_EQ(ncclCommGetUniqueId(m.comm, &id), ncclInvalidUsage);
    EXPECT_TRUE(errorNames("CommGetUniqueId: communicator was revoked")) << ncclGetLastError(nullptr);
  });
}

/// Splits what was revoked, and uses the child, which has the parent's configuration.
void splitAndUse(Member& m) {
  ASSERT_EQ(test::settle(m.comm), ncclSuccess);
  ncclComm_t child = nullptr;
  ASSERT_EQ(ncclCommSplit(m.comm, m.rank / 2, -m.rank, &child, nullptr), ncclSuccess) << ncclGetLastError(nullptr);
  ASSERT_EQ(test::settle(m.comm), ncclSuccess);
  ASSERT_NE(child, nullptr);
  int place = -1;
  EXPECT_EQ(ncclCommUserRank(child, &place), ncclSuccess);
  EXPECT_EQ(place, 1 - m.rank % 2);
  const Ints data(m.gpu, kCount, m.rank);
  const ncclResult_t begun = ncclAllReduce(data.at(), data.at(), kCount, ncclInt32, ncclSum, child, m.stream());
  EXPECT_TRUE(begun == ncclSuccess || begun == ncclInProgress) << begun;
  ASSERT_EQ(test::settle(child), ncclSuccess);
  m.sync();
  EXPECT_EQ(data.read(), std::vector<int>(kCount, m.rank < 2 ? 1 : 5));
  EXPECT_EQ(ncclCommDestroy(child), ncclSuccess);
}

TEST(WorldRevoked, CanBeSplit) {
  test::allowLog("revoked");
  test::withComm(4, [](Member& m) {
    const Ints data(m.gpu, kCount, 1);
    ASSERT_EQ(allReduce(m, data), ncclSuccess);
    ASSERT_EQ(ncclCommRevoke(m.comm, NCCL_REVOKE_DEFAULT), ncclSuccess);
    splitAndUse(m);
    EXPECT_EQ(allReduce(m, data), ncclInvalidUsage) << "it stays revoked";
  });
}

TEST(WorldRevoked, CanBeSplitWhereNothingBlocks) {
  test::allowLog("revoked");
  withNonBlocking(4, [](Member& m) {
    const ncclResult_t revoked = ncclCommRevoke(m.comm, NCCL_REVOKE_DEFAULT);
    EXPECT_TRUE(revoked == ncclSuccess || revoked == ncclInProgress) << revoked;
    splitAndUse(m);
  });
}

TEST(WorldRevoked, CanBeAborted) {
  test::withComm(2, [](Member& m) {
    EXPECT_EQ(ncclCommRevoke(m.comm, NCCL_REVOKE_DEFAULT), ncclSuccess);
    EXPECT_EQ(ncclCommAbort(m.comm), ncclSuccess);
    m.comm = nullptr;
  });
}

TEST(WorldRevoked, ItsDestroyIsNoFailureToAPeerThatIsIdle) {
  std::atomic<bool> gone{false};
  test::withComm(2, [&](Member& m) {
    if (m.rank == 0) {
      EXPECT_EQ(ncclCommRevoke(m.comm, NCCL_REVOKE_DEFAULT), ncclSuccess);
      EXPECT_EQ(ncclCommDestroy(m.comm), ncclSuccess);
      m.comm = nullptr;
      gone = true;
      return;
    }
    const Deadline deadline = Deadline::in(std::chrono::seconds(20));
    while (!gone && !deadline.expired()) std::this_thread::sleep_for(milliseconds(1));
    std::this_thread::sleep_for(milliseconds(600));
    EXPECT_EQ(stateOf(m.comm), ncclSuccess);
  });
}

TEST(WorldRevoked, InAGroupItStopsTheGroupsOperations) {
  test::allowLog("communicator was revoked");
  test::withComm(2, [](Member& m) {
    const Ints data(m.gpu, kCount, 7);
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(allReduce(m, data), ncclSuccess);
    EXPECT_EQ(ncclCommRevoke(m.comm, NCCL_REVOKE_DEFAULT), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
    EXPECT_EQ(stateOf(m.comm), ncclSuccess);
    m.sync();
    EXPECT_EQ(data.read(), std::vector<int>(kCount, 7));
  });
}

TEST(WorldRevoked, AGroupRevokesManyOfOneThread) {
  test::useDevice(0);
  ncclComm_t comms[4] = {};
  ASSERT_EQ(ncclCommInitAll(comms, 4, nullptr), ncclSuccess);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT), ncclSuccess);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  for (ncclComm_t comm : comms) EXPECT_EQ(stateOf(comm), ncclSuccess);
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(WorldRevoked, EndsAnInitWhosePeerNeverComes) {
  test::allowLog("revoked");
  test::useDevice(0);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclCommInitRankConfig(&comm, 2, test::newId(), 0, &config), ncclInProgress);
  EXPECT_EQ(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT), ncclInProgress);
  EXPECT_EQ(test::settle(comm), ncclInvalidUsage) << "it never came up";
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(WorldRevoked, AFailedOneCanBeAskedAgain) {
  test::allowLog("rank 1");
  test::allowLog("revoked");
  test::withComm(2, [](Member& m) {
    if (m.rank == 1) {
      EXPECT_EQ(ncclCommAbort(m.comm), ncclSuccess);
      m.comm = nullptr;
      return;
    }
    const Ints data(m.gpu, kCount, 1);
    // Fails at once where word of the abort has come, and otherwise while its kernel waits.
    if (allReduce(m, data) == ncclSuccess) {
      ASSERT_EQ(test::awaitError(m.comm), ncclRemoteError);
    }
    EXPECT_EQ(ncclCommRevoke(m.comm, NCCL_REVOKE_DEFAULT), ncclSuccess);
    expectRevoked(m, data);
  });
}

TEST(WorldRevoked, AnAbortOfAnotherThreadWaitsForIt) {
  std::atomic<int> issued{0};
  test::withComm(2, [&](Member& m) {
    const Ints data(m.gpu, kCount, 1);
    ASSERT_EQ(allReduce(m, data), ncclSuccess);
    m.sync();
    if (m.rank == 0) {
      ASSERT_EQ(allReduce(m, data), ncclSuccess);
    }
    ++issued;
    awaitAll(issued, 2);
    ncclComm_t const comm = m.comm;
    std::thread aborter([&] {
      while (!comm->progress.revocation->begun()) std::this_thread::yield();
      EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    });
    const ncclResult_t revoked = ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT);
    EXPECT_EQ(revoked, ncclSuccess);
    aborter.join();
    m.comm = nullptr;
    m.sync();
  });
}

}  // namespace
}  // namespace tutti::comm
