#include "comm/plan/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>

#include "comm/plan/plans.h"
#include "comm/tuning/model.h"
#include "comm/tuning/speeds.h"
#include "device/recv_sequence.h"
#include "support/log_capture.h"

namespace tutti::comm {
namespace {

constexpr std::uint32_t kSlot = 128 << 10;

PlanContext contextOf(int rank, int nRanks, unsigned channels = 8) {
  TuningInput input;
  input.ranks = {.nRanks = nRanks, .nNodes = 1, .computeCapability = 90, .path = PathClass::NVLink};
  input.speeds = assumedSpeeds(input.ranks, channels, true);
  input.nChannels = channels;
  input.slotBytes = {device::SlotBytes{16 << 10, 0, kSlot}, device::SlotBytes{16 << 10, 0, kSlot}};
  input.filter = parseTuningFilter("Ring", "Simple").value();
  return {.rank = rank, .tuning = makeTuning(input)};
}

char* fakeBuffer(int number) {
  return reinterpret_cast<char*>(0x10000000L + 0x1000L * number);
}

Op allReduce(std::size_t count, ncclDataType_t type = ncclFloat32, device::DevOp op = device::DevOp::Sum) {
  Op made{.func = ApiFunc::AllReduce,
          .sendbuff = fakeBuffer(1),
          .recvbuff = fakeBuffer(2),
          .count = count,
          .datatype = type};
  made.reduction.op = op;
  return made;
}

Op message(ApiFunc func, int peer, std::size_t bytes, int buffer = 3) {
  return {.func = func,
          .sendbuff = fakeBuffer(buffer),
          .recvbuff = fakeBuffer(buffer),
          .count = bytes,
          .datatype = ncclInt8,
          .root = peer};
}

Plan planned(const PlanContext& context, const std::vector<Op>& ops) {
  Result<Plan> plan = test::planOf(context, ops);
  EXPECT_TRUE(plan.ok());
  return plan.ok() ? std::move(plan).value() : Plan{};
}

TEST(Plan, OneAllReduceIsOneLaunchWithItsWork) {
  const Plan plan = planned(contextOf(0, 4), {allReduce(1000)});
  ASSERT_EQ(plan.launches.size(), 1u);
  const PlannedLaunch& launch = plan.launches[0];
  EXPECT_EQ(launch.func, device::Func::AllReduce);
  EXPECT_EQ(launch.type, ncclFloat32);
  EXPECT_EQ(launch.nChannels, 1u) << "4000 bytes are worth one channel";
  EXPECT_EQ(launch.nThreads, 64u) << "and few threads";
  ASSERT_EQ(launch.colls().size(), 1u);
  EXPECT_EQ(launch.colls()[0].count, 1000u);
  EXPECT_EQ(launch.colls()[0].chunkBytes, kSlot * device::kMaxStepsPerChunk);
  EXPECT_TRUE(plan.usesRing);
}

TEST(Plan, LargeCollectiveSpreadsOverAllChannels) {
  const Plan plan = planned(contextOf(0, 4), {allReduce(64 << 20)});
  EXPECT_EQ(plan.launches.at(0).nChannels, 8u);
  EXPECT_EQ(plan.launches[0].colls()[0].channelHi, 7);
}

TEST(Plan, CollectivesOfAGroupThatShareAKernelShareALaunch) {
  const Plan plan = planned(contextOf(1, 2), {allReduce(10), allReduce(20), allReduce(10, ncclInt32), allReduce(30)});
  ASSERT_EQ(plan.launches.size(), 2u);
  EXPECT_EQ(plan.launches[0].colls().size(), 3u);
  EXPECT_EQ(plan.launches[0].colls()[1].count, 20u);
  EXPECT_EQ(plan.launches[0].colls()[2].count, 30u);
}

TEST(Plan, SmallCollectivesInARowRunSideBySide) {
  const Plan plan = planned(contextOf(1, 2), {allReduce(10), allReduce(20)});
  EXPECT_NE(plan.launches.at(0).colls()[0].channelLo, plan.launches[0].colls()[1].channelLo);
  EXPECT_EQ(plan.launches[0].nChannels, 2u);
}

TEST(Plan, ALaunchHoldsNoMoreWorksThanFit) {
  const Plan plan = planned(contextOf(0, 2), std::vector<Op>(device::kMaxWorksPerLaunch + 1, allReduce(10)));
  ASSERT_EQ(plan.launches.size(), 2u);
  EXPECT_EQ(plan.launches[0].nWorks(), static_cast<std::size_t>(device::kMaxWorksPerLaunch));
  EXPECT_EQ(plan.launches[1].nWorks(), 1u);
}

TEST(Plan, CopiesCountBytes) {
  Op gather = allReduce(100, ncclFloat64);
  gather.func = ApiFunc::AllGather;
  const Plan plan = planned(contextOf(0, 2), {gather});
  EXPECT_EQ(plan.launches.at(0).type, ncclInt8);
  EXPECT_EQ(plan.launches[0].colls()[0].count, 800u);
}

TEST(Plan, CountsBeyond2To31ReachKernelsWhole) {
  constexpr std::size_t kCount = (std::size_t{1} << 31) + 3;
  Op sum = allReduce(kCount, ncclFloat64);
  EXPECT_EQ(planned(contextOf(0, 8), {sum}).launches.at(0).colls()[0].count, kCount);
  sum.func = ApiFunc::ReduceScatter;
  EXPECT_EQ(planned(contextOf(0, 8), {sum}).launches.at(0).colls()[0].count, kCount);
  sum.func = ApiFunc::AllGather;
  EXPECT_EQ(planned(contextOf(0, 8), {sum}).launches.at(0).colls()[0].count, kCount * 8);
  Op exchange = allReduce(kCount, ncclFloat64);
  exchange.func = ApiFunc::AlltoAll;
  const Plan plan = planned(contextOf(1, 4), {exchange});
  std::uint64_t sent = 0;
  for (const device::P2pWork& work : plan.launches.at(0).messages()) {
    if (work.sendPeer < 0) continue;
    EXPECT_EQ(work.sendBytes, kCount * 8);
    EXPECT_EQ(static_cast<const char*>(work.send) - fakeBuffer(1),
              static_cast<std::int64_t>(kCount * 8) * work.sendPeer);
    ++sent;
  }
  EXPECT_EQ(sent, 4u);
}

TEST(Plan, SignedAndUnsignedSumsShareAKernel) {
  EXPECT_EQ(planned(contextOf(0, 2), {allReduce(10, ncclUint64), allReduce(10, ncclInt64)}).launches.size(), 1u);
}

TEST(Plan, OperationsOtherThanSumShareAKernelAndTravelWithTheWork) {
  Op largest = allReduce(10, ncclUint8);
  largest.reduction.op = device::DevOp::Max;
  Op average = allReduce(10, ncclUint8);
  average.reduction.op = device::DevOp::SumPostDiv;
  const Plan plan = planned(contextOf(0, 2), {largest, average, allReduce(10, ncclUint8)});
  ASSERT_EQ(plan.launches.size(), 2u) << "and the sum has one of its own";
  ASSERT_EQ(plan.launches[0].nWorks(), 2u);
  EXPECT_EQ(plan.launches[0].colls()[0].op, device::DevOp::Max);
  EXPECT_EQ(plan.launches[0].colls()[1].op, device::DevOp::SumPostDiv);
  EXPECT_EQ(plan.launches[0].type, ncclUint8);
  EXPECT_EQ(plan.launches[1].type, ncclInt8);
}

TEST(Plan, CollectiveWithoutElementsIsLeftOut) {
  const Plan plan = planned(contextOf(0, 2), {allReduce(0)});
  EXPECT_TRUE(plan.launches.empty());
  EXPECT_FALSE(plan.usesRing);
}

TEST(Plan, ChainOfASmallBroadcastUsesSmallerChunks) {
  Op small = allReduce(512 << 10, ncclInt8);
  small.func = ApiFunc::Broadcast;
  Op large = small;
  large.count = 1 << 30;
  const std::uint32_t smallChunk = planned(contextOf(0, 8), {small}).launches.at(0).colls()[0].chunkBytes;
  EXPECT_LT(smallChunk, kSlot);
  EXPECT_EQ(smallChunk % device::kGrainBytes, 0u);
  EXPECT_EQ(planned(contextOf(0, 8), {large}).launches.at(0).colls()[0].chunkBytes, kSlot);
}

TEST(Plan, StreamsAreListedOnceInOrderOfAppearance) {
  std::vector<Op> ops(3, allReduce(1));
  auto* first = reinterpret_cast<CUstream_st*>(0x10);
  auto* second = reinterpret_cast<CUstream_st*>(0x20);
  ops[0].stream = first;
  ops[1].stream = second;
  ops[2].stream = first;
  EXPECT_EQ(planned(contextOf(0, 2), ops).streams, (std::vector{first, second}));
}

TEST(Plan, UnknownKernelIsRefusedByName) {
  test::expectLog("No algorithm/protocol available for function AllReduce with datatype f32 and operator SumPostDiv");
  Op op = allReduce(1, ncclFloat32);
  op.reduction.op = device::DevOp::SumPostDiv;
  EXPECT_EQ(test::planOf(contextOf(0, 2), std::vector{op}).status().code(), ncclInvalidUsage);
}

TEST(Plan, SendAndReceiveOfARoundAreFused) {
  const Plan plan = planned(contextOf(0, 2), {message(ApiFunc::Send, 1, 8), message(ApiFunc::Recv, 1, 8)});
  ASSERT_EQ(plan.launches.size(), 1u);
  ASSERT_EQ(plan.launches[0].messages().size(), 1u);
  EXPECT_EQ(plan.launches[0].messages()[0].sendPeer, 1);
  EXPECT_EQ(plan.launches[0].messages()[0].recvPeer, 1);
  EXPECT_EQ(plan.sendPeers, std::vector{MessagePeer{1}});
  EXPECT_EQ(plan.recvPeers, std::vector{MessagePeer{1}});
  EXPECT_FALSE(plan.usesRing);
}

TEST(Plan, MessageWithoutContentIsKept) {
  const Plan plan = planned(contextOf(0, 2), {message(ApiFunc::Send, 1, 0)});
  ASSERT_EQ(plan.launches.at(0).messages().size(), 1u);
  EXPECT_EQ(plan.launches[0].messages()[0].recvPeer, -1);
}

TEST(Plan, MessageToOneselfNeedsBothHalves) {
  test::expectLog("Trying to send to self without a matching recv");
  EXPECT_EQ(test::planOf(contextOf(1, 2), std::vector{message(ApiFunc::Send, 1, 8)}).status().code(), ncclInvalidUsage);
  test::expectLog("recv to self without a matching send");
  EXPECT_EQ(test::planOf(contextOf(1, 2), std::vector{message(ApiFunc::Recv, 1, 8)}).status().code(), ncclInvalidUsage);
}

TEST(Plan, MessageToOneselfIsACopyUnlessTheBuffersAreOne) {
  const Plan copy = planned(contextOf(1, 2), {message(ApiFunc::Send, 1, 8, 3), message(ApiFunc::Recv, 1, 8, 4)});
  EXPECT_EQ(copy.launches.at(0).messages()[0].sendPeer, 1);
  EXPECT_TRUE(copy.sendPeers.empty());
  EXPECT_TRUE(planned(contextOf(1, 2), {message(ApiFunc::Send, 1, 8), message(ApiFunc::Recv, 1, 8)}).launches.empty());
}

TEST(Plan, ChannelsOfAMessageDoNotDependOnItsGroup) {
  // The receiver may take one by one what the sender sends in one group.
  const std::vector<Op> sends(3, message(ApiFunc::Send, 1, 100));
  const Plan together = planned(contextOf(0, 4), sends);
  const Plan alone = planned(contextOf(1, 4), {message(ApiFunc::Recv, 0, 100)});
  ASSERT_EQ(together.launches.at(0).messages().size(), 3u);
  for (const device::P2pWork& work : together.launches[0].messages()) {
    EXPECT_EQ(work.channelLo, alone.launches.at(0).messages()[0].channelLo);
    EXPECT_EQ(work.channelHi, alone.launches[0].messages()[0].channelHi);
  }
}

TEST(Plan, AlltoAllTalksToEverybody) {
  const Plan plan = planned(contextOf(1, 4), {message(ApiFunc::AlltoAll, 0, 100)});
  EXPECT_EQ(plan.sendPeers, (std::vector{MessagePeer{0}, MessagePeer{2}, MessagePeer{3}}));
  EXPECT_EQ(plan.recvPeers, (std::vector{MessagePeer{0}, MessagePeer{2}, MessagePeer{3}}));
}

/// Runs the plans of all ranks as kernels would: launches one after the other, in a launch each channel's sends and
/// receives each in order. A transfer needs both ends at once, the strictest case. Returns whether all finish.
class Simulation {
 public:
  explicit Simulation(const std::vector<Plan>& plans) : plans_(plans), launch_(plans.size(), 0) {
    for (std::size_t r = 0; r < plans.size(); ++r) open(r);
  }
  bool run() {
    while (step()) {
    }
    for (std::size_t r = 0; r < plans_.size(); ++r) {
      if (launch_[r] < plans_[r].launches.size()) return false;
    }
    return true;
  }

 private:
  using Queue = std::deque<std::pair<int, std::uint64_t>>;  ///< peer, bytes of the whole message
  using Key = std::pair<std::size_t, unsigned>;             ///< rank, channel

  static bool enqueue(Queue& queue, std::size_t rank, int peer, std::uint64_t bytes) {
    if (peer < 0 || peer == static_cast<int>(rank)) return false;
    queue.emplace_back(peer, bytes);
    return true;
  }
  void open(std::size_t r) {
    while (launch_[r] < plans_[r].launches.size()) {
      bool any = false;
      for (const device::P2pWork& w : plans_[r].launches[launch_[r]].messages()) {
        for (unsigned c = w.channelLo; c <= w.channelHi; ++c) {
          any |= enqueue(sends_[{r, c}], r, w.sendPeer, w.sendBytes);
          any |= enqueue(recvs_[{r, c}], r, w.recvPeer, w.recvBytes);
        }
      }
      if (any) return;
      ++launch_[r];
    }
  }
  bool idle(std::size_t r) const {
    const auto empty = [r](const auto& queues) {
      return std::all_of(queues.begin(), queues.end(),
                         [r](const auto& q) { return q.first.first != r || q.second.empty(); });
    };
    return empty(sends_) && empty(recvs_);
  }
  bool step() {
    bool moved = false;
    for (auto& [key, queue] : sends_) {
      if (queue.empty()) continue;
      const auto [peer, bytes] = queue.front();
      Queue& other = recvs_[{static_cast<std::size_t>(peer), key.second}];
      if (other.empty() || other.front().first != static_cast<int>(key.first)) continue;
      EXPECT_EQ(other.front().second, bytes) << "both ends must mean the same message";
      queue.pop_front();
      other.pop_front();
      moved = true;
    }
    for (std::size_t r = 0; r < plans_.size(); ++r) {
      if (launch_[r] < plans_[r].launches.size() && idle(r)) {
        ++launch_[r];
        open(r);
        moved = true;
      }
    }
    return moved;
  }

  const std::vector<Plan>& plans_;
  std::vector<std::size_t> launch_;
  std::map<Key, Queue> sends_;
  std::map<Key, Queue> recvs_;
};

TEST(Plan, RandomGroupsOfMessagesNeverDeadlockOnAnyRank) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    const int nRanks = 2 + static_cast<int>(random() % 6);
    std::vector<std::vector<Op>> ops(static_cast<std::size_t>(nRanks));
    for (int i = 0; i < 400; ++i) {
      const int from = static_cast<int>(random()) & 0x7fffffff, to = static_cast<int>(random()) & 0x7fffffff;
      const std::size_t bytes = random() % 3 == 0 ? random() % (8 << 20) : random() % 100;
      ops[static_cast<std::size_t>(from % nRanks)].push_back(message(ApiFunc::Send, to % nRanks, bytes, 3));
      ops[static_cast<std::size_t>(to % nRanks)].push_back(message(ApiFunc::Recv, from % nRanks, bytes, 4));
    }
    std::vector<Plan> plans;
    for (int r = 0; r < nRanks; ++r) plans.push_back(planned(contextOf(r, nRanks), ops[static_cast<std::size_t>(r)]));
    EXPECT_TRUE(Simulation(plans).run()) << "seed " << seed;
  }
}

TEST(Plan, ACircleOfLargeSendsPostedBeforeTheReceivesCompletes) {
  std::vector<Plan> plans;
  for (int r = 0; r < 5; ++r) {
    std::vector<Op> ops;
    for (int i = 0; i < 200; ++i) ops.push_back(message(ApiFunc::Send, (r + 1) % 5, 1 << 20));
    for (int i = 0; i < 200; ++i) ops.push_back(message(ApiFunc::Recv, (r + 4) % 5, 1 << 20));
    plans.push_back(planned(contextOf(r, 5), ops));
    EXPECT_GT(plans.back().launches.size(), 1u);
  }
  EXPECT_TRUE(Simulation(plans).run());
}

TEST(Plan, AllRanksAgreeOnCollectives) {
  std::mt19937 random(7);
  std::vector<Op> ops;
  for (int i = 0; i < 300; ++i) {
    Op op = allReduce(random() % (4 << 20), random() % 2 ? ncclFloat32 : ncclInt8);
    op.func = static_cast<ApiFunc>(random() % 5);
    op.root = static_cast<int>(random() % 6);
    ops.push_back(op);
  }
  const Plan first = planned(contextOf(0, 6), ops);
  for (int r = 1; r < 6; ++r) {
    const Plan other = planned(contextOf(r, 6), ops);
    ASSERT_EQ(other.launches.size(), first.launches.size());
    for (std::size_t i = 0; i < first.launches.size(); ++i) {
      const PlannedLaunch &a = first.launches[i], &b = other.launches[i];
      ASSERT_EQ(a.nWorks(), b.nWorks());
      EXPECT_EQ(std::tie(a.func, a.op, a.type, a.firstChannel, a.nChannels, a.nThreads),
                std::tie(b.func, b.op, b.type, b.firstChannel, b.nChannels, b.nThreads));
      for (std::size_t w = 0; w < a.colls().size(); ++w) {
        EXPECT_EQ(a.colls()[w].channelLo, b.colls()[w].channelLo);
        EXPECT_EQ(a.colls()[w].chunkBytes, b.colls()[w].chunkBytes);
      }
    }
  }
}

PlanContext twoNodes(int rank, int nRanks) {
  PlanContext context = contextOf(rank, nRanks);
  context.messages.perNetPeer = 2;
  for (int r = 0; r < nRanks; ++r) context.nodes.push_back(r < nRanks / 2 ? 0 : 1);
  return context;
}

TEST(Plan, MessagesToOtherNodesUseFewChannels) {
  constexpr std::size_t kLong = 8 << 20;
  const Plan plan = planned(twoNodes(0, 4), {message(ApiFunc::Send, 1, kLong), message(ApiFunc::Send, 2, kLong)});
  ASSERT_EQ(plan.launches.size(), 1u);
  ASSERT_EQ(plan.launches[0].messages().size(), 2u);
  const device::P2pWork& near = plan.launches[0].messages()[0];
  const device::P2pWork& far = plan.launches[0].messages()[1];
  EXPECT_EQ(near.channelHi - near.channelLo, 7);
  EXPECT_EQ(far.channelHi - far.channelLo, 1);
  ASSERT_EQ(plan.sendPeers.size(), 2u);
  EXPECT_EQ(plan.sendPeers[0], MessagePeer{1}) << "all of them, as direct algorithms need";
  EXPECT_EQ(plan.sendPeers[1], (MessagePeer{2, allChannels(far.channelHi + 1) & ~allChannels(far.channelLo)}));
}

TEST(Plan, MessagesFromARankHaveTheirTurnWithinEachLaunch) {
  constexpr int kMessages = 300;
  std::vector<Op> ops;
  for (int i = 0; i < kMessages; ++i) ops.push_back(message(ApiFunc::Recv, 1 + i % 3, i % 7 == 0 ? 0 : 8 << 20));
  const Plan plan = planned(twoNodes(0, 4), ops);
  ASSERT_GT(plan.launches.size(), 2u);
  for (const PlannedLaunch& launch : plan.launches) {
    std::map<int, unsigned> count;
    std::set<int> ended;
    for (const device::P2pWork& work : launch.messages()) {
      const device::RecvOrder turn = device::orderIn(work.recvOrder);
      if (work.recvProtocol != device::Protocol::Simple) continue;
      EXPECT_TRUE(ended.count(work.recvPeer) == 0) << "the last one has come";
      EXPECT_EQ(turn.number, count[work.recvPeer]++);
      EXPECT_EQ(turn.parts, work.recvBytes == 0 ? 1 : work.channelHi - work.channelLo + 1);
      EXPECT_FALSE(turn.ends) << "that is the kernel's to say";
      if (turn.last) ended.insert(work.recvPeer);
    }
    EXPECT_EQ(ended.size(), count.size());
  }
}

TEST(Plan, BothEndsOfAMessageBetweenNodesUseTheSameChannels) {
  constexpr int kRanks = 8;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{100}, std::size_t{8} << 20}) {
    for (int from = 0; from < kRanks; ++from) {
      for (int to = 0; to < kRanks; ++to) {
        if (from == to) continue;
        const Plan out = planned(twoNodes(from, kRanks), {message(ApiFunc::Send, to, bytes)});
        const Plan in = planned(twoNodes(to, kRanks), {message(ApiFunc::Recv, from, bytes)});
        EXPECT_EQ(out.launches[0].messages()[0].channelLo, in.launches[0].messages()[0].channelLo);
        EXPECT_EQ(out.launches[0].messages()[0].channelHi, in.launches[0].messages()[0].channelHi);
        EXPECT_EQ(out.sendPeers[0].channels, in.recvPeers[0].channels);
        const ChannelMask used = allChannels(out.launches[0].messages()[0].channelHi + 1) &
                                 ~allChannels(out.launches[0].messages()[0].channelLo);
        EXPECT_EQ(used & ~out.sendPeers[0].channels, 0u) << "a channel that is not connected";
      }
    }
  }
}

TEST(Plan, MessagesMayUseFewerChannelsThanCollectives) {
  PlanContext context = contextOf(0, 4);
  context.messages.most = 3;
  const Plan plan = planned(context, {message(ApiFunc::Send, 1, 8 << 20)});
  EXPECT_EQ(plan.launches[0].nChannels, 3u);
}

TEST(Planner, MakesTheSamePlanWhateverItMadeBefore) {
  const PlanContext four = contextOf(1, 4);
  const PlanContext nine = contextOf(2, 9);
  Op exchange = allReduce(5000);
  exchange.func = ApiFunc::AlltoAll;
  const std::vector<std::vector<Op>> groups{
      {allReduce(1 << 20), allReduce(10), exchange},
      {message(ApiFunc::Send, 3, 100), message(ApiFunc::Recv, 3, 100)},
      std::vector<Op>(200, allReduce(7)),
      {exchange, exchange},
      {allReduce(3)},
      {},
  };
  Planner planner;
  Plan plan;
  for (int round = 0; round < 2; ++round) {
    for (const PlanContext* context : {&four, &nine}) {
      for (const std::vector<Op>& ops : groups) {
        ASSERT_TRUE(planner.plan(*context, ops, plan).ok());
        const Plan alone = planned(*context, ops);
        EXPECT_EQ(describePlan(plan), describePlan(alone));
        EXPECT_EQ(plan.sendPeers, alone.sendPeers);
        EXPECT_EQ(plan.recvPeers, alone.recvPeers);
        EXPECT_EQ(plan.meshPeers, alone.meshPeers);
        EXPECT_EQ(plan.usesRing, alone.usesRing);
        EXPECT_EQ(plan.streams, alone.streams);
        EXPECT_EQ(plan.decisions.size(), alone.decisions.size());
      }
    }
  }
}

TEST(Planner, ForgetsAGroupThatItRefused) {
  test::expectLog("send to self without a matching recv");
  const PlanContext context = contextOf(1, 2);
  Planner planner;
  Plan plan;
  EXPECT_FALSE(planner.plan(context, std::vector{message(ApiFunc::Send, 1, 8), allReduce(5)}, plan).ok());
  ASSERT_TRUE(planner.plan(context, std::vector{message(ApiFunc::Recv, 0, 8)}, plan).ok()) << "counted anew";
  ASSERT_EQ(plan.launches.size(), 1u);
  EXPECT_TRUE(plan.sendPeers.empty());
  EXPECT_TRUE(plan.decisions.empty());
}

}  // namespace
}  // namespace tutti::comm
