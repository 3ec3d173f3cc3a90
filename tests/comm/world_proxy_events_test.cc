// What a profiler plugin hears of the host threads that move data over a network: which operation every step belongs
// to, in which states it is, and that all of it ends. Run with a plugin of every version, all ranks joined by TCP.
#include <algorithm>
#include <array>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <tuple>

#include "comm/graph.h"
#include "comm/profiled.h"
#include "comm/world.h"
#include "device/kernels/kernel_name.h"
#include "support/log_capture.h"
#include "support/scoped_log.h"

namespace tutti::comm {
namespace {

using test::Ints;
using test::Member;
using test::Recording;
using test::withComm;

/// A ProxyOp and what is below it.
struct ProxyOp {
  struct Step {
    int number = 0;
    std::vector<long> states;
    std::vector<std::string> sizes;  ///< by state
  };
  int rank = -1, pid = 0, channel = -1, peer = -1, nSteps = 0, chunk = 0, isSend = -1;
  long parent = 0;
  std::vector<long> states;
  std::vector<Step> steps;
};

class ProxyEvents : public test::Profiled {
 protected:
  /// Of the plugin.
  int version() const {
    if (version_ == 0) version_ = profiler_.records("init").front().version;
    return version_;
  }

  std::vector<ProxyOp> proxyOps() const {
    std::map<long, ProxyOp> ops;
    std::vector<long> order;
    std::map<long, std::pair<long, std::size_t>> steps;
    std::map<long, long> types;
    for (const Record& one : profiler_.records()) {
      const std::string call = one.call;
      if (call == "start") types[one.handle] = one.type;
      if (call == "start" && one.type == ncclProfileProxyOp) {
        ProxyOp& op = ops[one.handle];
        order.push_back(one.handle);
        op.rank = one.rank;
        op.parent = types[one.parent];
        EXPECT_EQ(std::sscanf(one.text, "pid=%d channel=%d peer=%d steps=%d chunk=%d send=%d", &op.pid, &op.channel,
                              &op.peer, &op.nSteps, &op.chunk, &op.isSend),
                  6)
            << one.text;
      } else if (call == "start" && one.type == ncclProfileProxyStep) {
        ProxyOp& op = ops.at(one.parent);
        EXPECT_EQ(one.rank, op.rank);
        steps[one.handle] = {one.parent, op.steps.size()};
        op.steps.emplace_back();
        EXPECT_EQ(std::sscanf(one.text, "step=%d", &op.steps.back().number), 1);
      } else if (call == "state" && steps.contains(one.handle)) {
        const auto [op, index] = steps.at(one.handle);
        ops.at(op).steps[index].states.push_back(one.type);
        ops.at(op).steps[index].sizes.emplace_back(one.text);
      } else if (call == "state" && ops.contains(one.handle)) {
        ops.at(one.handle).states.push_back(one.type);
      }
    }
    std::vector<ProxyOp> all;
    for (const long handle : order) all.push_back(ops.at(handle));
    return all;
  }

  /// Whether each step of an operation was told of once, with all of its states.
  void expectComplete(const ProxyOp& op) const {
    EXPECT_TRUE(op.parent == ncclProfileColl || op.parent == ncclProfileP2p);
    EXPECT_EQ(op.pid, ::getpid());
    EXPECT_GT(op.nSteps, 0);
    EXPECT_GT(op.chunk, 0);
    const std::vector<long> ofOp =
        version() >= 4 ? std::vector<long>{ncclProfilerProxyOpInProgress_v4} : std::vector<long>{};
    EXPECT_EQ(op.states, ofOp);
    std::vector<long> expected{ncclProfilerProxyStepRecvWait, ncclProfilerProxyStepRecvFlushWait,
                               ncclProfilerProxyStepRecvGPUWait};
    if (op.isSend == 1) expected = {ncclProfilerProxyStepSendGPUWait, ncclProfilerProxyStepSendWait};
    if (op.isSend == 1 && version() >= 4) expected.insert(expected.begin() + 1, ncclProfilerProxyStepSendPeerWait_v4);
    ASSERT_EQ(op.steps.size(), static_cast<std::size_t>(op.nSteps));
    for (int i = 0; i < op.nSteps; ++i) {
      const ProxyOp::Step& step = op.steps[static_cast<std::size_t>(i)];
      EXPECT_EQ(step.number, i);
      EXPECT_EQ(step.states, expected);
      if (version() < 4) continue;
      EXPECT_EQ(step.sizes.front(), "size=0");
      EXPECT_EQ(step.sizes.at(1), step.sizes.at(2));
    }
  }

  /// Both ends of a connection tell the same of it.
  void expectAgreement(const std::vector<ProxyOp>& ops) const {
    using Seen = std::pair<int, std::vector<std::string>>;
    std::map<std::tuple<int, int, int>, std::array<std::vector<Seen>, 2>> ends;
    for (const ProxyOp& op : ops) {
      const bool sends = op.isSend == 1;
      Seen seen{op.nSteps, {}};
      for (const ProxyOp::Step& step : op.steps) seen.second.push_back(step.sizes.back());
      const auto key = sends ? std::tuple(op.rank, op.peer, op.channel) : std::tuple(op.peer, op.rank, op.channel);
      ends[key][sends ? 0 : 1].push_back(std::move(seen));
    }
    for (auto& [key, both] : ends) {
      for (auto& end : both) std::sort(end.begin(), end.end());  // protocols go their own ways
      EXPECT_EQ(both[0], both[1]) << "from " << std::get<0>(key) << " to " << std::get<1>(key);
    }
  }

  /// What a test comes to: at least `least` of them.
  std::vector<ProxyOp> expectAll(std::size_t least) const {
    expectWhole();
    const std::vector<ProxyOp> ops = proxyOps();
    EXPECT_GE(ops.size(), least);
    for (const ProxyOp& op : ops) expectComplete(op);
    expectAgreement(ops);
    return ops;
  }

 private:
  mutable int version_ = 0;
};

struct Method {
  device::Func func;
  device::Algorithm algorithm;
  device::Protocol protocol;
};

std::vector<Method> methodsOfNetworks() {
  std::vector<Method> methods;
  for (const device::Func func : {device::Func::Broadcast, device::Func::Reduce, device::Func::AllGather,
                                  device::Func::ReduceScatter, device::Func::AllReduce}) {
    for (const device::Algorithm algorithm :
         {device::Algorithm::Ring, device::Algorithm::Tree, device::Algorithm::Pat}) {
      for (const device::Protocol protocol :
           {device::Protocol::LL, device::Protocol::LL128, device::Protocol::Simple}) {
        if (device::methodExists(func, algorithm, protocol)) methods.push_back({func, algorithm, protocol});
      }
    }
  }
  return methods;
}

ncclResult_t callOf(device::Func func, const Member& m, const Ints& in, const Ints& out, std::size_t count) {
  switch (func) {
    case device::Func::Broadcast:
      return ncclBroadcast(in.at(), out.at(), count, ncclInt32, 1, m.comm, m.stream());
    case device::Func::Reduce:
      return ncclReduce(in.at(), out.at(), count, ncclInt32, ncclSum, 1, m.comm, m.stream());
    case device::Func::AllGather:
      return ncclAllGather(in.at(), out.at(), count, ncclInt32, m.comm, m.stream());
    case device::Func::ReduceScatter:
      return ncclReduceScatter(in.at(), out.at(), count, ncclInt32, ncclSum, m.comm, m.stream());
    case device::Func::AllReduce:
      return ncclAllReduce(in.at(), out.at(), count, ncclInt32, ncclSum, m.comm, m.stream());
    case device::Func::SendRecv:
      break;
  }
  return ncclInternalError;
}

class ProxyEventsOf : public ProxyEvents, public testing::WithParamInterface<Method> {
 protected:
  void SetUp() override {
    // No thread of the test runs yet.
    ::setenv("NCCL_ALGO", device::algorithmName(GetParam().algorithm), 1);  // NOLINT(concurrency-mt-unsafe)
    ::setenv("NCCL_PROTO", device::protocolName(GetParam().protocol), 1);   // NOLINT(concurrency-mt-unsafe)
  }
  void TearDown() override {
    ::unsetenv("NCCL_ALGO");   // NOLINT(concurrency-mt-unsafe)
    ::unsetenv("NCCL_PROTO");  // NOLINT(concurrency-mt-unsafe)
  }
};

TEST_P(ProxyEventsOf, TellOfEveryStepWhoseItIs) {
  constexpr std::array<std::size_t, 4> kCounts{3, 1000, 70'001, 300};
  for (const int ranks : {2, 3}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    hear(ncclProfileProxyStep);
    withComm(ranks, [&](Member& m) {
      const Ints in(m.gpu, kCounts[2] * static_cast<std::size_t>(m.size), 1);
      const Ints out(m.gpu, kCounts[2] * static_cast<std::size_t>(m.size), 0);
      for (const std::size_t n : kCounts) EXPECT_EQ(callOf(GetParam().func, m, in, out, n), ncclSuccess);
      m.sync();
    });
    const auto ops = expectAll(kCounts.size() * 2);
    for (const ProxyOp& op : ops) EXPECT_EQ(op.parent, ncclProfileColl);
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, ProxyEventsOf, testing::ValuesIn(methodsOfNetworks()), [](const auto& instance) {
  const Method& method = instance.param;
  return std::string(device::funcName(method.func)) + "_" + device::algorithmName(method.algorithm) + "_" +
         device::protocolName(method.protocol);
});

TEST_F(ProxyEvents, TellOfLongAllReducesOfTwo) {
  // Three ways of exchanging, by size.
  hear(ncclProfileProxyStep);
  withComm(2, [&](Member& m) {
    const Ints in(m.gpu, 1 << 20, 1);
    const Ints out(m.gpu, 1 << 20, 1);
    for (const std::size_t n : {1 << 16, 1 << 18, 1 << 20}) {
      EXPECT_EQ(ncclAllReduce(in.at(), out.at(), n, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
      EXPECT_EQ(ncclAllReduce(out.at(), out.at(), n, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
    }
    m.sync();
  });
  expectAll(12);
}

TEST_F(ProxyEvents, TellOfMessages) {
  constexpr int kRanks = 3;
  constexpr std::array<std::size_t, 5> kCounts{0, 1, 300, 20'000, 400'000};
  hear(ncclProfileProxyStep);
  withComm(kRanks, [&](Member& m) {
    const Ints in(m.gpu, kCounts.back(), 1);
    const Ints out(m.gpu, kCounts.back() * kCounts.size(), 0);
    const int next = (m.rank + 1) % kRanks;
    const int prev = (m.rank + kRanks - 1) % kRanks;
    ncclGroupStart();
    std::size_t at = 0;
    for (const std::size_t n : kCounts) {
      EXPECT_EQ(ncclSend(in.at(), n, ncclInt32, next, m.comm, m.stream()), ncclSuccess);
      EXPECT_EQ(ncclRecv(out.at(at), n, ncclInt32, prev, m.comm, m.stream()), ncclSuccess);
      at += n;
    }
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    EXPECT_EQ(ncclAlltoAll(out.at(), out.at(600'000), 1000, ncclInt32, m.comm, m.stream()), ncclSuccess);
    m.sync();
  });
  const auto ops = expectAll(kRanks * 2 * (kCounts.size() + kRanks - 1));
  for (const ProxyOp& op : ops) {
    EXPECT_EQ(op.parent, ncclProfileP2p);
    EXPECT_NE(op.peer, op.rank);
  }
}

constexpr std::size_t kSlot = 8192;
constexpr std::size_t kSlotsOfBlock = 5;
constexpr std::size_t kBlock = kSlot * kSlotsOfBlock / sizeof(int);

/// What three ranks move by one ring, whose slots have a known size and whose kernels one block.
struct Moved {
  device::Func func;
  std::size_t count;
  std::size_t blocks;  ///< of kBlock elements, sent by all ranks together
};
constexpr std::array<Moved, 5> kMovedByARing{{{device::Func::AllReduce, 3 * kBlock, 3 * 4},
                                              {device::Func::AllGather, kBlock, 3 * 2},
                                              {device::Func::ReduceScatter, kBlock, 3 * 2},
                                              {device::Func::Broadcast, kBlock, 2},
                                              {device::Func::Reduce, kBlock, 2}}};

TEST_F(ProxyEvents, CountEverySlotAndByteOfARing) {
  const test::ScopedEnv algorithm("NCCL_ALGO", "Ring");
  const test::ScopedEnv protocol("NCCL_PROTO", "Simple");
  const test::ScopedEnv buffer("NCCL_BUFFSIZE", std::to_string(8 * kSlot));
  const test::ScopedEnv blocks("NCCL_MAX_CTAS", "1");
  for (const Moved& one : kMovedByARing) {
    SCOPED_TRACE(device::funcName(one.func));
    hear(ncclProfileProxyStep);
    withComm(3, [&](Member& m) {
      const Ints in(m.gpu, 3 * kBlock, 1);
      const Ints out(m.gpu, 3 * kBlock, 0);
      EXPECT_EQ(callOf(one.func, m, in, out, one.count), ncclSuccess);
      m.sync();
    });
    std::array<std::size_t, 2> slots{};
    for (const ProxyOp& op : expectAll(4)) {
      EXPECT_EQ(op.channel, 0);
      EXPECT_EQ(op.chunk, static_cast<int>(kSlot));
      slots.at(op.isSend == 1 ? 1 : 0) += op.steps.size();
      if (version() < 4) continue;
      for (const ProxyOp::Step& step : op.steps) EXPECT_EQ(step.sizes.back(), "size=" + std::to_string(kSlot));
    }
    EXPECT_EQ(slots[0], one.blocks * kSlotsOfBlock) << "received";
    EXPECT_EQ(slots[1], one.blocks * kSlotsOfBlock) << "sent";
  }
}

TEST_F(ProxyEvents, AreBelowCollectivesWithTheWarpsThatTheirKernelsHave) {
  const test::ScopedLog log("INFO", "TUNING");
  const test::ScopedEnv algorithm("NCCL_ALGO", "Ring");
  const test::ScopedEnv blocks("NCCL_MAX_CTAS", "1");
  for (const int warps : {3, 15}) {
    const test::ScopedEnv given("NCCL_NTHREADS", std::to_string(warps * 32));
    hear(ncclProfileColl);
    const std::size_t before = test::capturedText().size();
    withComm(2, [&](Member& m) {
      const Ints in(m.gpu, 1000, 1);
      EXPECT_EQ(ncclAllReduce(in.at(), in.at(), 1000, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
      m.sync();
    });
    const std::string said = test::capturedText().substr(before);
    const std::string launched = "channel{Lo..Hi}={0..0} threads " + std::to_string(warps * 32) + " ";
    EXPECT_NE(said.find(launched), std::string::npos) << said;
    EXPECT_EQ(count(ncclProfileColl), 2U);
    for (const std::string& text : texts(ncclProfileColl)) {
      EXPECT_NE(text.find(" channels=1 warps=" + std::to_string(warps) + " "), std::string::npos) << text;
    }
  }
}

TEST_F(ProxyEvents, TellOfReplaysBetweenLaunches) {
  constexpr std::size_t kLong = 50'000;
  hear(0);
  withComm(2, [&](Member& m) {
    const Ints in(m.gpu, kLong, 1);
    const auto call = [&](std::size_t n) {
      EXPECT_EQ(ncclAllReduce(in.at(), in.at(), n, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
    };
    call(kLong);  // unheard ones are counted, launched or replayed
    const auto unheard = Recording::of(m.stream(), [&] { call(300); });
    m.sync();
    static std::barrier together(2);
    together.arrive_and_wait();
    if (m.rank == 0) hear(ncclProfileProxyStep);
    together.arrive_and_wait();
    const auto heard = Recording::of(m.stream(), [&] { call(kLong / 2); });
    for (int i = 0; i < 3; ++i) {
      unheard->launch(m.stream());
      heard->launch(m.stream());
      call(7);
    }
    m.sync();
  });
  awaitFreed();
  const auto ops = proxyOps();
  EXPECT_GE(ops.size(), 2U * 2 * 6);
  for (const ProxyOp& op : ops) EXPECT_EQ(op.steps.size(), static_cast<std::size_t>(op.nSteps));
  EXPECT_EQ(count(ncclProfileColl), 2U * 6);
}

TEST_F(ProxyEvents, AreWholeWhileTheMaskChangesAtAnyTime) {
  constexpr int kRounds = 20;
  callWhileMasksChange(kRounds);
  awaitFreed();
  expectWhole();
  for (const ProxyOp& op : proxyOps()) EXPECT_LE(op.steps.size(), static_cast<std::size_t>(op.nSteps));
  EXPECT_GT(count(ncclProfileProxyOp), 0U);
  EXPECT_GT(count(ncclProfileProxyStep), 0U);
}

TEST_F(ProxyEvents, TellWhichRelativeAStepIsOf) {
  constexpr int kCalls = 4;
  hear(ncclProfileProxyStep);
  withComm(2, [&](Member& m) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.splitShare = 1;
    ncclComm_t child = nullptr;
    // Turned round: a rank has another number there.
    ASSERT_EQ(ncclCommSplit(m.comm, 0, 1 - m.rank, &child, &config), ncclSuccess);
    const Ints in(m.gpu, 50'000, 1);
    const auto call = [&](ncclComm_t comm, std::size_t n) {
      EXPECT_EQ(ncclAllReduce(in.at(), in.at(), n, ncclInt32, ncclSum, comm, m.stream()), ncclSuccess);
    };
    for (int i = 0; i < kCalls; ++i) {
      call(m.comm, 300);
      call(child, 50'000);
    }
    const auto recording = Recording::of(m.stream(), [&] { call(child, 7); });
    for (int i = 0; i < kCalls; ++i) {
      recording->launch(m.stream());
      call(m.comm, 50'000);
    }
    m.sync();
    EXPECT_EQ(ncclCommDestroy(child), ncclSuccess);
    call(m.comm, 300);
    m.sync();
  });
  awaitFreed();
  const auto ops = proxyOps();
  std::map<int, std::size_t> steps;
  for (const ProxyOp& op : ops) {
    EXPECT_EQ(op.steps.size(), static_cast<std::size_t>(op.nSteps));
    EXPECT_EQ(op.peer, 1 - op.rank);
    ++steps[op.nSteps];
  }
  EXPECT_EQ(count(ncclProfileColl), 2U * (4 * kCalls + 1));
  EXPECT_GE(ops.size(), 2U * 2 * (4 * kCalls + 1));
  EXPECT_GE(steps.size(), 2U) << "long ones are not told as short ones";
}

TEST_F(ProxyEvents, TellOfTheThreadItself) {
  hear(ncclProfileProxyCtrl);
  withComm(2, [&](Member& m) {
    const Ints in(m.gpu, 300, 1);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(ncclAllReduce(in.at(), in.at(), 300, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
      m.sync();
    }
  });
  expectWhole();
  std::map<long, std::vector<std::pair<long, std::string>>> states;
  for (const Record& one : profiler_.records("start")) {
    EXPECT_EQ(one.type, ncclProfileProxyCtrl);
    EXPECT_EQ(one.parent, 0);
    states[one.handle];
  }
  for (const Record& one : profiler_.records("state")) states[one.handle].emplace_back(one.type, one.text);
  int appended = 0;
  std::set<long> seen;
  for (const auto& [handle, of] : states) {
    ASSERT_FALSE(of.empty());
    seen.insert(of.front().first);
    const long last = of.back().first;
    switch (of.front().first) {
      case ncclProfilerProxyCtrlAppend:
        ASSERT_EQ(of.size(), 2U);
        EXPECT_EQ(last, ncclProfilerProxyCtrlAppendEnd);
        appended += std::atoi(of.back().second.c_str() + std::string("appended=").size());
        break;
      case ncclProfilerProxyCtrlSleep:
        ASSERT_EQ(of.size(), 2U);
        EXPECT_EQ(last, ncclProfilerProxyCtrlWakeup);
        break;
      default:
        EXPECT_EQ(of.size(), 1U);
        EXPECT_TRUE(last == ncclProfilerProxyCtrlIdle || last == ncclProfilerProxyCtrlActive) << last;
    }
  }
  EXPECT_TRUE(seen.contains(ncclProfilerProxyCtrlIdle));
  EXPECT_TRUE(seen.contains(ncclProfilerProxyCtrlActive));
  EXPECT_EQ(appended, 2 * 2 * 3) << "a send and a receive of each rank and call";
}

TEST_F(ProxyEvents, EndWithTheirCommunicator) {
  hear(ncclProfileProxyStep);
  abortWhileOneWaits([&] {
    while (count(ncclProfileProxyOp) < 6) std::this_thread::yield();
  });
  expectWhole();
  EXPECT_EQ(profiler_.records("finalize").size(), 2U);
}

/// Over a network whose plugin tells of what it does.
TEST_F(ProxyEvents, HaveEventsOfTheNetworkBelowThem) {
  hear(ncclProfileNetPlugin);
  withComm(2, [&](Member& m) {
    const Ints in(m.gpu, 100'000, 1);
    for (const std::size_t n : {300, 100'000}) {
      EXPECT_EQ(ncclAllReduce(in.at(), in.at(), n, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
    }
    m.sync();
  });
  const auto events = profiler_.records("start", ncclProfileNetPlugin);
  if (version() < 3) {
    EXPECT_TRUE(events.empty());
    return;
  }
  std::size_t sends = 0;
  for (const ProxyOp& op : expectAll(2 * 2 * 2)) sends += op.isSend == 1 ? op.steps.size() : 0;
  EXPECT_GE(events.size(), sends) << "some receives are posted before anybody knows whose they are";
  for (const Record& one : events) {
    EXPECT_EQ(typeOfParent(one), ncclProfileProxyStep);
    const std::string text = one.text;
    EXPECT_EQ(text.find("id=" + std::to_string(0x55 << 16 | 1) + " data=0x"), 0U) << text;
  }
  const std::size_t updates = profiler_.records("state", ncclProfilerNetPluginUpdate).size();
  EXPECT_EQ(updates, version() >= 4 ? events.size() : 0);
}

TEST_F(ProxyEvents, AreNothingToThoseWhoFailAndGiveNoHandles) {
  profiler_.fail(0, true, true);
  withComm(2, [&](Member& m) {
    const Ints in(m.gpu, 300, 1);
    EXPECT_EQ(ncclAllReduce(in.at(), in.at(), 300, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
    m.sync();
    EXPECT_EQ(in.read(), std::vector<int>(300, 2));
  });
  EXPECT_GE(count(ncclProfileProxyOp), 4U);
  EXPECT_GE(count(ncclProfileProxyStep), 4U) << "children are told without a parent";
  EXPECT_EQ(profiler_.records("stop").size(), 0U);
  EXPECT_EQ(profiler_.records("state").size(), 0U);
}

}  // namespace
}  // namespace tutti::comm
