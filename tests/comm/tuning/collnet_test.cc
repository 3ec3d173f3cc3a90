#include <gtest/gtest.h>

#include "comm/plan/plan.h"
#include "comm/plan/plan_context.h"
#include "comm/plan/planner.h"
#include "comm/tuning/choice.h"
#include "support/log_capture.h"
#include "tuning_worlds.h"

namespace tutti::test {
namespace {

using comm::CollNetFacts;
using device::Algorithm;
using device::Func;

/// Four nodes of so many ranks whose network reduces sums of float.
comm::TuningInput inNetwork(int locals, bool everyRankHeads) {
  comm::TuningInput input = gpuInput(4 * locals);
  input.ranks.nNodes = 4;
  input.speeds = comm::assumedSpeeds(input.ranks, input.nChannels, false);
  CollNetFacts& facts = input.collNet;
  facts.why.clear();
  facts.direct = facts.chain = true;
  facts.gathers = facts.scatters = everyRankHeads;
  facts.heads = everyRankHeads ? locals : 1;
  facts.mostLocals = locals;
  facts.slotBytes = 512 << 10;
  facts.reduces.add(ncclFloat32, ncclSum);
  facts.directSpeed = facts.chainSpeed = input.speeds.ring;
  return input;
}

comm::Verdict verdictOf(const comm::Tuning& tuning, const comm::Request& request, Algorithm algorithm) {
  for (const comm::Candidate& candidate : comm::weigh(tuning, request)) {
    if (candidate.algorithm == algorithm && candidate.protocol == device::Protocol::Simple) return candidate.verdict;
  }
  return comm::Verdict::NoKernel;
}

comm::Request sumOf(std::uint64_t bytes, Func func = Func::AllReduce) {
  return {.func = func, .op = device::DevOp::Sum, .type = ncclFloat32, .bytes = bytes};
}

TEST(CollNetTuning, TakesWhatTheNetworkDoesAlone) {
  const comm::Tuning tuning = comm::makeTuning(inNetwork(2, false));
  for (const Algorithm algorithm : {Algorithm::CollNetDirect, Algorithm::CollNetChain}) {
    EXPECT_EQ(verdictOf(tuning, sumOf(1 << 20), algorithm), comm::Verdict::Possible);
    comm::Request maximum = sumOf(1 << 20);
    maximum.op = device::DevOp::Max;
    EXPECT_EQ(verdictOf(tuning, maximum, algorithm), comm::Verdict::NotInNetwork);
    comm::Request doubles = sumOf(1 << 20);
    doubles.type = ncclFloat64;
    EXPECT_EQ(verdictOf(tuning, doubles, algorithm), comm::Verdict::NotInNetwork);
  }
}

TEST(CollNetTuning, AveragesAndScaledSumsAreSumsToTheNetwork) {
  const comm::Tuning tuning = comm::makeTuning(inNetwork(2, false));
  comm::Request average = sumOf(1 << 20);
  average.op = device::DevOp::PreMulSum;
  EXPECT_EQ(verdictOf(tuning, average, Algorithm::CollNetDirect), comm::Verdict::Possible);
}

TEST(CollNetTuning, GathersAndScattersOnlyWhereEveryRankIsAHead) {
  for (const bool all : {false, true}) {
    const comm::Tuning tuning = comm::makeTuning(inNetwork(2, all));
    const comm::Verdict wanted = all ? comm::Verdict::Possible : comm::Verdict::NotInNetwork;
    EXPECT_EQ(verdictOf(tuning, sumOf(1 << 20, Func::AllGather), Algorithm::CollNetDirect), wanted);
    EXPECT_EQ(verdictOf(tuning, sumOf(1 << 20, Func::ReduceScatter), Algorithm::CollNetDirect), wanted);
    EXPECT_EQ(verdictOf(tuning, sumOf(1 << 20, Func::AllGather), Algorithm::CollNetChain), comm::Verdict::NoKernel);
  }
}

TEST(CollNetTuning, WithoutANetworkThatReducesThereIsNone) {
  const comm::Tuning tuning = comm::makeTuning(gpuInput(4));
  EXPECT_EQ(verdictOf(tuning, sumOf(1 << 20), Algorithm::CollNetDirect), comm::Verdict::NoConnections);
}

TEST(CollNetTuning, WhoForcesItIsToldWhyThereIsNone) {
  const comm::Tuning tuning = comm::makeTuning(restricted(gpuInput(4), "CollNetDirect", ""));
  expectLog("CollNet is not enabled (NCCL_COLLNET_ENABLE");
  EXPECT_EQ(comm::chooseCollective(tuning, sumOf(1 << 20)).status().code(), ncclInvalidUsage);
}

TEST(CollNetTuning, EveryCollectiveTakesAllLanesAndStepsThatFitIntoASlot) {
  const comm::Tuning tuning = comm::makeTuning(restricted(inNetwork(2, true), "CollNetDirect", ""));
  for (const std::uint64_t bytes : {4UL, 1UL << 16, 1UL << 24, 1UL << 32}) {
    const comm::Choice choice = comm::chooseCollective(tuning, sumOf(bytes)).value();
    EXPECT_EQ(choice.algorithm, Algorithm::CollNetDirect);
    EXPECT_EQ(choice.nChannels, tuning.input.nChannels) << bytes;
    EXPECT_LE(choice.chunkBytes, tuning.input.collNet.slotBytes);
    EXPECT_GE(choice.chunkBytes, device::kGrainBytes);
    EXPECT_EQ(choice.chunkBytes % device::kGrainBytes, 0U);
  }
}

TEST(CollNetTuning, IsQuickerThanARingThroughManyNodes) {
  const comm::Tuning tuning = comm::makeTuning(inNetwork(1, true));
  const comm::Choice choice = comm::chooseCollective(tuning, sumOf(std::uint64_t{256} << 20)).value();
  EXPECT_TRUE(device::isCollNet(choice.algorithm));
}

TEST(CollNetPlans, CollectivesOfAGroupTakeAllLanesEach) {
  comm::PlanContext context;
  context.tuning = comm::makeTuning(restricted(inNetwork(2, true), "CollNetDirect", ""));
  std::vector<comm::Op> ops(2);
  for (comm::Op& op : ops) {
    op.func = comm::ApiFunc::AllReduce;
    op.count = 1 << 20;
    op.datatype = ncclFloat32;
  }
  comm::Planner planner;
  comm::Plan plan;
  ASSERT_TRUE(planner.plan(context, ops, plan).ok());
  EXPECT_TRUE(plan.usesCollNetDirect);
  EXPECT_FALSE(plan.usesRing || plan.usesCollNetChain);
  ASSERT_EQ(plan.launches.size(), 1U);
  for (const device::CollWork& work : plan.launches[0].colls()) {
    EXPECT_EQ(work.channelLo, 0);
    EXPECT_EQ(work.channelHi, context.nChannels() - 1);
    EXPECT_EQ(work.type, ncclFloat32);
  }
  plan.clear();
  EXPECT_FALSE(plan.usesCollNetDirect);
}

}  // namespace
}  // namespace tutti::test
