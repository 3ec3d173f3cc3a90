// Stacks of fibers: how many mappings they take, and what happens when one is too small.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "device/simt/simt.h"
#include "softgpu/exec/block.h"

namespace tutti::softgpu::test {
namespace {

struct DeepShared {};
struct DeepParams {
  std::uint32_t kilobytes;
};

[[gnu::noinline]] std::uint32_t descend(std::uint32_t levels) {
  volatile char kilobyte[1024];
  for (auto& byte : kilobyte) byte = static_cast<char>(levels);
  return levels == 0 ? 0 : descend(levels - 1) + static_cast<std::uint32_t>(kilobyte[17] != 0);
}

/// Thread 30 goes down its stack when the others have ended.
void deepBody(simt::Thread t, DeepShared&, const DeepParams& p) {
  if (t.index() != 30) return;
  t.syncBlock();
  descend(p.kilobytes);
}
TUTTI_KERNEL(Deep, DeepParams, DeepShared, 64, deepBody)

KernelOperation deep(std::uint32_t kilobytes) {
  return {&Deep_hostKernel, copyParams(&kilobytes, sizeof(kilobytes)), 1, 64, 0};
}

TEST(Stacks, AreLargeEnoughForKernels) {
  StackPool stacks;
  Block block(deep(48), 0, stacks);
  ASSERT_TRUE(block.ready());
  while (!block.finished()) block.runPass(nullptr);
  EXPECT_EQ(block.trapped(), nullptr);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // those map more, and have larger ones
TEST(Stacks, AnOverflowInASlabIsFound) {
  StackPool stacks;
  Block block(deep(64), 0, stacks);
  ASSERT_TRUE(block.ready());
  while (!block.finished()) block.runPass(nullptr);
  ASSERT_NE(block.trapped(), nullptr);
  EXPECT_NE(block.trapped()->find("thread 30 overflowed"), std::string::npos) << *block.trapped();
}

TEST(Stacks, AnOverflowIsNotBlamedOnTheNextBlock) {
  StackPool stacks;
  for (const std::uint32_t kilobytes : {64u, 1u}) {
    Block block(deep(kilobytes), 0, stacks);
    ASSERT_TRUE(block.ready());
    while (!block.finished()) block.runPass(nullptr);
    EXPECT_EQ(block.trapped() != nullptr, kilobytes == 64u);
  }
}

TEST(Stacks, OfLargeBlocksNeedFewMappings) {
  const auto mappings = [] {
    std::ifstream maps("/proc/self/maps");
    return std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
  };
  StackPool stacks;
  const auto before = mappings();
  std::vector<Stack> taken;
  for (int i = 0; i < 4096; ++i) taken.push_back(stacks.take(512));
  EXPECT_TRUE(std::all_of(taken.begin(), taken.end(), [](const Stack& stack) { return stack.lowest != nullptr; }));
  EXPECT_LT(mappings() - before, 200);
  for (const Stack& stack : taken) stacks.give(stack);
}
#endif

}  // namespace
}  // namespace tutti::softgpu::test
