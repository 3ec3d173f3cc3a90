// Networks that fail, and kernels that say what cannot be.
#include <gtest/gtest.h>

#include <string>

#include "support/log_capture.h"
#include "transport/collnet/collnet_world.h"
#include "transport/net/lane/counters.h"

namespace tutti::test {
namespace {

constexpr const char* kRank = "CollNet of rank 0 (host hosta, device 0), rail 1 by COLLNET/Fake/0";

/// Turns of one node's task until it fails.
Status failureOf(CollNetWorld::Node& node) {
  Status failed;
  EXPECT_TRUE(until([&] {
    failed = node.link->task()->advance().status();
    return !failed.ok();
  }));
  return failed;
}

TEST(FailingCollNet, NamesCallNumberAndCause) {
  struct Case {
    const char* call;
    collnet::CallWords words;
    const char* told;
  };
  for (const Case& c :
       {Case{"iallreduce", wordsFor(CollNetFunc::AllReduce, 64), "call 2 (AllReduce int32 sum of 64 bytes)"},
        Case{"iallgather", wordsFor(CollNetFunc::AllGather, 64, 0, 32), "call 2 (AllGather of 64 bytes)"},
        Case{"ireducescatter", wordsFor(CollNetFunc::ReduceScatter, 64, 0, 32),
             "call 2 (ReduceScatter int32 sum of 64 bytes)"}}) {
    CollNetWorld world;
    world.begin({kTwoLanes});
    for (int i = 0; i < 2; ++i) world.step(0, wordsFor(CollNetFunc::AllReduce, 4));
    world.nodes[0].network->knobs().failing = c.call;
    world.fill(world.nodes[0], 0, 0, c.words);
    expectLog("Fake: the switch is on fire");
    expectLog(
        std::string(kRank) + " failed in " + c.told +
        ": Fake: the switch is on fire. Other nodes' first errors may say why; NCCL_COLLNET_ENABLE=0 does without");
    EXPECT_EQ(failureOf(world.nodes[0]).code(), ncclSystemError);
    EXPECT_EQ(world.nodes[0].link->task()->advance().status().code(), ncclSystemError)
        << "and the network is left alone";
  }
}

TEST(FailingCollNet, NamesTestsAndFlushes) {
  struct Case {
    const char* call;
    unsigned after;
    const char* told;
  };
  for (const Case& c : {Case{"test", 0, "the test of call 0 (AllReduce int32 sum of 64 bytes)"},
                        Case{"iflush", 0, "the flush of call 0 (AllReduce int32 sum of 64 bytes)"},
                        Case{"test", 1, "the test of the flush of call 0 (AllReduce int32 sum of 64 bytes)"}}) {
    CollNetWorld world({.nodes = 1,
                        .place = {.onDevice = true, .flushes = true},
                        .knobs = {{.failing = c.call, .failAfter = c.after}}});
    world.begin({kTwoLanes});
    world.fill(world.nodes[0], 0, 0, wordsFor(CollNetFunc::AllReduce, 64));
    expectLog("Fake: the switch is on fire");
    expectLog(std::string(kRank) + " failed in " + c.told);
    EXPECT_EQ(failureOf(world.nodes[0]).code(), ncclSystemError);
    EXPECT_FALSE(world.nodes[0].sets[0][0].mayRead()) << "nothing that may be wrong is delivered";
  }
}

TEST(FailingCollNet, BelievesNoWord) {
  for (const auto& words :
       {collnet::CallWords{0x990000, 0, 64, 0}, wordsFor(CollNetFunc::AllReduce, 1 << 20),
        wordsFor(CollNetFunc::AllGather, 64, 8, 32), wordsFor(CollNetFunc::ReduceScatter, 6, 0, 6)}) {
    CollNetWorld world;
    world.begin({kTwoLanes});
    world.step(0, wordsFor(CollNetFunc::AllReduce, 4));
    auto& lanes = world.nodes[0].sets[0];
    lanes[0].say(words);
    for (auto& lane : lanes) lane.fill();
    expectLog(std::string(kRank) + ": a kernel says of step 1 of CollNetDirect: ");
    EXPECT_EQ(failureOf(world.nodes[0]).code(), ncclInternalError);
    EXPECT_EQ(world.nodes[0].network->taken().size(), 1u);
  }
}

TEST(FailingCollNet, BelievesNoCounter) {
  for (const bool tail : {true, false}) {
    CollNetWorld world;
    world.begin({kTwoLanes});
    auto& lanes = world.nodes[0].sets[0];
    world.fill(world.nodes[0], 0, 0, wordsFor(CollNetFunc::AllReduce, 4));
    const device::CollNetConn& conn = lanes[1].conn();
    net::storeCounter(&(tail ? conn.sendTail : conn.recvHead)->value, tail ? 9 : 1);
    expectLog(std::string(kRank) + ": channel 5 of CollNetDirect says that it has filled " + (tail ? "9" : "1") +
              " steps and read " + (tail ? "0" : "1") + ", where 0 have come");
    EXPECT_EQ(failureOf(world.nodes[0]).code(), ncclInternalError);
  }
}

TEST(FailingCollNet, RefusesStepsOfASetBesideCallsOfAnother) {
  CollNetWorld world({.nodes = 1, .knobs = {{.neverEnds = true}}});
  world.begin({kTwoLanes, {"CollNetChain", {5}, 1024}});
  world.fill(world.nodes[0], 0, 0, wordsFor(CollNetFunc::AllReduce, 64));
  world.advance();
  world.fill(world.nodes[0], 0, 1, wordsFor(CollNetFunc::AllReduce, 64));
  expectLog(std::string(kRank) +
            ": kernels have filled step 0 of CollNetChain while calls of CollNetDirect are under way");
  EXPECT_EQ(failureOf(world.nodes[0]).code(), ncclInternalError);
}

TEST(StalledCollNet, SaysWhatItWaitsFor) {
  CollNetWorld world({.nodes = 2, .place = {.onDevice = true, .flushes = true}});
  auto& node = world.nodes[0];
  EXPECT_EQ(node.link->task()->describe(), "CollNet of rail 1 by COLLNET/Fake/0: no lanes");
  world.begin({kTwoLanes});
  world.step(0, wordsFor(CollNetFunc::AllReduce, 4));
  EXPECT_EQ(node.link->task()->describe(),
            "CollNet of rail 1 by COLLNET/Fake/0: step 1 of CollNetDirect, waits for a kernel");
  EXPECT_TRUE(node.link->task()->quiet());
  EXPECT_EQ(node.link->task()->hold().blockedBy, proxy::BlockedBy::Nobody);

  node.network->knobs().refuse = 100;
  const auto words = wordsFor(CollNetFunc::AllReduce, 4096, 0, 0, ncclFloat32);
  for (std::size_t n = 0; n < 2; ++n) world.fill(world.nodes[n], n, 0, words);
  world.advance();
  EXPECT_EQ(
      node.link->task()->describe(),
      "CollNet call 1 (AllReduce float32 sum of 4096 bytes) of rail 1 by COLLNET/Fake/0: waits for the network to "
      "take it");
  EXPECT_FALSE(node.link->task()->quiet());
  EXPECT_EQ(node.link->task()->hold().blockedBy, proxy::BlockedBy::Network);

  node.network->knobs().refuse = 0;
  node.network->knobs().neverEnds = true;
  for (int i = 0; i < 3; ++i) world.advance();
  EXPECT_EQ(node.link->task()->describe(),
            "CollNet call 1 (AllReduce float32 sum of 4096 bytes) of rail 1 by COLLNET/Fake/0: waits for the network");

  node.network->knobs().neverEnds = false;
  node.network->knobs().delay = 1'000'000;
  ASSERT_TRUE(until([&] {
    world.advance();
    return node.network->flushes == 2;
  }));
  world.advance();
  EXPECT_EQ(node.link->task()->describe(),
            "CollNet call 1 (AllReduce float32 sum of 4096 bytes) of rail 1 by COLLNET/Fake/0: waits for the flush of "
            "what came");
  const proxy::TaskCounters counters = node.link->task()->counters();
  EXPECT_EQ(counters.posted, 2u);
  EXPECT_EQ(counters.done, 1u);
  EXPECT_EQ(counters.bytes, 4u + 4096u);
  EXPECT_EQ(counters.stalls, 1u);
}

}  // namespace
}  // namespace tutti::test
