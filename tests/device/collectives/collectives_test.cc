// The collective kernels over every protocol.
#include <vector>

#include "device/collective_run.h"

namespace tutti::device::test {
namespace {

constexpr Protocol kProtocolList[] = {Protocol::LL, Protocol::LL128, Protocol::Simple};
constexpr Func kFuncs[] = {Func::Broadcast, Func::Reduce, Func::AllGather, Func::ReduceScatter, Func::AllReduce};

class RingCollectives : public testing::TestWithParam<Protocol> {};
INSTANTIATE_TEST_SUITE_P(Protocols, RingCollectives, testing::ValuesIn(kProtocolList),
                         [](const auto& p) { return std::string(protocolName(p.param)); });

TEST_P(RingCollectives, EveryCountIsRightOnEveryNumberOfRanks) {
  for (const int nRanks : {1, 2, 3, 4, 5, 8}) {
    World world({.nRanks = nRanks});
    for (const Func func : kFuncs) {
      // None, one, odd, more than a chunk (1024 floats), more than the FIFO (2048 floats).
      for (const std::uint64_t count : {0, 1, 131, 1025, 5003}) {
        for (const bool inPlace : {false, true}) {
          check(world, {.func = func, .protocol = GetParam(), .count = count, .inPlace = inPlace, .root = nRanks - 1});
        }
      }
    }
  }
}

TEST_P(RingCollectives, TwoRanksThatExchangeOverwriteNothingThatTheirPeerHasYetToRead) {
  for (const bool pulls : {false, true}) {
    World world({.nRanks = 2, .pulls = pulls});
    for (const std::uint64_t count : {1, 131, 1025, 5003}) {
      for (const unsigned threads : {1u, 32u}) {
        for (const bool inPlace : {false, true}) {
          check(world, {.protocol = GetParam(),
                        .count = count,
                        .inPlace = inPlace,
                        .threads = threads,
                        .pairMethod = PairMethod::Exchange});
        }
        check(world, {.protocol = GetParam(),
                      .count = count,
                      .inPlace = true,
                      .threads = threads,
                      .pairMethod = PairMethod::Exchange,
                      .mixed = true});
      }
    }
  }
}

TEST_P(RingCollectives, EveryTypeAndOperationIsExact) {
  World world({.nRanks = 3, .slotBytes = 512});
  for (int type = 0; type < ncclNumTypes; ++type) {
    for (const DevOp op : {DevOp::Sum, DevOp::Prod, DevOp::Max, DevOp::Min, DevOp::PreMulSum, DevOp::SumPostDiv}) {
      for (const Func func : {Func::AllReduce, Func::ReduceScatter, Func::Reduce}) {
        const auto t = static_cast<ncclDataType_t>(type);
        if (!kernelExists(func, Algorithm::Ring, GetParam(), op, t)) continue;
        check(world, {.func = func, .protocol = GetParam(), .op = op, .type = t, .count = 1300});
      }
    }
  }
}

TEST_P(RingCollectives, WarpsShareTheWorkOfABlock) {
  World world({.nRanks = 2, .nChannels = 2, .slotBytes = 512});
  for (const Func func : kFuncs) {
    for (const std::uint64_t count : {1, 777}) {
      check(world, {.func = func, .protocol = GetParam(), .count = count, .threads = 32});
    }
  }
  check(world, {.protocol = GetParam(), .op = DevOp::PreMulSum, .count = 900, .threads = 64});
  check(world, {.protocol = GetParam(), .type = ncclInt8, .count = 4000, .threads = 64, .misalign = 3});
  check(world, {.protocol = GetParam(), .op = DevOp::SumPostDiv, .type = ncclInt32, .count = 1200, .threads = 64});
  check(world, {.protocol = GetParam(), .op = DevOp::Max, .type = ncclFloat16, .count = 1201, .threads = 64});
}

TEST_P(RingCollectives, AFullBlockShares) {
  World world({.nRanks = 2, .slotBytes = 4096});
  check(world, {.protocol = GetParam(), .count = 9000, .threads = 256});
}

TEST_P(RingCollectives, ElementAlignmentIsEnough) {
  World world({.nRanks = 3});
  for (const Func func : kFuncs) {
    const Case base{.func = func, .protocol = GetParam()};
    for (const unsigned threads : {1u, 32u}) {
      Case c = base;
      c.threads = threads;
      c.type = ncclInt8, c.count = 3001, c.misalign = 1;
      check(world, c);
      c.type = ncclFloat16, c.count = 1501, c.misalign = 3;
      check(world, c);
      c.type = ncclFloat64, c.count = 501, c.misalign = 1;
      check(world, c);
    }
  }
}

TEST_P(RingCollectives, CountersMayWrapAround) {
  const std::uint64_t first = ~std::uint64_t{0} - 5;
  World world({.nRanks = 2, .slotBytes = 512, .firstStep = first, .staleStep = first - 8});
  for (int round = 0; round < 3; ++round) check(world, {.protocol = GetParam(), .count = 1500});
}

TEST_P(RingCollectives, EveryRootIsServed) {
  World world({.nRanks = 4});
  for (int root = 0; root < 4; ++root) {
    check(world, {.func = Func::Broadcast, .protocol = GetParam(), .count = 300, .root = root});
    check(world, {.func = Func::Reduce, .protocol = GetParam(), .count = 300, .root = root});
  }
}

TEST_P(RingCollectives, LargeOutputsThatBypassTheCacheAreRight) {
  World world({.nRanks = 2, .slotBytes = 128 << 10});
  const std::size_t count = (9 << 17) + 5;  // wide elements, for there to be few of them to look at
  check(world, {.func = Func::AllReduce, .protocol = GetParam(), .type = ncclInt64, .count = count});
  check(world, {.func = Func::ReduceScatter, .protocol = GetParam(), .type = ncclInt64, .count = count, .misalign = 1});
}

TEST_P(RingCollectives, AbortEndsAKernelWhosePeerNeverComes) {
  World world({.nRanks = 2});
  for (const Func func : kFuncs) {
    for (const unsigned threads : {1u, 64u}) {
      std::vector<float> data(20000, 1.0f);
      KernelArgs args{};
      args.comm = world.comm(0);
      args.nWorks = 1;
      args.coll[0] = {.send = data.data(),
                      .recv = data.data(),
                      .count = data.size() / 2,
                      .chunkBytes = 2048,
                      .root = func == Func::Reduce ? 1 : 0,
                      .stepsPerChunk = 2};
      std::atomic_ref<std::uint32_t>(*world.abortWord()).store(0);
      const auto name = kernelName(func, Algorithm::Ring, GetParam(), DevOp::Sum, ncclFloat32);
      Launch launch(*findKernel(name), 1, threads, args);
      std::atomic_ref<std::uint32_t>(*world.abortWord()).store(1);
    }
  }
}

// The flags of LL come round after 2^32 steps. Lines left from just before that look new, unless the sender has
// written every line at the start of the epoch: as here, where small messages pass that start and a large one follows.
TEST(LLEpoch, LinesOfThePreviousRoundOfFlagsAreNotTakenForNew) {
  const std::uint64_t epoch = 3 * ll::kEpochSteps;
  World world({.nRanks = 2, .slotBytes = 512, .firstStep = epoch - 4, .staleStep = epoch + 12});
  for (int round = 0; round < 16; ++round) check(world, {.protocol = Protocol::LL, .count = 1});
  check(world, {.protocol = Protocol::LL, .count = 3000, .threads = 32});  // each looks at once at a line of its own
}

TEST(LLEpoch, FlagsMayWrapAround) {
  for (const std::uint64_t first : {(std::uint64_t{1} << 32) - 6, (std::uint64_t{1} << 32) + ll::kEpochSteps - 6}) {
    World world({.nRanks = 3, .slotBytes = 512, .firstStep = first, .staleStep = first - 8});
    for (int round = 0; round < 3; ++round) check(world, {.protocol = Protocol::LL, .count = 700});
  }
}

}  // namespace
}  // namespace tutti::device::test
