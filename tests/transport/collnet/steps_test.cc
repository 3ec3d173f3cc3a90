// Steps of lanes as calls of the network: which, in which order, with which bytes.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "transport/collnet/collnet_world.h"

namespace tutti::test {
namespace {

using Strings = std::vector<std::string>;

TEST(CollNetSteps, MergeTheLanesIntoOneCall) {
  CollNetWorld world;
  world.begin({kDirect});
  world.step(0, wordsFor(CollNetFunc::AllReduce, 8192));
  EXPECT_EQ(world.nodes[0].network->taken(), Strings{"iallreduce 2/0 of 8192 from 0 of 0"});
  world.expectSameCalls();
}

TEST(CollNetSteps, ComeBackRightForAllFunctionsAndWindows) {
  for (const int nodes : {1, 2, 3, 5}) {
    CollNetWorld world({.nodes = nodes});
    world.begin({kDirect});
    for (int round = 0; round < 2; ++round) {
      for (const auto& words : someSteps(static_cast<std::uint64_t>(nodes), 8192)) world.step(0, words);
    }
    world.expectSameCalls();
  }
}

TEST(CollNetSteps, WithoutBytesMakeNoCall) {
  CollNetWorld world;
  world.begin({kDirect});
  for (int i = 0; i < 20; ++i) world.step(0, {.call = 0xdead, .begin = 77, .bytes = 0, .perNode = 3});
  EXPECT_TRUE(world.nodes[0].network->taken().empty());
  EXPECT_EQ(world.nodes[0].link->task()->counters().done, 20u);
}

TEST(CollNetSteps, WaitForTheLastLane) {
  CollNetWorld world;
  world.begin({kDirect});
  const auto words = wordsFor(CollNetFunc::AllReduce, 64);
  for (auto& node : world.nodes) {
    node.sets[0][0].say(words);
    node.sets[0][0].fill();
  }
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(world.advance());
  EXPECT_EQ(
      world.nodes[0].link->task()->describe(),
      "CollNet of rail 1 by COLLNET/Fake/0: step 0 of CollNetDirect, waits for the kernel on channel 1 to fill its "
      "slot");
  EXPECT_FALSE(world.nodes[0].link->task()->quiet());
  for (auto& node : world.nodes) node.sets[0][1].fill();
  EXPECT_TRUE(until([&] {
    world.advance();
    return world.nodes[1].sets[0][1].mayRead();
  }));
  EXPECT_EQ(world.nodes[0].network->taken().size(), 1u);
}

TEST(CollNetSteps, GoAheadByEightAndNoFurther) {
  CollNetWorld world;
  world.begin({kDirect});
  const auto words = wordsFor(CollNetFunc::AllReduce, 64);
  // All is sent and comes back, and nobody reads.
  for (std::uint64_t s = 0; s < 2 * device::kSteps; ++s) {
    for (std::size_t n = 0; n < 2; ++n) world.fill(world.nodes[n], n, 0, words);
    for (int i = 0; i < 5; ++i) world.advance();
  }
  EXPECT_EQ(world.nodes[0].network->taken().size(), 8u);
  EXPECT_FALSE(world.nodes[0].sets[0][0].mayFill());
  EXPECT_EQ(world.nodes[0].link->task()->describe(),
            "CollNet of rail 1 by COLLNET/Fake/0: step 8 of CollNetDirect, waits for the kernel on channel 0 to free a "
            "slot");
  // The words of steps 0 to 7 are still there, beside those of 8 to 15.
  for (std::uint64_t s = 0; s < 2 * device::kSteps; ++s) {
    for (std::size_t n = 0; n < 2; ++n) world.read(n, 0, words);
    for (int i = 0; i < 5; ++i) world.advance();
  }
  EXPECT_EQ(world.nodes[0].network->taken().size(), 16u);
  EXPECT_TRUE(world.nodes[0].link->task()->quiet());
  world.expectSameCalls();
}

TEST(CollNetSteps, KeepTheirWordsWhileKernelsSayThoseOfStepsFarAhead) {
  CollNetWorld world({.nodes = 1});
  world.begin({kDirect});
  auto& lanes = world.nodes[0].sets[0];
  const auto bytesOf = [](std::uint64_t step) { return 4 * (step + 1); };
  for (std::uint64_t s = 0; s < 64; ++s) {
    // Kernels fill eight steps, say the words of the next one, and wait for its slot.
    world.fill(world.nodes[0], 0, 0, wordsFor(CollNetFunc::AllReduce, bytesOf(s)));
    lanes[0].say(wordsFor(CollNetFunc::AllReduce, bytesOf(s + 1)));
    if (s < device::kSteps - 1) continue;
    world.advance();  // takes all that is there
    world.advance();  // and ends it
    while (lanes[0].mayRead()) {
      for (auto& lane : lanes) lane.free();
    }
  }
  const auto taken = world.nodes[0].network->taken();
  ASSERT_EQ(taken.size(), 64u);
  for (std::uint64_t s = 0; s < taken.size(); ++s) {
    EXPECT_EQ(taken[s], "iallreduce 2/0 of " + std::to_string(bytesOf(s)) + " from 0 of 0");
  }
}

TEST(CollNetSteps, AreCutWhereTheNetworkTakesLessAndAlikeOnAllNodes) {
  // The second node's device takes least.
  CollNetWorld world({.nodes = 2, .knobs = {{.mostBytes = 1 << 20}, {.mostBytes = 1000}}});
  world.begin({kDirect});
  world.step(0, wordsFor(CollNetFunc::AllReduce, 2500));
  EXPECT_EQ(world.nodes[0].network->taken(),
            (Strings{"iallreduce 2/0 of 1000 from 0 of 0", "iallreduce 2/0 of 1000 from 0 of 0",
                     "iallreduce 2/0 of 500 from 0 of 0"}));
  for (const auto& words : someSteps(2, 8192)) world.step(0, words);
  world.expectSameCalls();
  EXPECT_LE(world.nodes[0].network->mostOpen, 8u);
}

TEST(CollNetSteps, AreCutBetweenPagesWhereOneHasRoom) {
  CollNetWorld world({.nodes = 2, .knobs = {{.mostBytes = 5000}}});
  world.begin({{"CollNetDirect", {0}, 16384}});
  world.step(0, wordsFor(CollNetFunc::ReduceScatter, 10000, 20000, 16000));
  EXPECT_EQ(world.nodes[1].network->taken(),
            (Strings{"ireducescatter 2/0 of 4096 from 20000 of 16000", "ireducescatter 2/0 of 4096 from 24096 of 16000",
                     "ireducescatter 2/0 of 1808 from 28192 of 16000"}));
}

TEST(CollNetSteps, AreCalledAgainUntilTheNetworkTakesThem) {
  std::vector<FakeCollNetKnobs> knobs;
  for (unsigned n = 0; n < 3; ++n) knobs.push_back({.seed = n + 1, .refuse = 60, .delay = 4, .mostBytes = 2048});
  CollNetWorld world({.nodes = 3, .knobs = knobs});
  world.begin({kDirect});
  for (const auto& words : someSteps(3, 8192)) world.step(0, words);
  EXPECT_GT(world.nodes[0].network->refused, 0u);
  EXPECT_GT(world.nodes[0].link->task()->counters().stalls, 0u);
  world.expectSameCalls();
}

TEST(CollNetSteps, OfTwoSetsTakeTurns) {
  CollNetWorld world;
  world.begin({kDirect, {"CollNetChain", {1}, 1024}});
  for (int round = 0; round < 12; ++round) {
    world.step(0, wordsFor(CollNetFunc::AllReduce, 8192));
    world.step(1, wordsFor(CollNetFunc::AllReduce, 1024));
    world.step(1, wordsFor(CollNetFunc::AllReduce, 4));
  }
  EXPECT_EQ(world.nodes[0].network->taken().size(), 36u);
  world.expectSameCalls();
}

TEST(CollNetSteps, AreFlushedInDeviceMemory) {
  for (const bool atOnce : {false, true}) {
    CollNetWorld world({.nodes = 2,
                        .place = {.onDevice = true, .dmaBuf = false, .flushes = true},
                        .knobs = {{.delay = 3, .flushesAtOnce = atOnce}}});
    world.begin({kDirect});
    world.step(0, wordsFor(CollNetFunc::AllReduce, 100));
    world.step(0, wordsFor(CollNetFunc::ReduceScatter, 100, 0, 60));  // node 1 receives 40 bytes
    world.step(0, wordsFor(CollNetFunc::ReduceScatter, 40, 60, 60));  // node 0 receives nothing
    world.step(0, wordsFor(CollNetFunc::AllReduce, 0));
    EXPECT_EQ(world.nodes[0].network->flushedBytes, 160u);
    EXPECT_EQ(world.nodes[1].network->flushedBytes, 180u);
    EXPECT_EQ(world.nodes[0].network->flushes, 2u) << "of what came, and once a step";
    EXPECT_EQ(world.nodes[0].network->onDevice, 2u);
  }
}

}  // namespace
}  // namespace tutti::test
