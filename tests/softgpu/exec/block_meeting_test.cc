// Threads of a block that meet: lanes by mask, barriers that some only arrive at, and what threads are told of the
// launch.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "softgpu/exec/block.h"
#include "softgpu/exec/random.h"
#include "softgpu/exec/weak_memory.h"

namespace tutti::softgpu::test {
namespace {

struct MeetingParams {
  std::uint32_t* out;
  std::uint32_t rounds;
};

KernelOperation operationOf(void (*entry)(simt::HostThread*, const void*), std::uint32_t threads, std::uint32_t* out) {
  // Lives as long as the program: blocks only point at it.
  static std::vector<std::unique_ptr<simt::HostKernel>> kernels;
  kernels.push_back(
      std::make_unique<simt::HostKernel>(simt::HostKernel{"Meeting", entry, sizeof(MeetingParams), 256, 1024}));
  const MeetingParams params{out, 20};
  KernelOperation operation;
  operation.kernel = kernels.back().get();
  operation.params = copyParams(&params, sizeof(params));
  operation.threads = threads;
  return operation;
}

/// In every order of threads that a few seeds give, the fair one among them. False if some never ended.
bool ends(const KernelOperation& operation, std::uint64_t seed, bool weak = false) {
  StackPool stacks;
  Random random(seed);
  Block block(operation, 0, stacks, weak ? std::make_unique<WeakMemory>(seed, operation.threads) : nullptr);
  EXPECT_TRUE(block.ready());
  for (int i = 0; i < 10000 && !block.finished(); ++i) block.runPass(seed == 0 ? nullptr : &random);
  EXPECT_EQ(block.trapped(), nullptr);
  return block.finished();
}
constexpr std::uint64_t kOrders = 8;

std::uint32_t lane(const simt::HostThread* self) {
  return self->thread % 32;
}
const MeetingParams& paramsOf(const void* params) {
  return *static_cast<const MeetingParams*>(params);
}

/// Three groups of each warp meet at a pace of their own, and sum what their lanes hand in.
void exchangeEntry(simt::HostThread* self, const void* params) {
  constexpr std::array<std::uint32_t, 3> kMasks = {0x000000ffu, 0x00ff0f00u, 0xff00f000u};
  std::uint32_t mask = 0;
  for (const std::uint32_t one : kMasks) mask |= (one >> lane(self) & 1) != 0 ? one : 0;
  std::uint32_t sum = 0;
  const std::uint32_t rounds = paramsOf(params).rounds + mask % 7;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    std::array<std::uint64_t, 32> values;
    values.fill(1000000);
    self->ops->exchange(self, mask, std::uint64_t{round} * 100 + lane(self), values.data());
    for (std::uint32_t i = 0; i < 32; ++i) {
      const bool member = (mask >> i & 1) != 0;
      if (values[i] != (member ? std::uint64_t{round} * 100 + i : 1000000)) sum += 1u << 20;
    }
    ++sum;
  }
  paramsOf(params).out[self->thread] = sum - mask % 7;
}

TEST(Exchange, GroupsOfOneWarpMeetIndependently) {
  for (std::uint64_t seed = 0; seed < kOrders; ++seed) {
    std::vector<std::uint32_t> out(64);
    ASSERT_TRUE(ends(operationOf(exchangeEntry, 64, out.data()), seed));
    for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], 20u) << "thread " << i << ", seed " << seed;
  }
}

/// Odd lanes leave, some before and some after the others wait.
void leavingEntry(simt::HostThread* self, const void* params) {
  if (lane(self) % 4 == 3) self->ops->pause(self, false);
  if (lane(self) % 2 == 1) return;
  std::array<std::uint64_t, 32> values;
  values.fill(7);
  self->ops->exchange(self, ~0u, 1, values.data());
  std::uint32_t sum = 0;
  for (const std::uint64_t value : values) sum += static_cast<std::uint32_t>(value);
  paramsOf(params).out[self->thread] = sum;
}

TEST(Exchange, LanesThatExitedOrNeverWereAreNotWaitedFor) {
  for (std::uint64_t seed = 0; seed < kOrders; ++seed) {
    std::vector<std::uint32_t> out(40);
    ASSERT_TRUE(ends(operationOf(leavingEntry, 40, out.data()), seed)) << "seed " << seed;
    EXPECT_EQ(out[0], 16u + 16 * 7) << "values of lanes that are gone are left alone";
    EXPECT_EQ(out[32], 4u + 28 * 7) << "the last warp has 8 lanes";
    EXPECT_EQ(out[1], 0u);
  }
}

/// Lane 0 stores, all meet, lane 1 releases a flag that covers what it learnt of lane 0's store.
void orderEntry(simt::HostThread* self, const void* params) {
  std::uint32_t* out = paramsOf(params).out;
  const std::uint32_t one = 1;
  if (lane(self) == 0) self->memory->store(out, &one, sizeof(one));
  std::array<std::uint64_t, 32> values;
  self->ops->exchange(self, 3, 0, values.data());
  if (lane(self) != 1) return;
  self->memory->storeRelease(out + 1, &one, sizeof(one));
  if (std::atomic_ref<std::uint32_t>(out[0]).load() == 0) out[2] = 1;
}

TEST(Exchange, PassesStoresToTheOthers) {
  for (std::uint64_t seed = 1; seed < 40; ++seed) {
    std::vector<std::uint32_t> out(4);
    ASSERT_TRUE(ends(operationOf(orderEntry, 2, out.data()), seed, true));
    EXPECT_EQ(out[1], 1u);
    EXPECT_EQ(out[2], 0u) << "the release covers what lane 0 stored, seed " << seed;
  }
}

/// Warp 0 produces and goes on, warp 1 consumes: each round's word is there when the barrier lets the consumer through.
void arriveEntry(simt::HostThread* self, const void* params) {
  auto* words = static_cast<std::uint32_t*>(self->shared);
  const MeetingParams& p = paramsOf(params);
  for (std::uint32_t round = 0; round < p.rounds; ++round) {
    if (self->thread < 32) {
      words[self->thread] = round + 1;
      self->ops->barrierArrive(self, 1, 64);
      self->ops->barrier(self, 2, 64);
    } else {
      self->ops->barrier(self, 1, 64);
      if (words[self->thread - 32] != round + 1) p.out[self->thread] = 100;
      self->ops->barrierArrive(self, 2, 64);
    }
  }
  p.out[self->thread] += 1;
}

TEST(Barriers, LetThroughWithThoseWhoOnlyArrive) {
  for (std::uint64_t seed = 0; seed < kOrders; ++seed) {
    std::vector<std::uint32_t> out(64);
    ASSERT_TRUE(ends(operationOf(arriveEntry, 64, out.data()), seed)) << "seed " << seed;
    for (const std::uint32_t word : out) ASSERT_EQ(word, 1u) << "seed " << seed;
  }
}

/// The first thread arrives and ends; it counts once.
void arriveAndEndEntry(simt::HostThread* self, const void* params) {
  if (self->thread == 0) return self->ops->barrierArrive(self, 0, 32);
  if (self->thread == 31) {
    for (int i = 0; i < 5; ++i) self->ops->pause(self, false);
    paramsOf(params).out[31] = 1;
  }
  self->ops->barrier(self, 0, 32);
  paramsOf(params).out[self->thread] += std::atomic_ref<std::uint32_t>(paramsOf(params).out[31]).load() != 0 ? 1 : 0;
}

TEST(Barriers, CountAThreadThatArrivedAndEndedOnce) {
  for (std::uint64_t seed = 0; seed < kOrders; ++seed) {
    std::vector<std::uint32_t> out(32);
    ASSERT_TRUE(ends(operationOf(arriveAndEndEntry, 32, out.data()), seed)) << "seed " << seed;
    for (std::size_t i = 1; i < 31; ++i) ASSERT_EQ(out[i], 1u) << "nobody passes before thread 31 has come";
  }
}

void countEntry(simt::HostThread* self, const void* params) {
  const MeetingParams& p = paramsOf(params);
  std::uint32_t wrong = 0;
  for (std::uint32_t round = 0; round < p.rounds; ++round) {
    const std::uint32_t found = self->ops->barrierCount(self, 0, self->threads, self->thread < round);
    wrong += found == round ? 0 : 1;
  }
  p.out[self->thread] = wrong + 1;
}

TEST(Barriers, CountThosePassingTrue) {
  for (const std::uint32_t threads : {64u, 40u}) {
    for (std::uint64_t seed = 0; seed < kOrders; ++seed) {
      std::vector<std::uint32_t> out(threads);
      ASSERT_TRUE(ends(operationOf(countEntry, threads, out.data()), seed)) << "seed " << seed;
      for (const std::uint32_t word : out) ASSERT_EQ(word, 1u) << "seed " << seed;
    }
  }
}

void roundedEntry(simt::HostThread* self, const void* params) {
  self->ops->barrier(self, 3, 64);
  paramsOf(params).out[self->thread] = 1;
}

TEST(Barriers, OfWholeWarpsAreMetByALastWarpOfFewerThreads) {
  std::vector<std::uint32_t> out(40);
  EXPECT_TRUE(ends(operationOf(roundedEntry, 40, out.data()), 0)) << "40 threads come to a barrier of 64";
}

constexpr std::uint32_t kAllLanes = 0xffffffff;

/// Each lane writes down when it went on: first before a store, then before a load. `out` is [0] how many did, then
/// lanes. They ask until they are together.
void togetherEntry(simt::HostThread* self, const void* params) {
  std::uint32_t* out = paramsOf(params).out;
  for (std::uint32_t round = 0; round < 4; ++round) {
    std::uint64_t values[32];
    do {
      self->ops->exchange(self, kAllLanes, 0, values);
    } while (self->ops->activeMask(self, 7) != kAllLanes);
    if (!self->ops->together(self, round % 2 == 1)) return;
    out[1 + out[0]++] = lane(self);
  }
}

TEST(Together, LanesGoOnInTheirOrderForAStoreAndAgainstItForALoad) {
  for (std::uint64_t seed = 0; seed < kOrders; ++seed) {
    std::vector<std::uint32_t> out(1 + 4 * 32);
    ASSERT_TRUE(ends(operationOf(togetherEntry, 32, out.data()), seed));
    ASSERT_EQ(out[0], 4 * 32U) << "seed " << seed;
    for (std::uint32_t i = 0; i < 4 * 32; ++i) {
      const bool load = i / 32 % 2 == 1;
      ASSERT_EQ(out[1 + i], load ? 31 - i % 32 : i % 32) << "place " << i << ", seed " << seed;
    }
  }
}

/// `out` is 1 for a lane that was told to go alone both before it asked and after it met the others again.
void apartEntry(simt::HostThread* self, const void* params) {
  std::uint64_t values[32];
  const bool before = self->ops->together(self, false);
  do {
    self->ops->exchange(self, kAllLanes, 0, values);
  } while (self->ops->activeMask(self, 7) != kAllLanes);
  self->ops->warpSync(self);
  paramsOf(params).out[self->thread] = !before && !self->ops->together(self, true);
}

TEST(Together, NobodyIsWhoHasNotAskedSinceItLastMetOthers) {
  for (std::uint64_t seed = 0; seed < kOrders; ++seed) {
    std::vector<std::uint32_t> out(32);
    ASSERT_TRUE(ends(operationOf(apartEntry, 32, out.data()), seed));
    for (std::uint32_t i = 0; i < 32; ++i) ASSERT_EQ(out[i], 1U) << i << ", seed " << seed;
  }
}

/// Odd lanes end before, and of the others every second one asks elsewhere.
void activeEntry(simt::HostThread* self, const void* params) {
  if (lane(self) % 2 == 1) return;
  paramsOf(params).out[self->thread] = self->ops->activeMask(self, lane(self) % 4);
}

TEST(ActiveMask, HoldsThoseWhoCanComeToTheSamePlaceOrOnlyOneself) {
  bool together = false;
  bool apart = false;
  for (std::uint64_t seed = 0; seed < kOrders; ++seed) {
    std::vector<std::uint32_t> out(32);
    ASSERT_TRUE(ends(operationOf(activeEntry, 32, out.data()), seed));
    for (std::uint32_t i = 0; i < 32; i += 2) {
      const std::uint32_t group = i % 4 == 0 ? 0x11111111 : 0x44444444;
      ASSERT_TRUE(out[i] == group || out[i] == 1U << i) << i << ", seed " << seed << ": " << out[i];
      together = together || out[i] == group;
      apart = apart || out[i] != group;
    }
  }
  EXPECT_TRUE(together);
  EXPECT_TRUE(apart);
}

void shapeEntry(simt::HostThread* self, const void* params) {
  const simt::HostShape& shape = *self->shape;
  std::uint32_t* out = paramsOf(params).out;
  for (int i = 0; i < 3; ++i) {
    out[i] = shape.block[i];
    out[3 + i] = shape.grid[i];
  }
  out[6] = shape.dynamicSharedBytes;
  out[7] = self->variables == nullptr ? 0 : *static_cast<const std::uint32_t*>(self->variables);
}

TEST(Threads, AreToldTheShapeAndWhereVariablesAre) {
  std::vector<std::uint32_t> out(8);
  KernelOperation operation = operationOf(shapeEntry, 6, out.data());
  operation.blocks = 5;
  operation.dynamicSharedBytes = 16;
  ASSERT_TRUE(ends(operation, 0));
  EXPECT_EQ(out, (std::vector<std::uint32_t>{6, 1, 1, 5, 1, 1, 16, 0})) << "one dimension, no variables";
  std::uint32_t variable = 99;
  auto code = std::make_shared<CodeLaunch>();
  code->shape = {{3, 2, 1}, {1, 5, 1}, 16};
  code->variables = &variable;
  operation.code = code;
  ASSERT_TRUE(ends(operation, 0));
  EXPECT_EQ(out, (std::vector<std::uint32_t>{3, 2, 1, 1, 5, 1, 16, 99}));
}

}  // namespace
}  // namespace tutti::softgpu::test
