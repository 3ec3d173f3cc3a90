// Blocks that take the place of others that have ended.
#include "softgpu/exec/block.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "device/simt/simt.h"
#include "softgpu/exec/weak_memory.h"

namespace tutti::softgpu::test {
namespace {

struct Shared {
  std::uint32_t word;
  std::uint32_t others[64];
};
struct Params {
  std::uint32_t* out;  ///< a word per thread and block
};

/// Rounds of barriers and votes in which every thread needs every other one; odd threads end early.
void meetBody(simt::Thread t, Shared& shared, const Params& p) {
  std::uint32_t sum = 0;
  for (std::uint32_t round = 0; round < 5; ++round) {
    shared.others[t.index()] = t.index() + round;
    t.syncBlock();
    for (std::uint32_t i = 0; i < t.threads(); ++i) sum += shared.others[i];
    t.syncBlock();
    sum += t.ballot(t.index() % 32 == 7) >> 7 & 1;
  }
  if (t.index() % 2 == 1) return;
  t.syncBlock();
  p.out[t.block() * t.threads() + t.index()] = sum + t.blocks();
}
TUTTI_KERNEL(Meet, Params, Shared, 64, meetBody)

/// Tells what it found in its shared memory, and leaves something there.
void findBody(simt::Thread, Shared& shared, const Params& p) {
  *p.out = shared.word;
  shared.word = 17;
}
TUTTI_KERNEL(Find, Params, Shared, 1, findBody)

KernelOperation operationOf(const simt::HostKernel& kernel, std::uint32_t blocks, std::uint32_t threads,
                            std::uint32_t* out) {
  const Params params{out};
  return {&kernel, copyParams(&params, sizeof(params)), blocks, threads, 0};
}

std::unique_ptr<Block> run(std::unique_ptr<Block> block) {
  EXPECT_TRUE(block->ready());
  for (int i = 0; i < 1000 && !block->finished(); ++i) block->runPass(nullptr);
  EXPECT_TRUE(block->finished());
  EXPECT_EQ(block->trapped(), nullptr);
  return block;
}

TEST(Blocks, OneThatHasEndedBecomesAnother) {
  StackPool stacks;
  BlockPool pool;
  const Block* first = nullptr;
  std::vector<std::uint32_t> out(6 * 64);
  const KernelOperation two = operationOf(Meet_hostKernel, 2, 64, out.data());
  const KernelOperation six = operationOf(Meet_hostKernel, 6, 64, out.data());
  for (std::uint32_t i = 0; i < 2; ++i) {
    auto block = run(pool.take(two, i, stacks, nullptr));
    if (i == 0) first = block.get();
    EXPECT_EQ(block.get(), first);
    pool.give(std::move(block));
  }
  const std::uint32_t expected = out[0] - 2;
  EXPECT_EQ(expected, 5u * (63 * 64 / 2) + 64 * 10 + 5) << "sums of 0..63 and of the rounds, and a vote each";
  for (std::uint32_t i = 0; i < 6; ++i) {
    auto block = run(pool.take(six, i, stacks, nullptr));
    EXPECT_EQ(block.get(), first) << "of another launch of the same size";
    pool.give(std::move(block));
  }
  for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], i % 2 == 0 ? expected + 6 : 0) << i;
}

TEST(Blocks, OneOfAnotherSizeIsNotTaken) {
  StackPool stacks;
  BlockPool pool;
  std::vector<std::uint32_t> out(64);
  auto block = run(pool.take(operationOf(Meet_hostKernel, 1, 64, out.data()), 0, stacks, nullptr));
  const Block* const first = block.get();
  pool.give(std::move(block));
  const KernelOperation fewer = operationOf(Meet_hostKernel, 1, 32, out.data());
  KernelOperation larger = operationOf(Meet_hostKernel, 1, 64, out.data());
  larger.dynamicSharedBytes = 4096;
  EXPECT_FALSE(first->fits(fewer));
  EXPECT_FALSE(first->fits(larger));
  EXPECT_NE(run(pool.take(fewer, 0, stacks, nullptr)).get(), first);
  EXPECT_NE(run(pool.take(larger, 0, stacks, nullptr)).get(), first);
  EXPECT_EQ(run(pool.take(operationOf(Meet_hostKernel, 1, 64, out.data()), 0, stacks, nullptr)).get(), first);
}

TEST(Blocks, SharedMemoryIsNotClearedBetweenThem) {
  StackPool stacks;
  BlockPool pool;
  std::uint32_t found = 0;
  const KernelOperation find = operationOf(Find_hostKernel, 1, 1, &found);
  pool.give(run(pool.take(find, 0, stacks, nullptr)));
  pool.give(run(pool.take(find, 0, stacks, nullptr)));
  EXPECT_EQ(found, 17u) << "as on a GPU";
  pool.give(run(pool.take(find, 0, stacks, std::make_unique<WeakMemory>(1, 1))));
  EXPECT_EQ(found, 0xa5a5a5a5u) << "where stores are delayed, it is what nobody counts on";
  pool.give(run(pool.take(find, 0, stacks, nullptr)));
  EXPECT_EQ(found, 17u) << "and delays end with the block that had them";
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which map what they like
TEST(Blocks, ThatAreKeptDoNotKeepStacksFromOthers) {
  StackPool stacks;
  BlockPool pool;
  std::vector<std::uint32_t> out(64);
  const KernelOperation kept = operationOf(Meet_hostKernel, 1, 64, out.data());
  KernelOperation larger = kept;
  larger.dynamicSharedBytes = 4096;
  std::unique_ptr<Block> two[] = {run(pool.take(kept, 0, stacks, nullptr)), run(pool.take(kept, 0, stacks, nullptr))};
  for (auto& block : two) pool.give(std::move(block));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlimit tight{static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE)) + (1 << 20), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &tight), 0);  // 64 stacks take four times the rest
  const bool none = stacks.take(64).lowest == nullptr;
  auto block = pool.take(larger, 0, stacks, nullptr);
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_TRUE(none);
  run(std::move(block));
}
#endif

TEST(Blocks, ManyThatEndAtOnceAreNotAllKept) {
  StackPool stacks;
  BlockPool pool;
  std::uint32_t found = 0;
  const KernelOperation find = operationOf(Find_hostKernel, 1, 1, &found);
  std::vector<std::unique_ptr<Block>> all;
  for (int i = 0; i < 100; ++i) all.push_back(run(std::make_unique<Block>(find, 0, stacks)));
  for (auto& block : all) pool.give(std::move(block));
  int kept = 0;
  found = 0;
  for (int i = 0; i < 100; ++i) {
    all[static_cast<std::size_t>(i)] = run(pool.take(find, 0, stacks, nullptr));
    kept += found == 17 ? 1 : 0;
  }
  EXPECT_EQ(kept, 64);
}

TEST(Blocks, LargeOnesThatEndAtOnceAreKeptUpToANumberOfThreads) {
  StackPool stacks;
  BlockPool pool;
  std::vector<std::uint32_t> out(64);
  const KernelOperation meet = operationOf(Meet_hostKernel, 1, 64, out.data());
  std::vector<std::unique_ptr<Block>> all;
  for (int i = 0; i < 40; ++i) all.push_back(run(std::make_unique<Block>(meet, 0, stacks)));
  std::vector<const Block*> latest;
  for (std::size_t i = 8; i < all.size(); ++i) latest.push_back(all[i].get());
  for (auto& block : all) pool.give(std::move(block));
  for (std::size_t i = latest.size(); i-- > 0;) {
    all[i] = run(pool.take(meet, 0, stacks, nullptr));
    EXPECT_EQ(all[i].get(), latest[i]) << "of 40 blocks the latest 32 are kept, 2048 threads in all";
  }
}

}  // namespace
}  // namespace tutti::softgpu::test
