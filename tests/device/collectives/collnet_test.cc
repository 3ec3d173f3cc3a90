// Collectives over a network that reduces by itself, over a stand-in for it.
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "device/collnet_cut.h"
#include "device/collnet_run.h"

namespace tutti::device::test {
namespace {

constexpr JobMethod kDirect{Func::AllReduce, Algorithm::CollNetDirect, Protocol::Simple};
constexpr JobMethod kChain{Func::AllReduce, Algorithm::CollNetChain, Protocol::Simple};
constexpr JobMethod kGather{Func::AllGather, Algorithm::CollNetDirect, Protocol::Simple};
constexpr JobMethod kScatter{Func::ReduceScatter, Algorithm::CollNetDirect, Protocol::Simple};
constexpr JobMethod kMethods[] = {kDirect, kChain, kGather, kScatter};
constexpr unsigned kThreads = kCollNetRoles;
// Too few for whole warps; a warp for each crew; several.
#if defined(__SANITIZE_THREAD__)
constexpr unsigned kCrewThreads[] = {32, 128};
#else
constexpr unsigned kCrewThreads[] = {32, 128, 224};
#endif

/// Collectives but AllReduce need every rank to be a head.
bool suits(const JobMethod& method, const CollNetShape& shape) {
  return method.func == Func::AllReduce || shape.heads == shape.locals;
}

std::vector<CollNetShape> everyShape() {
  std::vector<CollNetShape> shapes;
  for (const int nodes : {2, 3, 4}) {
    for (const int locals : {1, 2, 3, 4}) {
      for (int heads = 1; heads <= locals; ++heads) {
        const unsigned lanes = 1 + static_cast<unsigned>(nodes + locals + heads) % 3;
        shapes.push_back({.nodes = nodes, .locals = locals, .heads = heads, .lanes = lanes, .slotBytes = 512});
      }
    }
  }
  return shapes;
}

TEST(CollNet, EveryCountIsRightInEveryShape) {
  for (const CollNetShape& shape : everyShape()) {
    CollNetWorld world(shape);
    // Elements of a turn of all heads; of gathers: of the part of a turn that is each node's.
    const std::uint64_t turn = std::uint64_t{128} * shape.lanes * static_cast<unsigned>(shape.heads);
    for (const JobMethod& method : kMethods) {
      if (!suits(method, shape)) continue;
      for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, turn - 1, turn, turn + 1, 3 * turn + 1}) {
        for (const bool inPlace : {false, true}) {
          check(world, {.method = method, .type = ncclInt32, .count = count, .inPlace = inPlace, .threads = kThreads});
        }
      }
    }
  }
}

TEST(CollNet, EveryTypeAndOperationIsCombinedInTheOrderOfANodeThenOfNodes) {
  CollNetWorld world({.nodes = 3, .locals = 3, .heads = 3, .lanes = 2, .slotBytes = 512});
  for (const JobMethod& method : {kDirect, kChain, kScatter}) {
    for (int type = 0; type < ncclNumTypes; ++type) {
      for (const DevOp op : {DevOp::Sum, DevOp::Prod, DevOp::Max, DevOp::Min, DevOp::PreMulSum, DevOp::SumPostDiv}) {
        const auto t = static_cast<ncclDataType_t>(type);
        if (!kernelExists(method.func, method.algorithm, method.protocol, op, t)) continue;
        check(world, {.method = method, .op = op, .type = t, .count = 641, .threads = kThreads});
        check(world, {.method = method, .op = op, .type = t, .count = 1300, .inPlace = true, .threads = kThreads});
      }
    }
  }
}

TEST(CollNet, EightHeadsShareATurn) {
  CollNetWorld world({.nodes = 2, .locals = 8, .heads = 8, .lanes = 2, .slotBytes = 512});
  for (const JobMethod& method : kMethods) {
    for (const std::uint64_t count : {1, 2100}) check(world, {.method = method, .count = count, .threads = kThreads});
  }
}

TEST(CollNet, InPlaceOnSomeRanksOverwritesNothingThatOthersHaveYetToRead) {
  for (const bool pulls : {false, true}) {
    CollNetWorld world({.nodes = 2, .locals = 3, .heads = 3, .lanes = 2, .slotBytes = 1024, .pulls = pulls});
    for (const JobMethod& method : kMethods) {
      for (const bool mixed : {false, true}) {
        for (const DevOp op : {DevOp::Sum, DevOp::PreMulSum}) {
          if (op != DevOp::Sum && !reduces(method.func)) continue;
          check(
              world,
              {.method = method, .op = op, .count = kManyTurns, .inPlace = true, .threads = kThreads, .mixed = mixed});
        }
      }
    }
  }
}

TEST(CollNet, WhatLiesReadyIsReadInPlace) {
  for (const int heads : {1, 3}) {
    CollNetWorld world({.nodes = 2, .locals = 3, .heads = heads, .lanes = 1, .slotBytes = 1024, .pulls = true});
    for (const JobMethod& method : kMethods) {
      if (!suits(method, world.shape())) continue;
      for (const std::uint64_t count : {77, 3001}) {
        check(world, {.method = method, .count = count, .threads = kThreads, .misalign = 1});
      }
    }
  }
}

/// Ranks need not agree: those of a group may have registered theirs, or none of them.
TEST(CollNet, RegisteredMemoryOfALoneRankIsReadAndWrittenByTheNetwork) {
  for (const std::uint32_t registered : {0b111u, 0b101u, 0b010u}) {
    CollNetWorld world({.nodes = 3, .locals = 1, .heads = 1, .lanes = 2, .slotBytes = 512});
    const auto all = [registered](std::uint64_t n) { return n * static_cast<unsigned>(std::popcount(registered)); };
    for (const JobMethod& method : kMethods) {
      for (const bool inPlace : {false, true}) {
        const std::uint64_t sent = world.network().sentFrom(), received = world.network().receivedInto();
        check(world,
              {.method = method, .count = 7 * 256, .inPlace = inPlace, .threads = kThreads, .registered = registered});
        // Of a window every node sends all, or its own part, and receives likewise.
        EXPECT_GE(world.network().sentFrom() - sent, all(7)) << nameOf(Job{.method = method});
        EXPECT_GE(world.network().receivedInto() - received, all(7));
        for (const std::uint64_t count : {0, 1, 255, 257}) {
          check(world,
                {.method = method, .count = count, .inPlace = inPlace, .threads = kThreads, .registered = registered});
        }
      }
    }
  }
}

TEST(CollNet, WhatKernelsHaveToWorkOnGoesThroughSlotsAlsoFromRegisteredMemory) {
  CollNetWorld world({.nodes = 2, .locals = 1, .heads = 1, .lanes = 2, .slotBytes = 512});
  for (const JobMethod& method : {kDirect, kChain, kScatter}) {
    const std::uint64_t sent = world.network().sentFrom(), received = world.network().receivedInto();
    check(world, {.method = method, .op = DevOp::PreMulSum, .count = 999, .threads = kThreads, .registered = 3});
    EXPECT_EQ(world.network().sentFrom(), sent);
    EXPECT_GT(world.network().receivedInto(), received);
    const std::uint64_t receivedBefore = world.network().receivedInto();
    const Job divided{.method = method,
                      .op = DevOp::SumPostDiv,
                      .type = ncclInt32,
                      .count = 999,
                      .threads = kThreads,
                      .registered = 3};
    if (isLeftOut(nameOf(divided))) continue;
    check(world, divided);
    EXPECT_GT(world.network().sentFrom(), sent);
    EXPECT_EQ(world.network().receivedInto(), receivedBefore);
  }
}

TEST(CollNet, OnNodesOfSeveralRanksBlocksOfOneRankAloneAreReadAndWrittenThere) {
  CollNetWorld world({.nodes = 2, .locals = 3, .heads = 3, .lanes = 2, .slotBytes = 512});
  for (const JobMethod& method : kMethods) {
    for (const bool inPlace : {false, true}) {
      const std::uint64_t sent = world.network().sentFrom(), received = world.network().receivedInto();
      check(world, {.method = method, .count = 1301, .inPlace = inPlace, .threads = kThreads, .registered = 0b110111});
      EXPECT_EQ(world.network().sentFrom() > sent, method.func == Func::AllGather);
      EXPECT_EQ(world.network().receivedInto() > received, method.func == Func::ReduceScatter);
    }
  }
}

TEST(CollNet, ChunksMayBeSmallerThanSlots) {
  CollNetWorld world({.nodes = 3, .locals = 2, .heads = 2, .lanes = 3, .slotBytes = 2048, .laneBytes = 4096});
  for (const JobMethod& method : kMethods) {
    for (const std::uint32_t chunk : {512u, 1536u}) {
      check(world, {.method = method, .count = 3333, .threads = kThreads, .chunkBytes = chunk});
    }
  }
}

TEST(CollNet, BlocksMayBeSmallerThanPieces) {
  CollNetWorld world({.nodes = 4, .locals = 2, .heads = 2, .lanes = 2, .slotBytes = 4096, .laneBytes = 4096});
  for (const JobMethod& method : {kGather, kScatter}) {
    for (const std::uint64_t count : {1, 3, 100, 700}) {
      for (const bool inPlace : {false, true}) {
        check(world, {.method = method, .count = count, .inPlace = inPlace, .threads = kThreads});
      }
    }
  }
}

TEST(CollNet, ThreadsShareTheWorkOfACrew) {
  for (const unsigned threads : kCrewThreads) {
    CollNetWorld world({.nodes = 2, .locals = 2, .heads = 2, .lanes = 1, .slotBytes = 1024});
    for (const JobMethod& method : kMethods) {
      check(world, {.method = method, .count = 1, .threads = threads});
      const DevOp op = reduces(method.func) ? DevOp::PreMulSum : DevOp::Sum;
      check(world, {.method = method, .op = op, .count = 2001, .threads = threads});
    }
  }
}

TEST(CollNet, LargestBlocksWork) {
  CollNetWorld world({.nodes = 2, .locals = 2, .heads = 1, .lanes = 1, .slotBytes = 2048, .laneBytes = 2048});
  for (const JobMethod& method : {kDirect, kChain})
    check(world, {.method = method, .count = 2111, .threads = kMaxThreads});
}

TEST(CollNet, ElementAlignmentIsEnough) {
  CollNetWorld world({.nodes = 2, .locals = 2, .heads = 2, .lanes = 2, .slotBytes = 512});
  for (const JobMethod& method : kMethods) {
    for (const unsigned threads : {kThreads, 128u}) {
      check(world, {.method = method, .type = ncclInt8, .count = 1003, .threads = threads, .misalign = 1});
      check(world, {.method = method, .type = ncclFloat64, .count = 203, .threads = threads, .misalign = 1});
    }
  }
}

TEST(CollNet, CountersMayWrapAround) {
  CollNetWorld world(
      {.nodes = 2, .locals = 2, .heads = 2, .lanes = 2, .slotBytes = 512, .firstStep = ~std::uint64_t{0} - 5});
  for (int round = 0; round < 3; ++round) {
    for (const JobMethod& method : kMethods) check(world, {.method = method, .count = 900, .threads = kThreads});
  }
}

TEST(CollNet, LargeOutputsThatBypassTheCacheAreRight) {
  CollNetWorld world({.nodes = 2, .locals = 2, .heads = 2, .lanes = 1, .slotBytes = 128 << 10, .laneBytes = 128 << 10});
  constexpr std::uint64_t kCount = (9 << 17) + 5;  // 9 MB in few elements
  for (const JobMethod& method : {kDirect, kChain, kGather}) {
    const std::uint64_t count = method.func == Func::AllGather ? kCount / 4 : kCount;
    check(world, {.method = method, .type = ncclInt64, .count = count, .threads = kThreads});
  }
}

TEST(CollNet, AlternatesWithOtherAlgorithmsOnTheSameRanks) {
  CollNetWorld world({.nodes = 2, .locals = 2, .heads = 2, .lanes = 2, .slotBytes = 1024});
  const Job ring{.method = {Func::AllReduce, Algorithm::Ring, Protocol::Simple}, .type = ncclUint32, .count = 1700};
  const Job direct{.method = {Func::AllReduce, Algorithm::Direct, Protocol::Simple}, .type = ncclUint32, .count = 1700};
  for (int round = 0; round < 2; ++round) {
    for (const JobMethod& method : kMethods) {
      check(world, {.method = method, .type = ncclUint32, .count = 1700, .threads = kThreads});
      check(world.world(), round == 0 ? ring : direct);
    }
  }
}

// --- abort

/// Launches the kernels of the first `ranks` ranks, lets the network make `calls` calls, then aborts.
void abortWhile(const JobMethod& method, unsigned threads, int ranks, std::uint64_t calls) {
  const Job job{.method = method, .count = 20000, .threads = threads};
  if (isLeftOut(nameOf(job))) return;
  SCOPED_TRACE(nameOf(job) + " threads " + std::to_string(threads) + " ranks " + std::to_string(ranks));
  const unsigned lanes = threads == kThreads ? 2 : 1;
  CollNetWorld world({.nodes = 2, .locals = 2, .heads = 2, .lanes = lanes, .slotBytes = 512});
  world.network().stopAfter(calls);
  const CollNetThread driver(world.network());
  std::vector<std::vector<float>> in(4, std::vector<float>(4 * job.count, 1.0f)), out = in;
  std::vector<std::unique_ptr<Launch>> launches;
  for (int r = 0; r < ranks; ++r) {
    KernelArgs args{};
    args.comm = world.world().comm(r);
    args.nWorks = 2;
    for (CollWork& work : {std::ref(args.coll[0]), std::ref(args.coll[1])}) {
      work = workFor(world.world(), job);
      work.send = in[static_cast<std::size_t>(r)].data();
      work.recv = out[static_cast<std::size_t>(r)].data();
      work.count = job.count;
    }
    launches.push_back(std::make_unique<Launch>(kernelOf(job), lanes, threads, args));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  std::atomic_ref<std::uint32_t>(*world.world().abortWord()).store(1);
}

TEST(CollNet, AbortEndsAKernelWhosePeersNeverCome) {
  for (const JobMethod& method : kMethods) {
    for (const unsigned threads : {kThreads, 128u}) abortWhile(method, threads, 1, 0);
  }
}

TEST(CollNet, AbortEndsKernelsWhoseNetworkStopsInTheMiddle) {
  for (const JobMethod& method : kMethods) {
    for (const unsigned threads : {kThreads, 128u}) {
      for (const std::uint64_t calls : {0, 7, 21}) abortWhile(method, threads, 4, calls);
    }
  }
}

}  // namespace
}  // namespace tutti::device::test
