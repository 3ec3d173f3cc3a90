// All-reduce on trees over every protocol.
#include <vector>

#include "device/collective_run.h"

namespace tutti::device::test {
namespace {

class Tree : public testing::TestWithParam<Protocol> {
 protected:
  static Case base() { return {.algorithm = Algorithm::Tree, .protocol = GetParam()}; }
};
INSTANTIATE_TEST_SUITE_P(Protocols, Tree, testing::Values(Protocol::LL, Protocol::LL128, Protocol::Simple),
                         [](const auto& p) { return std::string(protocolName(p.param)); });

TEST_P(Tree, EveryCountIsRightInEveryShape) {
  for (const int arity : {1, 2, 3}) {
    for (int nRanks = 1; nRanks <= 8; ++nRanks) {
      World world({.nRanks = nRanks, .nChannels = 2, .treeArity = arity});
      // None, one, odd, more than a chunk, more than the FIFO.
      for (const std::uint64_t count : {0, 1, 131, 1025, 9003}) {
        Case c = base();
        c.count = count, c.inPlace = (arity + nRanks) % 2 == 0;
        check(world, c);
      }
    }
  }
}

TEST_P(Tree, EveryTypeAndOperationIsExact) {
  World world({.nRanks = 5, .slotBytes = 512});
  for (int type = 0; type < ncclNumTypes; ++type) {
    for (const DevOp op : {DevOp::Sum, DevOp::Prod, DevOp::Max, DevOp::Min, DevOp::PreMulSum, DevOp::SumPostDiv}) {
      Case c = base();
      c.op = op, c.type = static_cast<ncclDataType_t>(type), c.count = 1300;
      if (kernelExists(c.func, c.algorithm, c.protocol, c.op, c.type)) check(world, c);
    }
  }
}

TEST_P(Tree, HalvesOfABlockWorkInBothDirections) {
  World world({.nRanks = 5, .slotBytes = 512});
  for (const unsigned threads : {32u, 64u}) {
    for (const std::uint64_t count : {1, 3000}) {
      Case c = base();
      c.threads = threads, c.count = count;
      check(world, c);
    }
  }
}

TEST_P(Tree, ElementAlignmentIsEnough) {
  World world({.nRanks = 4});
  for (const unsigned threads : {1u, 64u}) {
    Case c = base();
    c.threads = threads;
    c.type = ncclInt8, c.count = 3001, c.misalign = 1;
    check(world, c);
    c.type = ncclFloat16, c.count = 1501, c.misalign = 3;
    check(world, c);
  }
}

TEST_P(Tree, CountersMayWrapAround) {
  for (const std::uint64_t first : {~std::uint64_t{0} - 5, (std::uint64_t{1} << 32) - 6}) {
    World world({.nRanks = 5, .slotBytes = 512, .firstStep = first});
    for (int round = 0; round < 3; ++round) {
      Case c = base();
      c.count = 1500;
      check(world, c);
    }
  }
}

TEST_P(Tree, AbortEndsEveryRankWhosePeersNeverCome) {
  World world({.nRanks = 5});
  const auto name = kernelName(Func::AllReduce, Algorithm::Tree, GetParam(), DevOp::Sum, ncclFloat32);
  for (const int rank : {0, 1, 4}) {  // root, inner, leaf
    for (const unsigned threads : {1u, 64u}) {
      std::vector<float> data(4000, 1.0f);
      KernelArgs args{};
      args.comm = world.comm(rank);
      args.nWorks = 1;
      args.coll[0] = {
          .send = data.data(), .recv = data.data(), .count = data.size(), .chunkBytes = 1024, .stepsPerChunk = 1};
      std::atomic_ref<std::uint32_t>(*world.abortWord()).store(0);
      Launch launch(*findKernel(name), 1, threads, args);
      std::atomic_ref<std::uint32_t>(*world.abortWord()).store(1);
    }
  }
}

}  // namespace
}  // namespace tutti::device::test
