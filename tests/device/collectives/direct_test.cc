// Direct kernels against a fold in the order of ranks, bit by bit.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "device/collectives/direct.h"
#include "device/method_run.h"

namespace tutti::device::test {
namespace {

constexpr JobMethod kDirectMethods[] = {
    {Func::AllReduce, Algorithm::OneShot, Protocol::LL},    {Func::AllReduce, Algorithm::OneShot, Protocol::Simple},
    {Func::AllReduce, Algorithm::Direct, Protocol::LL},     {Func::AllReduce, Algorithm::Direct, Protocol::Simple},
    {Func::ReduceScatter, Algorithm::Direct, Protocol::LL}, {Func::ReduceScatter, Algorithm::Direct, Protocol::Simple},
    {Func::AllGather, Algorithm::Direct, Protocol::LL},     {Func::AllGather, Algorithm::Direct, Protocol::Simple},
};

// ThreadSanitizer makes threads of kernels slow, and sees all that it can see on three ranks.
#if defined(__SANITIZE_THREAD__)
constexpr int kSomeRanks[] = {2, 3};
#else
constexpr int kSomeRanks[] = {2, 3, 5, 8};
#endif

TEST(Direct, EveryCountIsRightOnEveryNumberOfRanks) {
  for (const int nRanks : {1, 2, 3, 4, 5, 6, 7, 8, 12}) {
    World world({.nRanks = nRanks, .slotBytes = 512});
    for (const JobMethod& method : kDirectMethods) {
      // None, one, odd, more than a slot (128 floats), more than a FIFO (1024 floats).
      for (const std::uint64_t count : {0, 1, 131, 1500}) {
        for (const bool inPlace : {false, true}) check(world, {.method = method, .count = count, .inPlace = inPlace});
      }
    }
  }
}

TEST(Direct, InPlaceOnSomeRanksOverwritesNothingThatOthersHaveYetToRead) {
  for (const int nRanks : kSomeRanks) {
    for (const bool pulls : {false, true}) {
      World world({.nRanks = nRanks, .slotBytes = 1024, .pulls = pulls});
      for (const JobMethod& method : kDirectMethods) {
        for (const bool mixed : {false, true}) {
          check(world, {.method = method, .count = kManyTurns, .inPlace = true, .mixed = mixed});
          check(world,
                {.method = method, .count = 1999, .inPlace = true, .threads = 32, .misalign = 1, .mixed = mixed});
        }
      }
    }
  }
}

TEST(Direct, SharesThatReplaceInputPastTheCacheAreRight) {
  for (const int nRanks : {2, 3}) {
    World world({.nRanks = nRanks, .slotBytes = 128 << 10, .pulls = true});
    for (const JobMethod& method : kDirectMethods) {
      if (method.protocol != Protocol::Simple) continue;
      for (const bool mixed : {false, true}) {
        check(world, {.method = method, .count = 300'007, .inPlace = true, .misalign = 1, .mixed = mixed});
      }
    }
  }
}

TEST(Direct, LongVectorsGoThroughShortFifos) {
  for (const int nRanks : {2, 5}) {
    World world({.nRanks = nRanks, .nChannels = 2, .slotBytes = 1024});
    for (const JobMethod& method : kDirectMethods) check(world, {.method = method, .count = 40003});
  }
}

TEST(Direct, EveryOperationIsCombinedInTheOrderOfRanks) {
  for (const int nRanks : {2, 4, 5}) {
    World world({.nRanks = nRanks, .slotBytes = 512});
    for (const JobMethod& method : kDirectMethods) {
      if (!reduces(method.func)) continue;
      for (const DevOp op : {DevOp::Sum, DevOp::Prod, DevOp::Max, DevOp::Min, DevOp::PreMulSum, DevOp::SumPostDiv}) {
        for (const auto type : {ncclInt8, ncclUint32, ncclInt64, ncclFloat32, ncclFloat64}) {
          if (!kernelExists(method.func, method.algorithm, method.protocol, op, type)) continue;
          check(world, {.method = method, .op = op, .type = type, .count = 299, .inPlace = op == DevOp::PreMulSum});
        }
      }
    }
  }
}

TEST(Direct, ThreadsShareTheWorkOfABlock) {
  for (const unsigned threads : kSharingThreads) {
    World world({.nRanks = 3, .slotBytes = 1024});
    for (const JobMethod& method : kDirectMethods) {
      check(world, {.method = method, .count = 1, .threads = threads});
      check(world, {.method = method, .op = DevOp::PreMulSum, .count = 2001, .threads = threads});
    }
  }
}

TEST(Direct, LargestBlocksWork) {
  World world({.nRanks = 2, .slotBytes = 2048});
  for (const JobMethod& method : kDirectMethods) {
    if (method.func == Func::AllReduce) check(world, {.method = method, .count = 1111, .threads = kMaxThreads});
  }
}

TEST(Direct, EachThreadTakesALineOfOnePeerWherePartsAreSmall) {
  for (const int ranks : {3, 6}) {  // of six the last three have nothing
    World world({.nRanks = ranks, .slotBytes = 2048});
    for (const JobMethod& method : kDirectMethods) {
      if (method.protocol != Protocol::LL) continue;
      for (const bool inPlace : {false, true}) {
        check(world, {.method = method, .count = 300, .inPlace = inPlace, .threads = 8 * simt::kWarpSize});
        check(world, {.method = method, .count = 300, .inPlace = inPlace, .threads = kMaxThreads});
      }
    }
  }
}

TEST(Direct, ElementAlignmentIsEnough) {
  World world({.nRanks = 3, .slotBytes = 512});
  for (const JobMethod& method : kDirectMethods) {
    for (const bool inPlace : {false, true}) {
      check(world, {.method = method, .type = ncclInt8, .count = 1003, .inPlace = inPlace, .misalign = 1});
      check(world, {.method = method, .type = ncclFloat32, .count = 501, .inPlace = inPlace, .misalign = 1});
      check(world, {.method = method, .type = ncclFloat64, .count = 203, .inPlace = inPlace, .misalign = 1});
    }
  }
}

TEST(Direct, CountersMayWrapAround) {
  // All of a counter, the flags of LL, the epoch in which LL writes whole slots.
  for (const std::uint64_t firstStep :
       {~std::uint64_t{0} - 5, (std::uint64_t{1} << 32) - 5, (std::uint64_t{3} << 30) - 5}) {
    World world({.nRanks = 3, .slotBytes = 512, .firstStep = firstStep});
    for (int round = 0; round < 3; ++round) {
      for (const JobMethod& method : kDirectMethods) check(world, {.method = method, .count = 400});
    }
  }
}

TEST(Direct, LargeOutputsThatBypassTheCacheAreRight) {
  World world({.nRanks = 2, .slotBytes = 128 << 10});
  for (const JobMethod& method : kDirectMethods) {
    if (method.protocol != Protocol::Simple) continue;
    check(world, {.method = method, .type = ncclInt64, .count = (9 << 17) + 5});  // 9 MB in few elements
  }
}

TEST(Direct, AlternatesWithRingsOnTheSameRanks) {
  World world({.nRanks = 4});
  for (int round = 0; round < 2; ++round) {
    for (const JobMethod& method : kDirectMethods) {
      check(world, {.method = method, .type = ncclUint32, .count = 700});
      check(world, {.method = {Func::AllReduce, Algorithm::Ring, Protocol::Simple}, .type = ncclUint32, .count = 700});
    }
  }
}

TEST(Direct, TurnsCoverEveryElementInEqualShares) {
  for (const unsigned ranks : {1u, 2u, 3u, 8u, 72u}) {
    for (const std::uint64_t count : {0, 1, 127, 128, 129, 1000, 4096, 100003}) {
      const Turns turns = turnsOf(count, 1024, ranks, 128);
      EXPECT_GE(turns.n * turns.chunk * ranks, count);
      EXPECT_LE(turns.chunk, 1024u);
      EXPECT_TRUE(count == 0 || (turns.n - 1) * turns.chunk * ranks < count) << "an empty turn";
    }
  }
}

// --- abort

/// Launches rank 0 of a world in which the others do `peers` (0: nothing) elements, then aborts.
void abortWhile(const Job& job, std::uint64_t peersCount) {
  SCOPED_TRACE(nameOf(job) + " threads " + std::to_string(job.threads));
  World world({.nRanks = 3, .slotBytes = 512});
  std::vector<std::vector<float>> in(3, std::vector<float>(3 * job.count, 1.0f)), out = in;
  std::vector<std::unique_ptr<Launch>> launches;
  for (int r = 0; r < (peersCount > 0 ? 3 : 1); ++r) {
    KernelArgs args{};
    args.comm = world.comm(r);
    args.nWorks = 1;
    args.coll[0] = workFor(world, job);
    args.coll[0].send = in[r].data();
    args.coll[0].recv = job.inPlaceOn(r) ? in[r].data() : out[r].data();
    args.coll[0].count = r == 0 ? job.count : peersCount;
    launches.push_back(std::make_unique<Launch>(kernelOf(job), 1, job.threads, args));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  std::atomic_ref<std::uint32_t>(*world.abortWord()).store(1);
}

TEST(Direct, AbortEndsAKernelWhosePeersNeverCome) {
  for (const JobMethod& method : kDirectMethods) {
    for (const unsigned threads : {1u, 32u}) abortWhile({.method = method, .count = 10000, .threads = threads}, 0);
  }
}

TEST(Direct, AbortEndsAKernelWhosePeersStopInTheMiddle) {
  for (const JobMethod& method : kDirectMethods) {
    for (const unsigned threads : {1u, 32u}) {
      abortWhile({.method = method, .count = 20000, .threads = threads}, 3000);
      if (method.func != Func::AllReduce) continue;
      for (const bool mixed : {false, true}) {
        abortWhile({.method = method, .count = 20000, .inPlace = true, .threads = threads, .mixed = mixed}, 3000);
      }
    }
  }
}

}  // namespace
}  // namespace tutti::device::test
