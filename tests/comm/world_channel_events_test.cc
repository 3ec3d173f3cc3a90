// What a profiler plugin hears of the channels of kernels: which operation each works for, from when to when by the
// device's clock. Run with plugins of the versions that know of it, and one that does not.
#include <algorithm>
#include <barrier>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "comm/graph.h"
#include "comm/profiled.h"
#include "comm/world.h"

namespace tutti::comm {
namespace {

using test::Ints;
using test::Member;
using test::Recording;
using test::withComm;

std::uint64_t now() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(SteadyClock::now().time_since_epoch()).count());
}

/// A channel that has worked for an operation.
struct Worked {
  long operation = 0;  ///< handle of its Coll or P2p
  int channel = -1;
  std::uint64_t begin = 0, end = 0;  ///< 0: the plugin's version does not tell
  bool stopped = false;
};

class KernelChannels : public test::Profiled {
 protected:
  using Profiled::Record;

  void SetUp() override { hear(ncclProfileKernelCh); }

  int version() const { return profiler_.records("init").front().version; }

  std::vector<Worked> worked() const {
    std::map<long, Worked> byHandle;
    for (const Record& one : profiler_.records()) {
      const std::string call = one.call;
      if (call == "start" && one.type == ncclProfileKernelCh) {
        Worked& its = byHandle[one.handle];
        its.operation = one.parent;
        EXPECT_EQ(one.rank, 0) << "which the interface leaves out";
        const int fields = std::sscanf(one.text, "channel=%d timer=%lu", &its.channel, &its.begin);
        EXPECT_EQ(fields, one.version >= 4 ? 2 : 1) << one.text;
      } else if (byHandle.contains(one.handle) && call == "state") {
        EXPECT_EQ(one.type, ncclProfilerKernelChStop);
        EXPECT_EQ(std::sscanf(one.text, "timer=%lu", &byHandle[one.handle].end), 1) << one.text;
      } else if (byHandle.contains(one.handle) && call == "stop") {
        byHandle[one.handle].stopped = true;
      }
    }
    std::vector<Worked> all;
    for (const auto& [handle, its] : byHandle) all.push_back(its);
    return all;
  }

  /// Each operation was told of with as many channels as it says that it has, each once, and all lie between the two
  /// moments. `operations`: how many there are with channels.
  void expectComplete(std::size_t operations, std::uint64_t from, std::uint64_t to) const {
    expectWhole();
    if (version() < 3) {
      EXPECT_EQ(count(ncclProfileKernelCh), 0U);
      return;
    }
    std::map<long, std::set<int>> channels;
    for (const Worked& one : worked()) {
      EXPECT_TRUE(one.stopped);
      EXPECT_TRUE(channels[one.operation].insert(one.channel).second) << "channel " << one.channel << " twice";
      if (version() < 4) continue;
      EXPECT_GE(one.begin, from);
      EXPECT_LE(one.begin, one.end);
      EXPECT_LE(one.end, to);
    }
    std::size_t withChannels = 0;
    for (const Record& one : profiler_.records("start")) {
      if (one.type != ncclProfileColl && one.type != ncclProfileP2p) continue;
      const char* const said = std::strstr(one.text, "channels=");
      const std::size_t n = said == nullptr ? channels[one.handle].size() : std::strtoul(said + 9, nullptr, 10);
      EXPECT_EQ(channels[one.handle].size(), n) << one.text;
      if (!channels[one.handle].empty()) ++withChannels;
    }
    EXPECT_EQ(withChannels, operations);
  }
};

TEST_F(KernelChannels, TellOfEveryChannelOfEveryCollective) {
  constexpr std::size_t kMost = 100'000;
  const std::uint64_t from = now();
  withComm(3, [&](Member& m) {
    const Ints in(m.gpu, kMost * 3, 1);
    const Ints out(m.gpu, kMost * 3, 0);
    for (const std::size_t n : {std::size_t{1}, std::size_t{3000}, kMost}) {
      EXPECT_EQ(ncclAllReduce(in.at(), out.at(), n, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
      EXPECT_EQ(ncclBroadcast(in.at(), out.at(), n, ncclInt32, 1, m.comm, m.stream()), ncclSuccess);
      EXPECT_EQ(ncclReduce(in.at(), out.at(), n, ncclInt32, ncclSum, 2, m.comm, m.stream()), ncclSuccess);
      EXPECT_EQ(ncclAllGather(in.at(), out.at(), n, ncclInt32, m.comm, m.stream()), ncclSuccess);
      EXPECT_EQ(ncclReduceScatter(in.at(), out.at(), n, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
    }
    m.sync();
  });
  expectComplete(3 * 3 * 5, from, now());
}

TEST_F(KernelChannels, TellOfEachOfManyOperationsOfOneKernel) {
  constexpr int kOperations = 40;
  const std::uint64_t from = now();
  withComm(2, [&](Member& m) {
    const Ints in(m.gpu, 1000 * kOperations, 1);
    ncclGroupStart();
    for (std::size_t i = 0; i < kOperations; ++i) {
      EXPECT_EQ(ncclAllReduce(in.at(i * 1000), in.at(i * 1000), 1000, ncclInt32, ncclSum, m.comm, m.stream()),
                ncclSuccess);
    }
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    m.sync();
  });
  EXPECT_LT(count(ncclProfileKernelLaunch), 2U * kOperations);
  expectComplete(2 * kOperations, from, now());
}

TEST_F(KernelChannels, TellOfMessages) {
  constexpr int kRanks = 3;
  const std::uint64_t from = now();
  withComm(kRanks, [&](Member& m) {
    const Ints in(m.gpu, 300'000, 1);
    const Ints out(m.gpu, 900'000, 0);
    ncclGroupStart();
    EXPECT_EQ(ncclSend(in.at(), 300'000, ncclInt32, (m.rank + 1) % kRanks, m.comm, m.stream()), ncclSuccess);
    EXPECT_EQ(ncclRecv(out.at(), 300'000, ncclInt32, (m.rank + 2) % kRanks, m.comm, m.stream()), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    // With one to itself.
    EXPECT_EQ(ncclAlltoAll(out.at(), out.at(600'000), 1000, ncclInt32, m.comm, m.stream()), ncclSuccess);
    m.sync();
  });
  expectComplete(kRanks * (2 + 2 * kRanks), from, now());
}

TEST_F(KernelChannels, TellOfEveryReplayOfAGraph) {
  constexpr int kReplays = 20;
  const std::uint64_t from = now();
  withComm(2, [&](Member& m) {
    const Ints in(m.gpu, 5000, 1);
    const auto recording = Recording::of(m.stream(), [&] {
      EXPECT_EQ(ncclAllReduce(in.at(), in.at(), 5000, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
      EXPECT_EQ(ncclBroadcast(in.at(), in.at(), 5000, ncclInt32, 0, m.comm, m.stream()), ncclSuccess);
    });
    for (int i = 0; i < kReplays; ++i) {
      recording->launch(m.stream());
      EXPECT_EQ(ncclReduce(in.at(), in.at(), 50, ncclInt32, ncclSum, 0, m.comm, m.stream()), ncclSuccess);
    }
    m.sync();
  });
  awaitFreed();
  expectComplete(2 * 3 * kReplays, from, now());
}

TEST_F(KernelChannels, AreThereForHundredsOfLaunchesThatNobodyWaitsFor) {
  constexpr int kCalls = 300;
  const std::uint64_t from = now();
  withComm(2, [&](Member& m) {
    const Ints in(m.gpu, 100, 1);
    for (int i = 0; i < kCalls; ++i) {
      EXPECT_EQ(ncclAllReduce(in.at(), in.at(), 100, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
    }
    m.sync();
  });
  expectComplete(2 * kCalls, from, now());
}

TEST_F(KernelChannels, AreOfCallsThatWereMadeWhileSomebodyWantedThem) {
  const std::uint64_t from = now();
  withComm(2, [&](Member& m) {
    const Ints in(m.gpu, 300, 1);
    static std::barrier together(2);
    const auto callWith = [&](int mask) {
      together.arrive_and_wait();
      if (m.rank == 0) hear(mask);
      together.arrive_and_wait();
      EXPECT_EQ(ncclAllReduce(in.at(), in.at(), 300, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
      m.sync();
    };
    callWith(kAllKinds & ~ncclProfileKernelCh);
    callWith(ncclProfileKernelCh);
  });
  expectComplete(2, from, now());
  hear(ncclProfileColl);
  withComm(2, [&](Member& m) {
    const Ints in(m.gpu, 300, 1);
    EXPECT_EQ(ncclAllReduce(in.at(), in.at(), 300, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
    m.sync();
  });
  EXPECT_EQ(count(ncclProfileColl), 2U);
  EXPECT_EQ(count(ncclProfileKernelCh), 0U);
}

TEST_F(KernelChannels, EndWithAnAbort) {
  abortWhileOneWaits([&] { EXPECT_EQ(count(ncclProfileColl), 3U) << "two calls of this rank and one of the other"; });
  expectWhole();
  if (version() >= 3) {
    EXPECT_GE(count(ncclProfileKernelCh), 2U);
  }
  EXPECT_EQ(profiler_.records("finalize").size(), 2U);
}

TEST_F(KernelChannels, AreNothingToThoseWhoGiveNoHandles) {
  profiler_.fail(0, true, true);
  withComm(2, [&](Member& m) {
    const Ints in(m.gpu, 300, 1);
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(ncclAllReduce(in.at(), in.at(), 300, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
    }
    m.sync();
  });
  EXPECT_EQ(profiler_.records("stop").size(), 0U);
  EXPECT_EQ(profiler_.records("state").size(), 0U);
}

}  // namespace
}  // namespace tutti::comm
