// Plans as text, compared with what was recorded. A difference is a decision that changed: look at it, then record it
// anew. The numbers follow from the tables of comm/tuning/costs.h.
#include <gtest/gtest.h>

#include <random>

#include "comm/plan/plans.h"
#include "comm/tuning/model.h"
#include "comm/tuning/tuning_worlds.h"

namespace tutti::comm {
namespace {

using test::gpuInput;
using test::hostInput;
using test::restricted;

void* bufferAt(int number) {
  return reinterpret_cast<void*>(0x10000000L + 0x1000L * number);
}

Op collective(ApiFunc func, std::size_t count, ncclDataType_t type = ncclFloat32, int root = 0) {
  return {
      .func = func, .sendbuff = bufferAt(1), .recvbuff = bufferAt(2), .count = count, .datatype = type, .root = root};
}

Op transferOf(ApiFunc func, int peer, std::size_t bytes, int buffer = 3) {
  return {.func = func,
          .sendbuff = bufferAt(buffer),
          .recvbuff = bufferAt(buffer + 1),
          .count = bytes,
          .datatype = ncclInt8,
          .root = peer};
}

std::string planText(const TuningInput& input, int rank, const std::vector<Op>& ops) {
  const auto plan = test::planOf({.rank = rank, .tuning = makeTuning(input)}, ops);
  EXPECT_TRUE(plan.ok());
  std::string text = "\n";
  if (plan.ok()) text.append(describePlan(plan.value()));
  return text;
}

std::string growingAllReduces(const TuningInput& input) {
  std::string text;
  for (const std::size_t bytes :
       {std::size_t{8}, std::size_t{32} << 10, std::size_t{1} << 20, std::size_t{256} << 20}) {
    text += planText(input, 0, {collective(ApiFunc::AllReduce, bytes / 4)});
  }
  return text;
}

TEST(GoldenPlan, AllReducesOfGrowingSizeOnEightGpus) {
  EXPECT_EQ(growingAllReduces(test::gpuInput(8)), R"(
tutti_AllReduce_OneShot_LL_Sum_f32 blocks 0-0 threads 64
  count 2 root 0 op Sum channels 0-0 chunk 32768 in 1 steps

tutti_AllReduce_Direct_LL_Sum_f32 blocks 0-7 threads 512
  count 8192 root 0 op Sum channels 0-7 chunk 32768 in 1 steps

tutti_AllReduce_Direct_LL_Sum_f32 blocks 0-7 threads 512
  count 262144 root 0 op Sum channels 0-7 chunk 32768 in 1 steps

tutti_AllReduce_Direct_Simple_Sum_f32 blocks 0-7 threads 512
  count 67108864 root 0 op Sum channels 0-7 chunk 524288 in 1 steps
)");
}

TEST(GoldenPlan, AllReducesOfGrowingSizeOnFourSoftwareGpus) {
  EXPECT_EQ(growingAllReduces(test::hostInput(4)), R"(
tutti_AllReduce_Ring_Simple_Sum_f32 blocks 0-0 threads 1
  count 2 root 0 op Sum channels 0-0 chunk 524288 in 4 steps

tutti_AllReduce_OneShot_Simple_Sum_f32 blocks 0-0 threads 1
  count 8192 root 0 op Sum channels 0-0 chunk 131072 in 1 steps

tutti_AllReduce_Direct_Simple_Sum_f32 blocks 0-0 threads 1
  count 262144 root 0 op Sum channels 0-0 chunk 131072 in 1 steps

tutti_AllReduce_Direct_Simple_Sum_f32 blocks 0-0 threads 1
  count 67108864 root 0 op Sum channels 0-0 chunk 131072 in 1 steps
)");
}

TEST(GoldenPlan, EveryCollectiveAcrossTwoNodes) {
  TuningInput input = test::gpuInput(16);
  input.ranks.nNodes = 2;
  input.ranks.ll128Safe = false;
  input.speeds = assumedSpeeds(input.ranks, 8, false);
  const std::vector<Op> ops{collective(ApiFunc::AllReduce, 1 << 20),
                            collective(ApiFunc::Broadcast, 1 << 20, ncclInt32, 3),
                            collective(ApiFunc::Reduce, 1000, ncclFloat64, 5), collective(ApiFunc::AllGather, 100),
                            collective(ApiFunc::ReduceScatter, 1 << 22, ncclBfloat16)};
  EXPECT_EQ(planText(input, 7, ops), R"(
tutti_AllReduce_Tree_Simple_Sum_f32 blocks 0-7 threads 512
  count 1048576 root 0 op Sum channels 0-7 chunk 32768 in 1 steps
tutti_Broadcast_Ring_Simple_Copy_i8 blocks 0-7 threads 512
  count 4194304 root 3 op Sum channels 0-7 chunk 32768 in 1 steps
tutti_Reduce_Ring_LL_Sum_f64 blocks 0-0 threads 64
  count 1000 root 5 op Sum channels 0-0 chunk 4096 in 1 steps
tutti_AllGather_Ring_LL_Copy_i8 blocks 0-0 threads 64
  count 400 root 0 op Sum channels 0-0 chunk 32768 in 1 steps
tutti_ReduceScatter_Ring_Simple_Sum_bf16 blocks 0-7 threads 512
  count 4194304 root 0 op Sum channels 0-7 chunk 2097152 in 4 steps
)");
}

TEST(GoldenPlan, ManySmallCollectivesShareALaunchAcrossChannels) {
  std::vector<Op> ops;
  for (std::size_t i = 1; i <= 6; ++i) ops.push_back(collective(ApiFunc::AllReduce, i * 100));
  ops.push_back(collective(ApiFunc::AllReduce, 64 << 10));
  EXPECT_EQ(planText(test::restricted(test::gpuInput(4, 4), "Ring", "Simple"), 0, ops), R"(
tutti_AllReduce_Ring_Simple_Sum_f32 blocks 0-3 threads 512
  count 100 root 0 op Sum channels 0-0 chunk 2097152 in 4 steps
  count 200 root 0 op Sum channels 1-1 chunk 2097152 in 4 steps
  count 300 root 0 op Sum channels 2-2 chunk 2097152 in 4 steps
  count 400 root 0 op Sum channels 3-3 chunk 2097152 in 4 steps
  count 500 root 0 op Sum channels 0-0 chunk 2097152 in 4 steps
  count 600 root 0 op Sum channels 1-1 chunk 2097152 in 4 steps
  count 65536 root 0 op Sum channels 0-3 chunk 2097152 in 4 steps
)");
}

TEST(GoldenPlan, AlltoAllAndAnExchangeWithTheNeighbours) {
  const std::vector<Op> ops{transferOf(ApiFunc::AlltoAll, 0, 1000), transferOf(ApiFunc::Send, 2, 1 << 20, 5),
                            transferOf(ApiFunc::Recv, 0, 100 << 10, 6)};
  EXPECT_EQ(planText(test::gpuInput(4, 4), 1, ops), R"(
tutti_SendRecv_Copy_i8 blocks 0-3 threads 512
  to 1 1000 bytes Simple from 1 1000 bytes Simple channels 0-0
  to 2 1000 bytes LL from 0 1000 bytes LL channels 1-1
  to 3 1000 bytes LL from 3 1000 bytes LL channels 2-2
  to 0 1000 bytes LL from 2 1000 bytes LL channels 3-3
  to 2 1048576 bytes Simple channels 0-3
  from 0 102400 bytes Simple channels 2-3
)");
}

/// Random groups as the ranks of one communicator see them.
class RandomGroups {
 public:
  RandomGroups(unsigned seed, int nRanks) : random_(seed), ops_(static_cast<std::size_t>(nRanks)), n_(nRanks) {
    for (int i = 0; i < 60; ++i) random_() % 3 == 0 ? addCollective() : addMessage();
  }
  const std::vector<Op>& of(int rank) const { return ops_[static_cast<std::size_t>(rank)]; }

 private:
  std::size_t someSize() { return std::size_t{1} << random_() % 24; }
  void addCollective() {
    Op op = collective(static_cast<ApiFunc>(random_() % 5), someSize(), random_() % 2 == 0 ? ncclFloat32 : ncclInt8,
                       static_cast<int>(random_() % static_cast<unsigned>(n_)));
    op.reduction.op = random_() % 2 == 0 ? device::DevOp::Sum : device::DevOp::Max;
    for (auto& ops : ops_) ops.push_back(op);
  }
  void addMessage() {
    const auto from = random_() % static_cast<unsigned>(n_);
    const auto to = random_() % static_cast<unsigned>(n_);
    const std::size_t bytes = someSize();
    ops_[from].push_back(transferOf(ApiFunc::Send, static_cast<int>(to), bytes, 7));
    ops_[to].push_back(transferOf(ApiFunc::Recv, static_cast<int>(from), bytes, 9));
  }

  std::mt19937 random_;
  std::vector<std::vector<Op>> ops_;
  int n_;
};

/// What both ends must say of one half of a message; in the order in which the pair exchanges them.
struct Half {
  std::uint64_t bytes;
  unsigned lo, hi;
  device::Protocol protocol;
  friend bool operator==(const Half&, const Half&) = default;
};

std::vector<Half> halves(const Plan& plan, int peer, bool sending) {
  std::vector<Half> found;
  for (const PlannedLaunch& launch : plan.launches) {
    for (const device::P2pWork& w : launch.messages()) {
      if (sending && w.sendPeer == peer) found.push_back({w.sendBytes, w.channelLo, w.channelHi, w.sendProtocol});
      if (!sending && w.recvPeer == peer) found.push_back({w.recvBytes, w.channelLo, w.channelHi, w.recvProtocol});
    }
  }
  return found;
}

std::string collectivesText(Plan plan) {
  std::erase_if(plan.launches, [](const PlannedLaunch& launch) { return launch.func == device::Func::SendRecv; });
  return describePlan(plan);
}

TEST(PlanProperty, AllRanksAgreeOnCollectivesAndOnBothHalvesOfEveryMessage) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const int n = 2 + static_cast<int>(seed % 7);
    const RandomGroups groups(seed, n);
    const TuningInput input = seed % 2 == 0 ? test::gpuInput(n, 1 + seed % 9) : test::hostInput(n);
    std::vector<Plan> plans;
    for (int r = 0; r < n; ++r) {
      plans.push_back(test::planOf({.rank = r, .tuning = makeTuning(input)}, groups.of(r)).value());
      EXPECT_EQ(collectivesText(plans.back()), collectivesText(plans.front())) << "seed " << seed << " rank " << r;
      EXPECT_EQ(plans.back().decisions.size(), plans.front().decisions.size());
    }
    for (int from = 0; from < n; ++from) {
      for (int to = 0; to < n; ++to) {
        EXPECT_EQ(halves(plans[static_cast<std::size_t>(from)], to, true),
                  halves(plans[static_cast<std::size_t>(to)], from, false))
            << "seed " << seed;
      }
    }
  }
}

TEST(PlanProperty, NoLaunchHoldsMoreThanFitsNorLeavesTheChannels) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const RandomGroups groups(seed, 5);
    const Plan plan = test::planOf({.rank = 2, .tuning = makeTuning(test::gpuInput(5))}, groups.of(2)).value();
    std::size_t collectives = 0;
    for (const PlannedLaunch& launch : plan.launches) {
      EXPECT_LE(launch.nWorks(), static_cast<std::size_t>(device::kMaxWorksPerLaunch));
      EXPECT_GT(launch.nWorks(), 0u);
      EXPECT_LE(launch.firstChannel + launch.nChannels, 8u);
      collectives += launch.colls().size();
      for (const device::CollWork& work : launch.colls()) {
        EXPECT_GE(work.channelLo, launch.firstChannel);
        EXPECT_LT(work.channelHi, launch.firstChannel + launch.nChannels);
        EXPECT_LE(work.channelLo, work.channelHi);
      }
    }
    EXPECT_EQ(collectives, plan.decisions.size());
    EXPECT_GT(plan.microseconds(), 0.0);
  }
}

TEST(PlanProperty, DirectAlgorithmsWantEverybodyConnected) {
  const auto plan = test::planOf({.rank = 1, .tuning = makeTuning(test::restricted(test::gpuInput(4), "Direct", ""))},
                                 std::vector{collective(ApiFunc::AllReduce, 100)})
                        .value();
  EXPECT_EQ(plan.meshPeers, (std::vector{0, 2, 3}));
  EXPECT_FALSE(plan.usesRing);
  const auto tree = test::planOf({.rank = 1, .tuning = makeTuning(test::restricted(test::gpuInput(4), "Tree", ""))},
                                 std::vector{collective(ApiFunc::AllReduce, 100)})
                        .value();
  EXPECT_TRUE(tree.usesTree && !tree.usesRing && tree.meshPeers.empty());
  EXPECT_EQ(Plan{}.microseconds(), -1.0);
}

TEST(PlanProperty, TwoRanksThatReduceInPlaceConnectNoRing) {
  TuningInput input = test::restricted(test::gpuInput(2), "Ring", "Simple");
  input.speeds.mesh = 0;
  input.inPlaceStep = 512 << 10;
  input.stepsInPlace = 1;
  const PlanContext context{.rank = 1, .tuning = makeTuning(input)};
  const auto plan = test::planOf(context, std::vector{collective(ApiFunc::AllReduce, 1 << 20)}).value();
  EXPECT_EQ(plan.meshPeers, (std::vector{0}));
  EXPECT_FALSE(plan.usesRing);
  EXPECT_EQ(plan.launches.at(0).colls()[0].pairMethod, device::PairMethod::InPlace);
  const auto both =
      test::planOf(context, std::vector{collective(ApiFunc::AllReduce, 1 << 20), collective(ApiFunc::AllReduce, 100)})
          .value();
  EXPECT_TRUE(both.usesRing) << "the short one is exchanged";
}

}  // namespace
}  // namespace tutti::comm
