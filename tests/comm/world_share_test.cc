// Communicators that share connections with their parent (splitShare, shrinkShare): what they cost, and that they
// compute right. Run once for each transport (meson.build).
#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <thread>

#include "comm/graph.h"
#include "comm/share.h"

namespace tutti::comm {
namespace {

using test::checkAll;
using test::destroy;
using test::gathered;
using test::Ints;
using test::kCount;
using test::Member;
using test::memoryOf;
using test::overNetwork;
using test::rankIn;
using test::Recording;
using test::Round;
using test::settle;
using test::sharing;
using test::splitOf;
using test::Turns;
using test::withFamily;

/// Of the host, that ranks of this process have mapped to meet in.
std::size_t sharedHostMemory() {
  std::ifstream maps("/proc/self/maps");
  std::size_t bytes = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:tutti-shm") == std::string::npos) continue;
    const std::size_t dash = line.find('-');
    bytes += std::stoull(line.substr(dash + 1), nullptr, 16) - std::stoull(line.substr(0, dash), nullptr, 16);
  }
  return bytes;
}

/// Private memory of this process: that of the host in which connections over a network have their slots, beside what
/// threads and the heap take.
std::size_t privateMemory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stoull(line.substr(8)) << 10;
  }
  return 0;
}

std::size_t hostMemory() {
  return overNetwork() ? privateMemory() : sharedHostMemory();
}

struct Cost {
  std::uint64_t told = 0;    ///< by ncclCommMemStats
  std::uint64_t device = 0;  ///< that is not free any more
  std::uint64_t host = 0;
};

/// Of a child of all ranks that has run everything, as rank 0 and its device see it.
Cost costOfChild(int ranks, bool shared) {
  Cost cost;
  Turns turns(ranks);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.splitShare = shared ? 1 : 0;
  withFamily(
      ranks,
      [&](Member& m) {
        checkAll(m, m.comm, 1);
        turns.next();
        const std::size_t device = test::freeDeviceMemory();
        const std::size_t host = hostMemory();
        turns.next();
        const ncclComm_t child = splitOf(m.comm);
        checkAll(m, child, 2);
        turns.next();
        if (m.rank == 0) cost = {memoryOf(child), device - test::freeDeviceMemory(), hostMemory() - host};
        turns.next();
        destroy(child);
      },
      config);
  return cost;
}

TEST(WorldShare, ASharedChildTakesATenthOfTheMemory) {
  for (const int ranks : {2, 4, 8}) {
    const Cost fresh = costOfChild(ranks, false);
    const Cost shared = costOfChild(ranks, true);
    EXPECT_LE((shared.device + shared.host) * 10, fresh.device + fresh.host) << ranks << " ranks";
    EXPECT_EQ(shared.told, shared.device);
    if (fresh.host == 0) {
      EXPECT_LE(shared.told * 10, fresh.told) << ranks << " ranks";
    }
  }
}

TEST(WorldShare, TheEldestIsToldTheMemoryOfAll) {
  withFamily(3, [](Member& m) {
    const std::uint64_t alone = memoryOf(m.comm);
    const ncclComm_t child = splitOf(m.comm);
    checkAll(m, child, 1);
    EXPECT_GT(memoryOf(m.comm), alone) << "the child opened some of the connections";
    const std::uint64_t before = memoryOf(m.comm) + memoryOf(child);
    destroy(m.comm);
    m.comm = nullptr;
    EXPECT_NEAR(static_cast<double>(memoryOf(child)), static_cast<double>(before), 4096);
    destroy(child);
  });
}

TEST(WorldShare, RelativesComputeRightInTurn) {
  for (const int ranks : {2, 3, 5}) {
    withFamily(ranks, [](Member& m) {
      const ncclComm_t child = splitOf(m.comm, 0, -m.rank);
      const ncclComm_t grandchild = splitOf(child, 0, (rankIn(child) * 2) % 3);
      for (int round = 1; round < 7; ++round) {
        for (ncclComm_t comm : {m.comm, child, grandchild}) checkAll(m, comm, round);
      }
      for (ncclComm_t comm : {grandchild, child}) destroy(comm);
    });
  }
}

TEST(WorldShare, ColorsHaveSubsetsInAnyOrder) {
  withFamily(6, [](Member& m) {
    const ncclComm_t half = splitOf(m.comm, m.rank % 2, -m.rank);
    const ncclComm_t some = splitOf(m.comm, m.rank == 2 ? NCCL_SPLIT_NOCOLOR : m.rank / 3, m.rank);
    EXPECT_EQ(some == nullptr, m.rank == 2);
    EXPECT_EQ(gathered(m, half, m.rank), m.rank % 2 == 0 ? (std::vector{4, 2, 0}) : (std::vector{5, 3, 1}));
    for (int round = 1; round < 4; ++round) {
      checkAll(m, m.comm, round);
      checkAll(m, half, round);
      if (some != nullptr) checkAll(m, some, round);
    }
    if (some != nullptr) destroy(some);
    destroy(half);
  });
}

TEST(WorldShare, WorkOnSeveralStreamsKeepsTheOrderOfCalls) {
  withFamily(3, [](Member& m) {
    const ncclComm_t child = splitOf(m.comm, 0, -m.rank);
    const ncclComm_t grandchild = splitOf(child);
    std::vector<gpu::Stream> streams;
    for (int i = 0; i < 3; ++i) streams.push_back(gpu::Stream::create(m.gpu).value());
    std::vector<Round> rounds;
    rounds.reserve(12);
    for (int i = 0; i < 12; ++i) rounds.emplace_back(m, std::array{m.comm, child, grandchild}[i % 3], i + 1);
    for (std::size_t i = 0; i < rounds.size(); ++i) rounds[i].call(streams[i * 7 / 3 % 3].get());
    for (const gpu::Stream& stream : streams) EXPECT_TRUE(gpu::waitStream(m.gpu, stream.get(), nullptr).ok());
    for (const Round& round : rounds) round.check();
    for (ncclComm_t comm : {child, grandchild}) destroy(comm);
  });
}

TEST(WorldShare, OneGroupMayHoldOperationsOfRelativesThatLackTheSameConnections) {
  constexpr int kRanks = 4;
  std::array<std::array<std::uint64_t, kRanks>, 2> memory{};
  for (const bool grouped : {false, true}) {
    withFamily(kRanks, [&](Member& m) {
      const ncclComm_t child = splitOf(m.comm);
      const Round first(m, m.comm, 1);
      const Round second(m, child, 2);
      if (grouped) {
        ASSERT_EQ(ncclGroupStart(), ncclSuccess);
      }
      first.call(m.stream());
      second.call(m.stream());
      if (grouped) {
        ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
      }
      m.sync();
      first.check();
      second.check();
      if (!overNetwork()) memory[grouped ? 1 : 0][static_cast<std::size_t>(m.rank)] = memoryOf(m.comm);
      destroy(child);
    });
  }
  EXPECT_EQ(memory[1], memory[0]) << "each connection was opened once";
}

TEST(WorldShare, GraphsOfRelativesAreReplayedInTurn) {
  withFamily(3, [](Member& m) {
    const ncclComm_t child = splitOf(m.comm, 0, -m.rank);
    const gpu::Stream other = gpu::Stream::create(m.gpu).value();
    const Round a(m, m.comm, 3);
    const Round b(m, child, 5);
    const Round c(m, child, 7);
    checkAll(m, m.comm, 1);
    checkAll(m, child, 1);
    {
      const auto of = [&](CUstream stream, const Round& round) {
        return Recording::of(stream, [&] { round.call(stream); });
      };
      const auto parents = of(m.stream(), a);
      const auto childs = of(other.get(), b);
      const auto both = Recording::of(m.stream(), [&] {
        a.call(m.stream());
        c.call(m.stream());
      });
      for (int i = 0; i < 5; ++i) {
        parents->launch(m.stream());
        childs->launch(other.get());
        c.call(m.stream());
        both->launch(other.get());
      }
      m.sync();
      EXPECT_TRUE(gpu::waitStream(m.gpu, other.get(), nullptr).ok());
      for (const Round* round : {&a, &b, &c}) round->check();
    }
    destroy(child);
  });
}

TEST(WorldShare, AShrunkChildSharesAsWell) {
  test::allowLog("shares its connections with other communicators");
  withFamily(4, [](Member& m) {
    checkAll(m, m.comm, 1);
    if (m.rank == 1) return;
    int excluded = 1;
    ncclComm_t child = nullptr;
    ASSERT_EQ(ncclCommShrink(m.comm, &excluded, 1, &child, nullptr, NCCL_SHRINK_DEFAULT), ncclSuccess);
    checkAll(m, child, 1);
    if (!overNetwork()) {
      EXPECT_LT(memoryOf(child), 4096U) << "tables";
    }
    EXPECT_EQ(ncclCommSuspend(child, NCCL_SUSPEND_MEM), ncclInvalidUsage);
    destroy(child);
  });
}

TEST(WorldShare, NonBlockingMembersKeepTheOrderOfCalls) {
  ncclConfig_t config = sharing();
  config.blocking = 0;
  withFamily(
      3,
      [](Member& m) {
        ncclComm_t child = nullptr;
        ncclCommSplit(m.comm, 0, 0, &child, nullptr);
        ASSERT_EQ(settle(m.comm), ncclSuccess);
        ASSERT_EQ(settle(child), ncclSuccess);
        const Ints in(m.gpu, kCount, m.rank);
        const Ints a(m.gpu, kCount, -1);
        const Ints b(m.gpu, kCount, -1);
        const auto pass = [&](ncclComm_t comm, const Ints& out) {
          ncclGroupStart();
          ncclSend(in.at(), kCount, ncclInt32, (m.rank + 1) % 3, comm, m.stream());
          ncclRecv(out.at(), kCount, ncclInt32, (m.rank + 2) % 3, comm, m.stream());
          ncclGroupEnd();
        };
        // Rank 0 calls for the child while the parent has yet to connect. The others find then what the parent has.
        if (m.rank != 0) std::this_thread::sleep_for(milliseconds(100));
        pass(m.comm, a);
        if (m.rank != 0) {
          ASSERT_EQ(settle(m.comm), ncclSuccess);
        }
        pass(child, b);
        ASSERT_EQ(settle(m.comm), ncclSuccess);
        ASSERT_EQ(settle(child), ncclSuccess);
        m.sync();
        for (const Ints* out : {&a, &b}) EXPECT_EQ(out->read(), std::vector<int>(kCount, (m.rank + 2) % 3));
        destroy(child);
      },
      config);
}

}  // namespace
}  // namespace tutti::comm
