// What is different in a family that shares connections: ends, refusals, configurations. Run once for each transport
// (meson.build).
#include <optional>
#include <string>
#include <utility>

#include "comm/graph.h"
#include "comm/share.h"
#include "comm/state/communicator.h"
#include "comm/state/membership.h"
#include "support/scoped_log.h"
#include "support/until.h"

namespace tutti::comm {
namespace {

using test::checkAll;
using test::destroy;
using test::Ints;
using test::kCount;
using test::Member;
using test::memoryOf;
using test::Recording;
using test::Round;
using test::sharing;
using test::splitOf;
using test::sumOf;
using test::Turns;
using test::withFamily;

TEST(WorldShareRules, TheAbortOfOneEndsAll) {
  test::allowLog("given them up");
  test::allowLog("abort");
  Turns turns(3);
  withFamily(3, [&](Member& m) {
    const ncclComm_t child = splitOf(m.comm);
    const ncclComm_t grandchild = splitOf(child);
    for (ncclComm_t comm : {m.comm, child, grandchild}) checkAll(m, comm, 1);
    turns.next();
    if (m.rank == 1) {
      EXPECT_EQ(ncclCommAbort(child), ncclSuccess);
      for (ncclComm_t comm : {m.comm, grandchild}) {
        ncclResult_t state = ncclSuccess;
        EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
        EXPECT_EQ(state, ncclInvalidUsage);
        const std::string why = ncclGetLastError(comm);
        EXPECT_NE(why.find("shares its connections"), std::string::npos) << why;
        EXPECT_NE(why.find("ncclCommAbort"), std::string::npos) << why;
      }
    } else {
      // A relative: nobody aborted this one.
      EXPECT_EQ(test::errorOfUse(m, m.comm), ncclRemoteError);
      const std::string why = ncclGetLastError(m.comm);
      EXPECT_NE(why.find("rank 1"), std::string::npos) << why;
      EXPECT_EQ(test::awaitError(child), ncclRemoteError);
    }
    turns.next();
    for (ncclComm_t comm : {m.comm, grandchild}) EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    if (m.rank != 1) {
      EXPECT_EQ(ncclCommAbort(child), ncclSuccess);
    }
    m.comm = nullptr;
    turns.next();
  });
}

TEST(WorldShareRules, AKernelThatWaitsLeavesWithTheAbortOfARelative) {
  test::allowLog("given them up");
  test::allowLog("abort");
  Turns turns(2);
  withFamily(2, [&](Member& m) {
    const ncclComm_t child = splitOf(m.comm);
    checkAll(m, child, 1);
    turns.next();
    if (m.rank == 0) {
      const Ints data(m.gpu, kCount, 1);
      ASSERT_EQ(ncclAllReduce(data.at(), data.at(), kCount, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
      EXPECT_EQ(ncclCommAbort(child), ncclSuccess);
      m.sync();
      turns.next();
      EXPECT_EQ(ncclCommAbort(m.comm), ncclSuccess);
    } else {
      turns.next();
      for (ncclComm_t comm : {m.comm, child}) EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    }
    m.comm = nullptr;
  });
}

TEST(WorldShareRules, TheRevokeOfOneStopsItsRelatives) {
  test::allowLog("given them up");
  test::allowLog("revoke");
  Turns turns(3);
  withFamily(3, [&](Member& m) {
    const ncclComm_t child = splitOf(m.comm);
    for (ncclComm_t comm : {m.comm, child}) checkAll(m, comm, 1);
    turns.next();
    EXPECT_EQ(ncclCommRevoke(child, 0), ncclSuccess);
    EXPECT_NE(test::awaitError(m.comm), ncclSuccess);
    turns.next();
    const ncclComm_t fresh = splitOf(child);
    EXPECT_EQ(sumOf(m, fresh, 1), 3) << "a child of one that was revoked shares nothing";
    destroy(fresh);
    destroy(child);
    EXPECT_EQ(ncclCommAbort(m.comm), ncclSuccess);
    m.comm = nullptr;
    turns.next();
  });
}

TEST(WorldShareRules, SuspendIsRefusedWhileRelativesLive) {
  test::allowLog("shares its connections with other communicators");
  test::allowLog("is not suspended");
  withFamily(3, [](Member& m) {
    const ncclComm_t child = splitOf(m.comm);
    checkAll(m, child, 1);
    for (ncclComm_t comm : {m.comm, child}) {
      EXPECT_EQ(ncclCommSuspend(comm, NCCL_SUSPEND_MEM), ncclInvalidUsage);
      const std::string why = ncclGetLastError(comm);
      EXPECT_NE(why.find("shares its connections with other communicators"), std::string::npos) << why;
      EXPECT_EQ(ncclCommResume(comm), ncclInvalidUsage);
      checkAll(m, comm, 2);
    }
    destroy(m.comm);
    m.comm = child;
    const std::uint64_t before = memoryOf(child);
    ASSERT_EQ(ncclCommSuspend(child, NCCL_SUSPEND_MEM), ncclSuccess) << "the only one left";
    ASSERT_EQ(ncclCommResume(child), ncclSuccess);
    checkAll(m, child, 3);
    EXPECT_LE(memoryOf(child), before);
    const ncclComm_t next = splitOf(child);
    checkAll(m, next, 4);
    destroy(next);
  });
}

TEST(WorldShareRules, SuspendIsRefusedWhileGraphsKeepARelativeThatHasEnded) {
  test::allowLog("shares its connections with communicators that have ended");
  Turns turns(2);
  withFamily(2, [&](Member& m) {
    const ncclComm_t child = splitOf(m.comm);
    const Round round(m, child, 3);
    checkAll(m, child, 1);
    {
      const auto graph = Recording::of(m.stream(), [&] { round.call(m.stream()); });
      turns.next();
      destroy(child);
      EXPECT_EQ(ncclCommSuspend(m.comm, NCCL_SUSPEND_MEM), ncclInvalidUsage);
      turns.next();
      graph->launch(m.stream());
      m.sync();
      round.check();
      turns.next();
    }
    // The driver may tell late that a graph has ended.
    turns.next();
    EXPECT_TRUE(test::until([&] { return ncclCommSuspend(m.comm, NCCL_SUSPEND_MEM) == ncclSuccess; }));
    EXPECT_EQ(ncclCommResume(m.comm), ncclSuccess);
    checkAll(m, m.comm, 2);
  });
}

TEST(WorldShareRules, AChildThatCannotBeMadeLeavesTheFamilyAlone) {
  test::allowLog("netName");
  Turns turns(2);
  withFamily(2, [&](Member& m) {
    checkAll(m, m.comm, 1);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.netName = "nowhere";
    ncclComm_t child = nullptr;
    EXPECT_EQ(ncclCommSplit(m.comm, 0, 0, &child, &config), ncclInvalidUsage);
    EXPECT_EQ(child, nullptr);
    const std::string why = ncclGetLastError(nullptr);
    EXPECT_NE(why.find("netName (nowhere) does not match the parent (" + m.comm->membership->network + ")"),
              std::string::npos)
        << why;
    EXPECT_NE(why.find("leave it out, or set splitShare (shrinkShare) to 0 in the configuration of the parent"),
              std::string::npos)
        << why;
    config.netName = m.comm->membership->network.c_str();
    ASSERT_EQ(ncclCommSplit(m.comm, 0, 0, &child, &config), ncclSuccess) << "the same one may be named";
    checkAll(m, child, 1);
    destroy(child);
    checkAll(m, m.comm, 2);
    const ncclComm_t unused = splitOf(m.comm);
    turns.next();  // an abort may hit who is still at it
    EXPECT_EQ(ncclCommAbort(unused), ncclSuccess) << "nothing was done with it";
    checkAll(m, m.comm, 3);
  });
}

TEST(WorldShareRules, TheParentDecides) {
  const test::ScopedLog level("INFO");
  withFamily(
      2,
      [](Member& m) {
        ncclConfig_t config = sharing();
        ncclComm_t child = nullptr;
        ASSERT_EQ(ncclCommSplit(m.comm, 0, 0, &child, &config), ncclSuccess);
        checkAll(m, child, 1);
        EXPECT_EQ(ncclCommSuspend(m.comm, NCCL_SUSPEND_MEM), ncclSuccess) << "it shares nothing";
        EXPECT_EQ(ncclCommResume(m.comm), ncclSuccess);
        destroy(child);
      },
      NCCL_CONFIG_INITIALIZER);
  EXPECT_NE(test::capturedText().find("splitShare is set in the configuration of the child"), std::string::npos);
}

TEST(WorldShareRules, AChildMadeInAnotherEnvironmentHasConnectionsOfItsOwn) {
  const test::ScopedLog level("INFO");
  for (const auto& [name, value] : {std::pair{"NCCL_NET_SHARED_BUFFERS", "0"}, std::pair{"NCCL_NET_SHARED_COMMS", "0"},
                                    std::pair{"NCCL_P2P_NET_CHUNKSIZE", "65536"}}) {
    Turns turns(2);
    std::optional<test::ScopedEnv> changed;
    withFamily(2, [&, name = name, value = value](Member& m) {
      checkAll(m, m.comm, 1);
      turns.next();
      if (m.rank == 0) changed.emplace(name, value);
      turns.next();
      const ncclComm_t child = splitOf(m.comm);
      EXPECT_FALSE(child->membership->born) << name;
      checkAll(m, child, 2);
      turns.next();
      if (m.rank == 0) changed.reset();
      turns.next();
      const ncclComm_t sharing = splitOf(m.comm);
      EXPECT_TRUE(sharing->membership->born) << name << " is as before";
      checkAll(m, sharing, 3);
      for (ncclComm_t comm : {child, sharing}) destroy(comm);
    });
  }
  EXPECT_NE(test::capturedText().find("the environment has changed since it was made"), std::string::npos);
}

TEST(WorldShareRules, TheTrafficClassOfAChildIsItsParentsAndItSaysSo) {
  const test::ScopedLog level("INFO");
  ncclConfig_t third = sharing();
  third.trafficClass = 3;
  withFamily(
      2,
      [](Member& m) {
        ncclConfig_t seventh = NCCL_CONFIG_INITIALIZER;
        seventh.trafficClass = 7;
        ncclConfig_t silent = NCCL_CONFIG_INITIALIZER;
        for (ncclConfig_t* config : {&seventh, &silent, static_cast<ncclConfig_t*>(nullptr)}) {
          ncclComm_t child = nullptr;
          ASSERT_EQ(ncclCommSplit(m.comm, 0, 0, &child, config), ncclSuccess);
          EXPECT_EQ(child->config.values.trafficClass, 3);
          checkAll(m, child, 1);
          destroy(child);
        }
      },
      third);
  const std::string all = test::capturedText();
  EXPECT_NE(all.find("Comm config trafficClass 7 is ignored: the child shares resources with its parent"),
            std::string::npos);
  EXPECT_EQ(all.find("trafficClass 3 is ignored"), std::string::npos);
}

TEST(WorldShareRules, AChildHasAtMostItsParentsChannels) {
  const test::ScopedLog level("INFO");
  ncclConfig_t narrow = sharing();
  narrow.maxCTAs = 2;
  withFamily(
      2,
      [](Member& m) {
        ncclConfig_t wide = NCCL_CONFIG_INITIALIZER;
        wide.minCTAs = 8;
        wide.maxCTAs = 8;
        wide.trafficClass = 7;
        ncclComm_t child = nullptr;
        ASSERT_EQ(ncclCommSplit(m.comm, 0, 0, &child, &wide), ncclSuccess);
        checkAll(m, child, 1);
        destroy(child);
      },
      narrow);
  EXPECT_EQ(test::capturedText().find("Channel 00/08"), std::string::npos);
  EXPECT_NE(test::capturedText().find("trafficClass 7 is ignored"), std::string::npos);
}

}  // namespace
}  // namespace tutti::comm
