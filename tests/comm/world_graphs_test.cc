// Operations recorded in CUDA graphs: replayed, mixed with calls, destroyed in any order.
#include <barrier>
#include <utility>

#include "comm/graph.h"
#include "comm/launch/graph_refs.h"
#include "comm/world.h"
#include "gpu/event.h"

namespace tutti::comm {
namespace {

using test::Ints;
using test::Member;
using test::Recording;
using test::withComm;

constexpr std::size_t kCount = 3000;

void allReduce(const test::Member& m, const test::Ints& in, const test::Ints& out) {
  EXPECT_EQ(ncclAllReduce(in.at(), out.at(), kCount, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
}

int sumOfRanks(const test::Member& m, int factor) {
  return factor * m.size * (m.size + 1) / 2;
}

void set(const test::Ints& ints, const test::Member& m, int value) {
  const std::vector<int> values(kCount, value);
  EXPECT_TRUE(
      gpu::copyToDevice(m.gpu, reinterpret_cast<CUdeviceptr>(ints.at()), std::as_bytes(std::span(values))).ok());
}

void expectAll(const test::Ints& ints, int value) {
  EXPECT_EQ(ints.read(), std::vector<int>(kCount, value));
}

/// A call, and what its result holds for an input of `factor` times the rank plus one, on all ranks.
struct Operation {
  const char* name;
  std::function<ncclResult_t(const test::Member&, const test::Ints&, const test::Ints&)> call;
  std::function<int(const test::Member&, int factor)> result;
};

ncclResult_t passOn(const test::Member& m, const test::Ints& in, const test::Ints& out) {
  ncclGroupStart();
  ncclSend(in.at(), kCount, ncclInt32, (m.rank + 1) % m.size, m.comm, m.stream());
  ncclRecv(out.at(), kCount, ncclInt32, (m.rank + m.size - 1) % m.size, m.comm, m.stream());
  return ncclGroupEnd();
}

std::vector<Operation> operations() {
  return {
      {"AllReduce",
       [](const test::Member& m, const test::Ints& in, const test::Ints& out) {
         return ncclAllReduce(in.at(), out.at(), kCount, ncclInt32, ncclSum, m.comm, m.stream());
       },
       sumOfRanks},
      {"Broadcast",
       [](const test::Member& m, const test::Ints& in, const test::Ints& out) {
         return ncclBroadcast(in.at(), out.at(), kCount, ncclInt32, 1, m.comm, m.stream());
       },
       [](const test::Member&, int factor) { return 2 * factor; }},
      {"ReduceScatter",
       [](const test::Member& m, const test::Ints& in, const test::Ints& out) {
         // Everybody's block lies at the start of a vector that is long enough for the others' too.
         return ncclReduceScatter(in.at(), out.at(), kCount / 3, ncclInt32, ncclMax, m.comm, m.stream());
       },
       [](const test::Member& m, int factor) { return m.size * factor; }},
      {"AllGather",
       [](const test::Member& m, const test::Ints& in, const test::Ints& out) {
         return ncclAllGather(in.at(), out.at(), kCount / 3, ncclInt32, m.comm, m.stream());
       },
       {}},
      {"Send and Recv", passOn,
       [](const test::Member& m, int factor) { return factor * ((m.rank + m.size - 1) % m.size + 1); }},
      {"AlltoAll",
       [](const test::Member& m, const test::Ints& in, const test::Ints& out) {
         return ncclAlltoAll(in.at(), out.at(), kCount / 3, ncclInt32, m.comm, m.stream());
       },
       {}},
  };
}

/// Blocks of all ranks one after the other where `result` says nothing else.
std::vector<int> expected(const Operation& operation, const test::Member& m, int factor, bool onlyFirstBlock) {
  std::vector<int> values(kCount, -1);
  for (std::size_t i = 0; i < kCount; ++i) {
    const int blockOf = static_cast<int>(i / (kCount / 3));
    if (onlyFirstBlock && blockOf > 0) break;
    values[i] = operation.result ? operation.result(m, factor) : factor * (blockOf + 1);
  }
  return values;
}

TEST(WorldGraphs, EveryOperationCanBeReplayedWithNewContents) {
  for (const Operation& operation : operations()) {
    SCOPED_TRACE(operation.name);
    test::withComm(3, [&](test::Member& m) {
      const test::Ints in(m.gpu, kCount, 0);
      const test::Ints out(m.gpu, kCount, -1);
      // First use of its connections, too.
      const auto graph = test::Recording::of(m.stream(), [&] { EXPECT_EQ(operation.call(m, in, out), ncclSuccess); });
      m.sync();
      expectAll(out, -1);
      for (int round = 1; round <= 4; ++round) {
        set(in, m, round * (m.rank + 1));
        graph->launch(m.stream());
        m.sync();
        const bool scatters = std::string_view(operation.name) == "ReduceScatter";
        EXPECT_EQ(out.read(), expected(operation, m, round, scatters)) << "round " << round;
      }
    });
  }
}

TEST(WorldGraphs, AGroupThatIsLaunchedInPartFailsForAllItsCommunicators) {
  test::expectLog("must all be captured by the same graph");
  test::allowLog("rank");
  const int devices[] = {0, 1};
  ncclComm_t comms[2] = {};
  test::useDevice(0);
  ASSERT_EQ(ncclCommInitAll(comms, 2, devices), ncclSuccess);
  const gpu::Stream first = gpu::Stream::create(test::device(0)).value();
  const gpu::Stream captured = gpu::Stream::create(test::device(1)).value();
  const gpu::Stream plain = gpu::Stream::create(test::device(1)).value();
  const test::Ints a(test::device(0), kCount, 1);
  const test::Ints b(test::device(1), kCount, 1);
  test::useDevice(1);
  const auto graph = test::Recording::of(captured.get(), [&] {
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    for (int call = 0; call < 2; ++call) {
      const CUstream second = call == 0 ? captured.get() : plain.get();
      EXPECT_EQ(ncclSend(a.at(), kCount, ncclInt32, 1, comms[0], first.get()), ncclSuccess);
      EXPECT_EQ(ncclRecv(b.at(), kCount, ncclInt32, 0, comms[1], second), ncclSuccess);
    }
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  });
  EXPECT_EQ(test::awaitError(comms[0], std::chrono::seconds(2)), ncclInvalidUsage) << "it waits for the other's kernel";
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
}

TEST(WorldGraphs, ReplaysInARowNeedNoHost) {
  test::withComm(4, [](test::Member& m) {
    const test::Ints sum(m.gpu, kCount, 1);
    const auto graph = test::Recording::of(m.stream(), [&] { allReduce(m, sum, sum); });
    for (int i = 0; i < 10; ++i) graph->launch(m.stream());
    m.sync();
    expectAll(sum, 1 << 20);  // times four, ten times
  });
}

TEST(WorldGraphs, GraphsAndCallsMixAndDieInAnyOrder) {
  test::withComm(3, [](test::Member& m) {
    const test::Ints in(m.gpu, kCount, m.rank + 1);
    const test::Ints first(m.gpu, kCount, -1);
    const test::Ints second(m.gpu, kCount, -1);
    const test::Ints plain(m.gpu, kCount, -1);
    auto a = test::Recording::of(m.stream(), [&] { allReduce(m, in, first); });
    allReduce(m, in, plain);
    auto b = test::Recording::of(m.stream(), [&] { allReduce(m, first, second); });
    a->dropGraph();
    a->launch(m.stream());
    allReduce(m, first, plain);
    b->launch(m.stream());
    a->launch(m.stream());
    m.sync();
    expectAll(first, sumOfRanks(m, 1));
    expectAll(second, 3 * sumOfRanks(m, 1));
    expectAll(plain, 3 * sumOfRanks(m, 1));
    a.reset();
    set(first, m, 1);
    b->launch(m.stream());
    m.sync();
    expectAll(second, 3);
    b.reset();
    allReduce(m, in, plain);
    m.sync();
    expectAll(plain, sumOfRanks(m, 1));
  });
}

TEST(WorldGraphs, AGroupOfEverythingIsOneRecording) {
  test::withComm(3, [](test::Member& m) {
    const test::Ints in(m.gpu, kCount, m.rank + 1);
    const test::Ints sum(m.gpu, kCount, -1);
    const test::Ints passed(m.gpu, kCount, -1);
    const auto graph = test::Recording::of(m.stream(), [&] {
      EXPECT_EQ(ncclGroupStart(), ncclSuccess);
      allReduce(m, in, sum);
      passOn(m, in, passed);
      EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    });
    for (int i = 0; i < 3; ++i) graph->launch(m.stream());
    m.sync();
    expectAll(sum, sumOfRanks(m, 1));
    expectAll(passed, (m.rank + m.size - 1) % m.size + 1);
  });
}

TEST(WorldGraphs, TwoCommunicatorsShareARecording) {
  const ncclUniqueId other = test::newId();
  test::withComm(2, [&](test::Member& m) {
    ncclComm_t second = nullptr;
    ASSERT_EQ(ncclCommInitRank(&second, 2, other, m.rank), ncclSuccess);
    const test::Ints in(m.gpu, kCount, m.rank + 1);
    const test::Ints once(m.gpu, kCount, -1);
    const test::Ints twice(m.gpu, kCount, -1);
    const auto graph = test::Recording::of(m.stream(), [&] {
      allReduce(m, in, once);
      EXPECT_EQ(ncclAllReduce(once.at(), twice.at(), kCount, ncclInt32, ncclSum, second, m.stream()), ncclSuccess);
    });
    for (int i = 0; i < 3; ++i) graph->launch(m.stream());
    m.sync();
    expectAll(twice, 6);
    EXPECT_EQ(ncclCommDestroy(second), ncclSuccess) << "while the graph lives";
    graph->launch(m.stream());
    m.sync();
    expectAll(once, 3);
  });
}

TEST(WorldGraphs, ForkedStreamsOfARecordingTakeTurns) {
  test::withComm(2, [](test::Member& m) {
    const gpu::Driver& driver = m.gpu.driver();
    const gpu::Stream side = gpu::Stream::create(m.gpu).value();
    const gpu::Event fork = gpu::Event::create(m.gpu).value();
    const gpu::Event joined = gpu::Event::create(m.gpu).value();
    const test::Ints in(m.gpu, kCount, m.rank + 1);
    const test::Ints a(m.gpu, kCount, -1);
    const test::Ints b(m.gpu, kCount, -1);
    const auto graph = test::Recording::of(m.stream(), [&] {
      EXPECT_EQ(driver.cuEventRecord(fork.get(), m.stream()), CUDA_SUCCESS);
      EXPECT_EQ(driver.cuStreamWaitEvent(side.get(), fork.get(), 0), CUDA_SUCCESS);
      allReduce(m, in, a);
      EXPECT_EQ(ncclAllReduce(in.at(), b.at(), kCount, ncclInt32, ncclSum, m.comm, side.get()), ncclSuccess);
      EXPECT_EQ(driver.cuEventRecord(joined.get(), side.get()), CUDA_SUCCESS);
      EXPECT_EQ(driver.cuStreamWaitEvent(m.stream(), joined.get(), 0), CUDA_SUCCESS);
    });
    for (int i = 0; i < 5; ++i) graph->launch(m.stream());
    m.sync();
    expectAll(a, 3);
    expectAll(b, 3);
  });
}

TEST(WorldGraphs, OutliveTheirCommunicatorAndThenGiveItsMemoryBack) {
  test::withComm(2, [](test::Member&) {});  // loads what stays
  test::useDevice(0);
  const std::size_t before = test::freeDeviceMemory();
  std::size_t whileHeld = 0;
  test::withComm(2, [&](test::Member& m) {
    const test::Ints in(m.gpu, kCount, m.rank + 1);
    const test::Ints out(m.gpu, kCount, -1);
    auto graph = test::Recording::of(m.stream(), [&] { allReduce(m, in, out); });
    EXPECT_EQ(ncclCommDestroy(m.comm), ncclSuccess);
    m.comm = nullptr;
    graph->launch(m.stream());
    m.sync();
    expectAll(out, 3);
    if (m.rank == 0) whileHeld = test::freeDeviceMemory();
    graph->dropGraph();
    graph->launch(m.stream());
    m.sync();
  });
  EXPECT_LT(whileHeld, before);
  // The device lets go of a graph a moment after its last replay.
  const Deadline deadline = Deadline::in(std::chrono::seconds(10));
  while (test::freeDeviceMemory() != before && !deadline.expired()) {
    GraphRefs::takeAbandoned();
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(test::freeDeviceMemory(), before);
}

TEST(WorldGraphs, ReplaysAfterTheEndOfTheirCommunicatorHoldNobodyUp) {
  std::barrier<> meet(2);
  test::withComm(2, [&](test::Member& m) {
    const test::Ints in(m.gpu, kCount, m.rank + 1);
    const test::Ints out(m.gpu, kCount, -1);
    ncclComm_t other = nullptr;
    ncclComm_t alone = nullptr;
    ASSERT_EQ(ncclCommSplit(m.comm, 0, m.rank, &other, nullptr), ncclSuccess);
    ASSERT_EQ(ncclCommSplit(m.comm, m.rank == 1 ? 1 : NCCL_SPLIT_NOCOLOR, 0, &alone, nullptr), ncclSuccess);
    auto left = test::Recording::of(m.stream(), [&] { allReduce(m, in, out); });
    EXPECT_EQ(ncclCommDestroy(std::exchange(m.comm, nullptr)), ncclSuccess);
    const auto replayed = test::Recording::of(m.stream(), [&] {
      EXPECT_EQ(ncclAllReduce(in.at(), out.at(), kCount, ncclInt32, ncclSum, other, m.stream()), ncclSuccess);
    });
    EXPECT_EQ(ncclCommDestroy(other), ncclSuccess);
    meet.arrive_and_wait();
    left.reset();  // memory of the first, on both devices, is freed by who comes next
    meet.arrive_and_wait();
    if (m.rank == 0) replayed->launch(m.stream());
    meet.arrive_and_wait();
    if (m.rank == 1) {  // comes next, while rank 0 waits for it
      EXPECT_EQ(ncclCommDestroy(alone), ncclSuccess);
      replayed->launch(m.stream());
    }
    m.sync();
    expectAll(out, 3);
  });
}

TEST(WorldGraphs, AfterAnAbortReplaysLeaveAtOnce) {
  test::withComm(2, [](test::Member& m) {
    const test::Ints in(m.gpu, kCount, m.rank + 1);
    const test::Ints out(m.gpu, kCount, -1);
    const auto graph = test::Recording::of(m.stream(), [&] { allReduce(m, in, out); });
    graph->launch(m.stream());
    m.sync();
    test::allowLog("rank");
    EXPECT_EQ(ncclCommAbort(m.comm), ncclSuccess);
    m.comm = nullptr;
    graph->launch(m.stream());
    m.sync();
  });
}

TEST(WorldGraphs, WithoutMixingTheApplicationKeepsTheOrder) {
  for (const int mode : {0, 1}) {
    const ncclUniqueId id = test::newId();
    test::runRanks(2, [&](int rank) {
      test::useDevice(rank);
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.graphUsageMode = mode;
      config.graphStreamOrdering = 0;
      test::Member m{rank, 2, nullptr, test::device(rank), gpu::Stream::create(test::device(rank)).value()};
      ASSERT_EQ(ncclCommInitRankConfig(&m.comm, 2, id, rank, &config), ncclSuccess);
      const test::Ints in(m.gpu, kCount, rank + 1);
      const test::Ints out(m.gpu, kCount, -1);
      auto graph = test::Recording::of(m.stream(), [&] { allReduce(m, in, out); });
      for (int i = 0; i < 3; ++i) {
        graph->launch(m.stream());
        allReduce(m, in, out);
      }
      m.sync();
      expectAll(out, 3);
      graph.reset();
      EXPECT_EQ(ncclCommDestroy(m.comm), ncclSuccess);
    });
  }
}

TEST(WorldGraphs, MixedStreamsOfACommunicatorAreRefusedAndTheRecordingGoesOn) {
  test::allowLog("must all be captured by the same graph");
  test::withComm(2, [](test::Member& m) {
    const gpu::Stream outside = gpu::Stream::create(m.gpu).value();
    const test::Ints in(m.gpu, kCount, m.rank + 1);
    const test::Ints out(m.gpu, kCount, -1);
    const auto graph = test::Recording::of(m.stream(), [&] {
      EXPECT_EQ(ncclGroupStart(), ncclSuccess);
      allReduce(m, in, out);
      EXPECT_EQ(ncclAllReduce(in.at(), out.at(), kCount, ncclInt32, ncclSum, m.comm, outside.get()), ncclSuccess);
      EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
      allReduce(m, in, out);
    });
    graph->launch(m.stream());
    m.sync();
    expectAll(out, 3);
  });
}

}  // namespace
}  // namespace tutti::comm
