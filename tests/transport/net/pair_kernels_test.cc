// The kernel of an AllReduce of two ranks over their connections for messages, in place.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "device/built_kernels.h"
#include "device/kernels/kernel_name.h"
#include "device/thread_executor.h"
#include "transport/net/sharing_world.h"

namespace tutti::test {
namespace {

using device::DevOp;
using device::KernelArgs;
using device::test::ThreadLaunch;

struct Pair {
  std::size_t count = 1;
  std::array<bool, 2> overwrites{};  ///< the rank's output is its input
  device::DevOp op = device::DevOp::Sum;
  std::uint32_t chunkSteps = 1;
  unsigned threads = 1;
};

float input(int rank, std::size_t i) {
  return static_cast<float>((static_cast<std::size_t>(rank) * 3 + i) % 7);
}

std::string kernelOf(device::DevOp op) {
  return device::kernelName(device::Func::AllReduce, device::Algorithm::Ring, device::Protocol::Simple, op,
                            ncclFloat32);
}

void reduce(SharingWorld& sharing, const Pair& c) {
  SCOPED_TRACE(std::to_string(c.count) + " elements, overwritten " + std::to_string(c.overwrites[0]) +
               std::to_string(c.overwrites[1]));
  device::test::World& world = sharing.world();
  const std::string name = kernelOf(c.op);
  const simt::HostKernel* kernel = device::test::findKernel(name);
  ASSERT_NE(kernel, nullptr) << name;
  std::vector<std::vector<float>> in(2), out(2);
  {
    std::vector<std::unique_ptr<device::test::ThreadLaunch>> launches;
    for (int r = 0; r < 2; ++r) {
      const auto rank = static_cast<std::size_t>(r);
      for (std::size_t i = 0; i < c.count; ++i) in[rank].push_back(input(r, i));
      out[rank].assign(c.count + 1, -1.0F);
      if (c.overwrites[rank]) in[rank].swap(out[rank]), out[rank].push_back(-1.0F);
      device::KernelArgs args{};
      args.comm = world.comm(r);
      args.nWorks = 1;
      device::CollWork& work = args.coll[0];
      work.send = c.overwrites[rank] ? out[rank].data() : in[rank].data();
      work.recv = out[rank].data();
      work.count = c.count;
      work.chunkBytes = c.chunkSteps * world.slotBytesOf(device::Protocol::Simple);
      work.stepsPerChunk = static_cast<std::uint8_t>(c.chunkSteps);
      work.pairMethod = device::PairMethod::InPlace;
      work.channelHi = static_cast<std::uint8_t>(world.shape().nChannels - 1);
      const float two = 2;
      std::memcpy(&work.scalar, &two, sizeof(two));
      work.op = c.op;
      launches.push_back(
          std::make_unique<device::test::ThreadLaunch>(*kernel, world.shape().nChannels, c.threads, args));
    }
  }
  for (std::size_t r = 0; r < 2; ++r) {
    for (std::size_t i = 0; i < c.count; ++i) {
      const float sum = input(0, i) + input(1, i);
      ASSERT_EQ(out[r][i], c.op == device::DevOp::PreMulSum ? 2 * sum : sum) << "rank " << r << " element " << i;
    }
    ASSERT_EQ(out[r][c.count], -1.0F) << "wrote past the end";
  }
}

/// Everything that either rank may find, whatever the other one has.
void reduceAll(SharingWorld& sharing, std::uint32_t chunkSteps) {
  for (const std::size_t count : {0, 1, 131, 1025, 9001}) {
    for (const bool first : {false, true}) {
      for (const bool second : {false, true}) {
        for (const device::DevOp op : {device::DevOp::Sum, device::DevOp::PreMulSum}) {
          reduce(sharing, {.count = count, .overwrites = {first, second}, .op = op, .chunkSteps = chunkSteps});
        }
      }
    }
  }
}

class PairInPlace : public testing::Test {
 protected:
  void SetUp() override {
    for (const device::DevOp op : {device::DevOp::Sum, device::DevOp::PreMulSum}) {
      if (device::test::isLeftOut(kernelOf(op))) GTEST_SKIP() << kernelOf(op) << " was left out of the build";
    }
  }
};

TEST_F(PairInPlace, IsRightHoweverFewSlotsThereAre) {
  for (const std::uint32_t slots : {1u, 2u, 16u}) {
    for (const std::uint32_t least : {1u, 400u}) {
      // A send ends when it is received: whoever waited for a peer that waits for him would wait for ever.
      SharingWorld sharing({.nRanks = 2, .slotBytes = 512, .pulls = true, .pullLeast = least}, slots,
                           {.delay = 2, .rendezvous = true});
      reduceAll(sharing, std::min(slots, 2u));
      sharing.settle();
    }
  }
}

TEST_F(PairInPlace, IsRightWhereMemoryCannotBeReached) {
  for (const std::uint32_t slots : {1u, 2u, 16u}) {
    SharingWorld sharing({.nRanks = 2, .nChannels = 2, .slotBytes = 512}, slots, {.refuse = 10, .rendezvous = true});
    reduceAll(sharing, std::min(slots, 2u));
    EXPECT_GT(sharing.settle(), 0u);
  }
}

TEST_F(PairInPlace, TakesNoSlotWhereTheOutputIsNotTheInput) {
  SharingWorld sharing({.nRanks = 2, .slotBytes = 512, .pulls = true, .pullLeast = 1}, 2, {});
  reduce(sharing, {.count = 1024, .chunkSteps = 2});
  EXPECT_EQ(sharing.settle(), 0u);
}

TEST_F(PairInPlace, TakesSlotsOnlyForWhatIsReducedWhereTheOutputIsTheInput) {
  SharingWorld sharing({.nRanks = 2, .slotBytes = 512, .pulls = true, .pullLeast = 1}, 2, {});
  reduce(sharing, {.count = 1024, .overwrites = {true, true}, .chunkSteps = 2});
  EXPECT_EQ(sharing.settle(), 2u * 4) << "4 KB: each rank reduces half of it, in steps of 512 bytes";
}

TEST_F(PairInPlace, SharesTheWorkAmongManyThreads) {
  SharingWorld sharing({.nRanks = 2, .slotBytes = 512, .pulls = true, .pullLeast = 1}, 4, {});
  for (const bool overwrites : {false, true}) {
    reduce(sharing, {.count = 5003, .overwrites = {overwrites, overwrites}, .chunkSteps = 2, .threads = 64});
  }
  sharing.settle();
}

}  // namespace
}  // namespace tutti::test
