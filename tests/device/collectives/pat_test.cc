// PAT: its schedule simulated on all ranks, then its kernels.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "device/collectives/pat.h"
#include "device/method_run.h"

namespace tutti::device::test {
namespace {

constexpr JobMethod kPatGather{Func::AllGather, Algorithm::Pat, Protocol::Simple};
constexpr JobMethod kPatScatter{Func::ReduceScatter, Algorithm::Pat, Protocol::Simple};

TEST(PatSchedule, TakesTheLogarithmOfTheRanks) {
  EXPECT_EQ(patSteps(1), 0);
  EXPECT_EQ(patSteps(2), 1);
  EXPECT_EQ(patSteps(3), 2);
  EXPECT_EQ(patSteps(16), 4);
  EXPECT_EQ(patSteps(17), 5);
  EXPECT_EQ(patSteps(1024), 10);
}

TEST(PatSchedule, PartnersNameEachOtherAndAreAPowerOfTwoAway) {
  for (int n = 2; n <= 33; ++n) {
    for (int rank = 0; rank < n; ++rank) {
      for (int k = 0; k < patSteps(n); ++k) {
        for (const bool gathers : {true, false}) {
          const auto of = [&](int r) { return gathers ? patGatherStep(r, n, k) : patReduceStep(r, n, k); };
          const PatStep step = of(rank);
          EXPECT_EQ(of(step.sendTo).recvFrom, rank);
          EXPECT_EQ(of(step.recvFrom).sendTo, rank);
          EXPECT_EQ(of(step.recvFrom).blocks, step.blocks);
          EXPECT_NE(step.sendTo, rank);
          EXPECT_EQ((step.sendTo - rank + n) % n, gathers ? n - step.distance : step.distance);
        }
      }
    }
  }
}

TEST(PatSchedule, AllGatherBringsEveryBlockExactlyOnce) {
  for (int n = 1; n <= 33; ++n) {
    std::vector<std::vector<int>> copies(n, std::vector<int>(n, 0));  // [rank][whose block]
    for (int rank = 0; rank < n; ++rank) copies[rank][rank] = 1;
    for (int k = 0; k < patSteps(n); ++k) {
      const auto before = copies;
      for (int rank = 0; rank < n; ++rank) {
        const PatStep step = patGatherStep(rank, n, k);
        for (int b = 0; b < step.blocks; ++b) {
          const int owner = patRank(step.recvFrom, b, n);
          ASSERT_EQ(before[step.recvFrom][owner], 1) << "sent before it was there: n " << n << " step " << k;
          EXPECT_EQ(owner, patRank(rank, step.distance + b, n)) << "lands elsewhere";
          ++copies[rank][owner];
        }
      }
    }
    for (const auto& of : copies) {
      for (const int times : of) EXPECT_EQ(times, 1) << n << " ranks";
    }
  }
}

/// Contributions (a count per contributing rank) to a block.
using Shares = std::vector<int>;

TEST(PatSchedule, ReduceScatterCombinesEveryContributionExactlyOnce) {
  for (int n = 1; n <= 33; ++n) {
    const int steps = patSteps(n);
    // What each step brought each rank, by block counted from the rank.
    std::vector<std::vector<std::vector<Shares>>> brought(n, std::vector<std::vector<Shares>>(steps));
    const auto share = [&](int rank, int block, int step) {
      Shares sum(n, 0);
      ++sum[rank];
      for (int k = step + 1; k <= step + patIncoming(n, block, step); ++k) {
        EXPECT_LT(block, static_cast<int>(brought[rank][k].size())) << "combined before it came";
        for (int r = 0; r < n; ++r) sum[r] += brought[rank][k][block][r];
      }
      return sum;
    };
    for (int k = steps - 1; k >= 0; --k) {
      for (int rank = 0; rank < n; ++rank) {
        const PatStep step = patReduceStep(rank, n, k);
        for (int b = 0; b < step.blocks; ++b) brought[step.sendTo][k].push_back(share(rank, step.distance + b, k));
      }
    }
    for (int rank = 0; rank < n; ++rank) {
      for (const int times : share(rank, 0, -1)) EXPECT_EQ(times, 1) << "rank " << rank << " of " << n;
      int used = 0;  // every message that came went into something
      for (int k = 0; k < steps; ++k) used += static_cast<int>(brought[rank][k].size());
      int wanted = 0;
      for (int b = 0; b < n; ++b) {
        int own = -1;  // the step that sends block b
        while (b >> (own + 1) != 0) ++own;
        wanted += patIncoming(n, b, own);
      }
      EXPECT_EQ(used, wanted) << "rank " << rank << " of " << n;
    }
  }
}

TEST(PatSchedule, MessagesFitIntoSlots) {
  for (int n = 2; n <= 2000; n = n * 3 / 2 + 1) {
    for (const std::uint64_t slotBytes : {32u << 10, 128u << 10, 512u << 10}) {
      ASSERT_LE(n, patMaxRanks(slotBytes));
      for (const std::uint64_t count : {1u, 100u, 1000003u}) {
        const Turns turns = patTurns(count, n, slotBytes, 4);
        EXPECT_LE(turns.chunk * 4 * patMostBlocks(n), slotBytes);
        EXPECT_GE(turns.n * turns.chunk, count);
      }
    }
  }
}

TEST(Pat, EveryCountIsRightOnEveryNumberOfRanks) {
  for (const int nRanks : {1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 16, 17}) {
    World world({.nRanks = nRanks, .slotBytes = 1024});
    for (const JobMethod& method : {kPatGather, kPatScatter}) {
      for (const std::uint64_t count : {0, 1, 131, 700}) {
        for (const bool inPlace : {false, true}) {
          check(world, {.method = method, .type = ncclUint32, .count = count, .inPlace = inPlace});
        }
      }
    }
  }
}

TEST(Pat, EveryOperationIsApplied) {
  World world({.nRanks = 6, .slotBytes = 2048});
  for (const DevOp op : {DevOp::Prod, DevOp::Max, DevOp::Min, DevOp::PreMulSum, DevOp::SumPostDiv}) {
    for (const auto type : {ncclInt8, ncclUint32, ncclInt64}) {
      check(world, {.method = kPatScatter, .op = op, .type = type, .count = 299});
    }
  }
}

TEST(Pat, ThreadsShareTheWorkOfABlock) {
  // Few bytes per block: a warp each; many: all threads together.
  for (const int nRanks : {3, 6}) {
    World small({.nRanks = nRanks, .slotBytes = 1024}),
        large({.nRanks = nRanks, .nChannels = 2, .slotBytes = 16 << 10});
    for (const JobMethod& method : {kPatGather, kPatScatter}) {
      for (const unsigned threads : kSharingThreads) {
        check(small, {.method = method, .type = ncclUint32, .count = 300, .threads = threads});
      }
      check(large, {.method = method, .type = ncclUint32, .count = 3001, .threads = kSharingThreads.back()});
    }
  }
}

TEST(Pat, ElementAlignmentIsEnough) {
  World world({.nRanks = 5, .slotBytes = 1024});
  for (const JobMethod& method : {kPatGather, kPatScatter}) {
    check(world, {.method = method, .type = ncclInt8, .count = 1003, .misalign = 1});
    check(world, {.method = method, .type = ncclInt64, .count = 203, .inPlace = true, .misalign = 1});
  }
}

TEST(Pat, CountersMayWrapAround) {
  World world({.nRanks = 3, .slotBytes = 1024, .firstStep = ~std::uint64_t{0} - 5});
  for (int round = 0; round < 3; ++round) {
    for (const JobMethod& method : {kPatGather, kPatScatter}) {
      check(world, {.method = method, .type = ncclUint32, .count = 900});
    }
  }
}

TEST(Pat, AlternatesWithRingsOnTheSameConnections) {
  World world({.nRanks = 4, .slotBytes = 1024});
  for (int round = 0; round < 3; ++round) {
    check(world, {.method = kPatGather, .type = ncclUint32, .count = 500});
    check(world, {.method = {Func::AllReduce, Algorithm::Ring, Protocol::Simple}, .type = ncclUint32, .count = 700});
    check(world, {.method = kPatScatter, .type = ncclUint32, .count = 500});
  }
}

TEST(Pat, AbortEndsAKernelWhosePeersNeverCome) {
  for (const JobMethod& method : {kPatGather, kPatScatter}) {
    for (const unsigned threads : {1u, 64u}) {
      World world({.nRanks = 3, .slotBytes = 1024});
      const Job job{.method = method, .type = ncclUint32, .threads = threads};
      std::vector<std::uint32_t> in(30000), out(30000);
      KernelArgs args{};
      args.comm = world.comm(0);
      args.nWorks = 1;
      args.coll[0] = workFor(world, job);
      args.coll[0].send = in.data();
      args.coll[0].recv = out.data();
      args.coll[0].count = 10000;
      const Launch launch(kernelOf(job), 1, threads, args);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      std::atomic_ref<std::uint32_t>(*world.abortWord()).store(1);
    }
  }
}

}  // namespace
}  // namespace tutti::device::test
