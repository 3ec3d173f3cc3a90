// What the descriptors of a profiler plugin of each version say of calls: every member of Coll and P2p, what they are
// part of, and what init() is told.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "comm/profiled.h"
#include "comm/world.h"
#include "support/scoped_log.h"

namespace tutti::comm {
namespace {

using test::Ints;
using test::Member;
using test::withComm;

constexpr std::size_t kToldCount = 700;

/// As version 1 numbers functions and types.
int numberOf(const std::string& function) {
  const std::map<std::string, int> numbers{{"Broadcast", 0}, {"Reduce", 1},   {"AllGather", 2}, {"ReduceScatter", 3},
                                           {"AllReduce", 4}, {"SendRecv", 5}, {"Send", 6},      {"Recv", 7}};
  return numbers.at(function);
}

std::string addressText(const void* address) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%p", address);
  return text.data();
}

/// A call, and what version 2 and later say of it.
struct ToldCollective {
  std::string function;
  std::size_t count = 0;
  int root = 0;
  ncclDataType_t type = ncclInt8;
  std::function<ncclResult_t(const Member&, const Ints&, const Ints&)> call;
};

std::vector<ToldCollective> toldCollectives() {
  return {{"AllReduce", kToldCount, 0, ncclInt32,
           [](const Member& m, const Ints& in, const Ints& out) {
             return ncclAllReduce(in.at(), out.at(), kToldCount, ncclInt32, ncclSum, m.comm, m.stream());
           }},
          {"Reduce", kToldCount, 1, ncclFloat32,
           [](const Member& m, const Ints& in, const Ints& out) {
             return ncclReduce(in.at(), out.at(), kToldCount, ncclFloat32, ncclSum, 1, m.comm, m.stream());
           }},
          {"Broadcast", kToldCount * 8, 1, ncclInt8,
           [](const Member& m, const Ints& in, const Ints& out) {
             return ncclBroadcast(in.at(), out.at(), kToldCount, ncclInt64, 1, m.comm, m.stream());
           }},
          {"AllGather", kToldCount * 2, 0, ncclInt8,
           [](const Member& m, const Ints& in, const Ints& out) {
             return ncclAllGather(in.at(), out.at(), kToldCount, ncclFloat16, m.comm, m.stream());
           }},
          {"ReduceScatter", kToldCount, 0, ncclFloat32, [](const Member& m, const Ints& in, const Ints& out) {
             return ncclReduceScatter(in.at(), out.at(), kToldCount, ncclFloat32, ncclMax, m.comm, m.stream());
           }}};
}

class ProfilersOfEachVersion : public test::Profiled {
 protected:
  int version() const { return profiler_.records("init").front().version; }
  std::string functionText(const std::string& name) const {
    return version() == 1 ? std::to_string(numberOf(name)) : name;
  }
  std::string typeText(ncclDataType_t type) const {
    const std::map<ncclDataType_t, std::string> names{{ncclInt8, "ncclInt8"},       {ncclInt32, "ncclInt32"},
                                                      {ncclUint32, "ncclUint32"},   {ncclFloat32, "ncclFloat32"},
                                                      {ncclFloat16, "ncclFloat16"}, {ncclBfloat16, "ncclBfloat16"}};
    return version() == 1 ? std::to_string(static_cast<int>(type)) : names.at(type);
  }
  /// Whether the event is part of what its version has it be part of: a Group, or since version 5 the call, with the
  /// Group beside it.
  void expectParents(const Record& event, long call) const {
    EXPECT_EQ(typeOfParent(event), version() <= 4 ? static_cast<long>(ncclProfileGroup) : call);
    if (version() <= 4) return;
    const char* const group = std::strstr(event.text, " group=");
    ASSERT_NE(group, nullptr) << event.text;
    Record beside = event;
    beside.parent = std::strtol(group + 7, nullptr, 10);
    EXPECT_EQ(typeOfParent(beside), ncclProfileGroup) << event.text;
  }
  /// That those were told of, each once, with at least one channel; `texts` with "RANK: " before each.
  void expectMessages(std::vector<std::string> expected) const {
    std::vector<std::string> told;
    for (const Record& event : profiler_.records("start", ncclProfileP2p)) {
      const std::string text = event.text;
      const std::size_t channels = text.find(" channels=");
      EXPECT_EQ(channels != std::string::npos, version() >= 4) << text;
      if (version() >= 4) {
        EXPECT_GE(std::atoi(text.c_str() + channels + 10), 1) << text;
      }
      told.push_back(std::to_string(event.rank) + ": " + text.substr(0, channels));
      expectParents(event, ncclProfileCollApi);
    }
    std::sort(told.begin(), told.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(told, expected);
  }
  void expectCalls(std::vector<std::string> expected) const {
    std::vector<std::string> told = texts(ncclProfileCollApi);
    std::sort(told.begin(), told.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(told, expected);
  }
  static bool begins(const std::string& text, const std::string& with) {
    return text.compare(0, with.size(), with) == 0;
  }
};

TEST_F(ProfilersOfEachVersion, HearEveryMemberOfEveryCollective) {
  for (const ToldCollective& one : toldCollectives()) {
    SCOPED_TRACE(one.function);
    hear(ncclProfileColl);
    std::array<std::string, 2> buffers;
    withComm(2, [&](Member& m) {
      const Ints in(m.gpu, kToldCount * 4, 1);
      const Ints out(m.gpu, kToldCount * 4, 0);
      buffers[static_cast<std::size_t>(m.rank)] = " send=" + addressText(in.at()) + " recv=" + addressText(out.at());
      for (int i = 0; i < 3; ++i) EXPECT_EQ(one.call(m, in, out), ncclSuccess);
      m.sync();
    });
    expectWhole();
    const auto events = profiler_.records("start", ncclProfileColl);
    ASSERT_EQ(events.size(), 6U);
    std::map<int, int> next;
    for (const Record& event : events) {
      const std::string text = event.text;
      const std::string expected = "seq=" + std::to_string(next[event.rank]++) + " func=" + functionText(one.function) +
                                   " count=" + std::to_string(one.count) + " root=" + std::to_string(one.root) +
                                   " type=" + typeText(one.type) + " channels=";
      EXPECT_TRUE(begins(text, expected)) << text << "\n" << expected;
      const std::string rest = buffers.at(static_cast<std::size_t>(event.rank)) + test::leftOut(version(), true);
      EXPECT_NE(text.find(rest), std::string::npos) << text << "\n" << rest;
      int channels = 0;
      int warps = 0;
      std::array<char, 24> algorithm{};
      std::array<char, 24> protocol{};
      ASSERT_EQ(std::sscanf(text.c_str() + text.find("channels="), "channels=%d warps=%d algo=%23s proto=%23s",
                            &channels, &warps, algorithm.data(), protocol.data()),
                4)
          << text;
      EXPECT_GE(channels, 1);
      EXPECT_GE(warps, 1);
      if (version() == 1) {
        EXPECT_LE(std::atoi(algorithm.data()), 6);
        EXPECT_LE(std::atoi(protocol.data()), 2);
      } else {
        const std::string algorithms = " TREE RING PAT ONESHOT DIRECT ";
        EXPECT_NE(algorithms.find(" " + std::string(algorithm.data()) + " "), std::string::npos) << text;
        const std::string protocols = " LL LL128 SIMPLE ";
        EXPECT_NE(protocols.find(" " + std::string(protocol.data()) + " "), std::string::npos) << text;
      }
      expectParents(event, ncclProfileCollApi);
    }
  }
}

TEST_F(ProfilersOfEachVersion, HearEveryMemberOfEveryMessage) {
  hear(ncclProfileP2p);
  std::array<std::array<std::string, 2>, 2> buffers;
  withComm(2, [&](Member& m) {
    const Ints in(m.gpu, kToldCount, 1);
    const Ints out(m.gpu, kToldCount, 0);
    buffers[static_cast<std::size_t>(m.rank)] = {addressText(in.at()), addressText(out.at())};
    ncclGroupStart();
    EXPECT_EQ(ncclSend(in.at(), kToldCount, ncclInt32, 1 - m.rank, m.comm, m.stream()), ncclSuccess);
    EXPECT_EQ(ncclRecv(out.at(), kToldCount, ncclInt32, 1 - m.rank, m.comm, m.stream()), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    m.sync();
  });
  expectWhole();
  const auto events = profiler_.records("start", ncclProfileP2p);
  ASSERT_EQ(events.size(), 4U);
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Record& event = events[i];
    const std::string text = event.text;
    const bool sends = begins(text, "func=" + functionText("Send") + " ");
    const auto rank = static_cast<std::size_t>(event.rank);
    const std::string expected = "func=" + functionText(sends ? "Send" : "Recv") +
                                 " count=" + std::to_string(kToldCount) + " peer=" + std::to_string(1 - event.rank) +
                                 " type=" + typeText(ncclInt32) + " buff=" + buffers.at(rank).at(sends ? 0 : 1) +
                                 test::leftOut(version(), false);
    EXPECT_TRUE(begins(text, expected)) << text << "\n" << expected;
    const std::size_t channels = text.find(" channels=");
    EXPECT_EQ(channels != std::string::npos, version() >= 4) << text;
    if (version() >= 4) {
      EXPECT_GE(std::atoi(text.c_str() + channels + 10), 1) << text;
    }
    expectParents(event, ncclProfileP2pApi);
  }
}

/// Of three ranks the second is the root.
TEST_F(ProfilersOfEachVersion, HearEveryMessageOfAGatherAndAScatter) {
  for (const bool gathers : {true, false}) {
    SCOPED_TRACE(gathers ? "Gather" : "Scatter");
    hear(kAllKinds);
    std::mutex mutex;
    std::vector<std::string> messages;
    std::vector<std::string> calls;
    const auto add = [&](int rank, const char* function, int peer, const void* buffer) {
      messages.push_back(std::to_string(rank) + ": func=" + functionText(function) +
                         " count=700 peer=" + std::to_string(peer) + " type=" + typeText(ncclInt32) +
                         " buff=" + addressText(buffer) + test::leftOut(version(), false));
    };
    withComm(3, [&](Member& m) {
      const Ints one(m.gpu, kToldCount, 1);
      const Ints all(m.gpu, kToldCount * 3, 0);
      {
        const std::lock_guard lock(mutex);
        add(m.rank, gathers ? "Send" : "Recv", 1, one.at());
        for (int peer = 0; peer < 3 && m.rank == 1; ++peer) {
          add(1, gathers ? "Recv" : "Send", peer, all.at(static_cast<std::size_t>(peer) * kToldCount));
        }
        calls.push_back(std::string("func=") + (gathers ? "Gather" : "Scatter") +
                        " count=700 type=ncclInt32 root=1 stream=" + addressText(m.stream()) + " captured=0");
      }
      const ncclResult_t called = gathers
                                      ? ncclGather(one.at(), all.at(), kToldCount, ncclInt32, 1, m.comm, m.stream())
                                      : ncclScatter(all.at(), one.at(), kToldCount, ncclInt32, 1, m.comm, m.stream());
      EXPECT_EQ(called, ncclSuccess);
      m.sync();
    });
    expectWhole();
    expectMessages(messages);
    expectCalls(version() >= 5 ? calls : std::vector<std::string>{});
  }
}

TEST_F(ProfilersOfEachVersion, HearWhatTheirKindsAreOfEveryCall) {
  withComm(2, [&](Member& m) {
    const Ints in(m.gpu, kToldCount * 2, 1);
    ncclGroupStart();
    EXPECT_EQ(ncclAllReduce(in.at(), in.at(), kToldCount, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(in.at(kToldCount), in.at(kToldCount), kToldCount, ncclInt32, ncclSum, m.comm, m.stream()),
              ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    m.sync();
  });
  expectWhole();
  const std::size_t api = version() >= 5 ? 1 : 0;
  EXPECT_EQ(count(ncclProfileGroupApi), 2 * api);
  EXPECT_EQ(count(ncclProfileCollApi), 4 * api);
  EXPECT_GE(count(ncclProfileKernelLaunch), 2 * api);
  EXPECT_EQ(count(ncclProfileGroup), 2U);
  EXPECT_EQ(count(ncclProfileColl), 4U);
  EXPECT_EQ(count(ncclProfileKernelCh) > 0, version() >= 3);
  EXPECT_EQ(profiler_.records("finalize").size(), 2U);
}

TEST_F(ProfilersOfEachVersion, HearEveryMemberOfCallsGroupsAndLaunches) {
  std::array<std::string, 2> streams;
  withComm(2, [&](Member& m) {
    const Ints in(m.gpu, kToldCount, 1);
    const Ints out(m.gpu, kToldCount, 0);
    streams[static_cast<std::size_t>(m.rank)] = addressText(m.stream());
    EXPECT_EQ(ncclReduce(in.at(), out.at(), kToldCount, ncclInt32, ncclSum, 1, m.comm, m.stream()), ncclSuccess);
    ncclGroupStart();
    EXPECT_EQ(ncclSend(in.at(), kToldCount, ncclInt32, 1 - m.rank, m.comm, m.stream()), ncclSuccess);
    EXPECT_EQ(ncclRecv(out.at(), kToldCount, ncclInt32, 1 - m.rank, m.comm, m.stream()), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    m.sync();
  });
  expectWhole();
  const auto sorted = [this](long type) {
    std::vector<std::string> all = texts(type);
    std::sort(all.begin(), all.end());
    return all;
  };
  const auto each = [&](const std::vector<std::pair<std::string, std::string>>& around) {
    std::vector<std::string> all;
    for (const std::string& stream : streams) {
      for (const auto& [before, after] : around) all.push_back(before + "stream=" + stream + after);
    }
    std::sort(all.begin(), all.end());
    return version() >= 5 ? all : std::vector<std::string>{};
  };
  EXPECT_EQ(sorted(ncclProfileCollApi), each({{"func=Reduce count=700 type=ncclInt32 root=1 ", " captured=0"}}));
  EXPECT_EQ(sorted(ncclProfileP2pApi), each({{"func=Send count=700 type=ncclInt32 ", " captured=0"},
                                             {"func=Recv count=700 type=ncclInt32 ", " captured=0"}}));
  EXPECT_EQ(sorted(ncclProfileKernelLaunch), each({{"", ""}, {"", ""}}));
  EXPECT_EQ(sorted(ncclProfileGroupApi), std::vector<std::string>(version() >= 5 ? 4 : 0, "captured=0 depth=1"));
  const std::vector<Record> states = profiler_.records("state", ncclProfilerGroupStartApiStop);
  EXPECT_EQ(states.size(), version() >= 5 ? 4U : 0U);
  EXPECT_EQ(profiler_.records("state", ncclProfilerGroupEndApiStart).size(), states.size());
}

TEST_F(ProfilersOfEachVersion, HearNothingOfWhatIsRefusedButThatItWasCalled) {
  for (int rank = 0; rank < 2; ++rank) test::expectLog("invalid root 7");
  withComm(2, [&](Member& m) {
    const Ints in(m.gpu, kToldCount, 1);
    ncclGroupStart();
    EXPECT_EQ(ncclAllReduce(in.at(), in.at(), kToldCount, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
    EXPECT_EQ(ncclBroadcast(in.at(), in.at(), kToldCount, ncclInt32, 7, m.comm, m.stream()), ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  });
  expectWhole();
  EXPECT_EQ(profiler_.records("start").size(), version() >= 5 ? 4U : 0U) << "a group and a call of each rank";
}

TEST_F(ProfilersOfEachVersion, AreToldOfTheirCommunicatorAsTheyCanBe) {
  const ncclUniqueId id = test::newId();
  test::runRanks(2, [&](int rank) {
    test::useDevice(rank);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.commName = "tensor parallel";
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, id, rank, &config), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
  std::set<int> ranks;
  for (const Record& one : profiler_.records("init")) {
    ranks.insert(one.rank);
    EXPECT_STREQ(one.text,
                 version() >= 4 ? "name=tensor parallel hasId=1 nodes=1 ranks=2" : "name=NULL hasId=0 nodes=0 ranks=0");
  }
  EXPECT_EQ(ranks, version() >= 4 ? (std::set<int>{0, 1}) : (std::set<int>{-1}));
}

TEST_F(ProfilersOfEachVersion, HearTheSameWithoutContextsButNoFinalize) {
  const test::ScopedEnv none("TEST_PROFILER_NO_CONTEXT", "1");
  withComm(2, [&](Member& m) {
    const Ints in(m.gpu, kToldCount, 1);
    EXPECT_EQ(ncclAllReduce(in.at(), in.at(), kToldCount, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
    m.sync();
    EXPECT_EQ(in.read(), std::vector<int>(kToldCount, 2));
  });
  expectWhole();
  EXPECT_EQ(profiler_.records("init").size(), 2U);
  for (const Record& one : profiler_.records("start")) EXPECT_EQ(one.context, 0) << one.type;
  EXPECT_EQ(count(ncclProfileGroup), 2U);
  EXPECT_EQ(count(ncclProfileColl), 2U);
  EXPECT_EQ(count(ncclProfileKernelCh) > 0, version() >= 3);
  EXPECT_EQ(profiler_.records("finalize").size(), 0U);
}

/// Two ranks have two communicators each; the plugin refuses one of the four.
TEST_F(ProfilersOfEachVersion, HearOfAllButTheCommunicatorThatTheyRefuse) {
  for (const char* refused : {"1", "3"}) {
    SCOPED_TRACE(refused);
    const test::ScopedEnv refuses("TEST_PROFILER_REFUSES", refused);
    hear(kAllKinds);
    const ncclUniqueId id = test::newId();
    withComm(2, [&](Member& m) {
      ncclComm_t other = nullptr;
      ASSERT_EQ(ncclCommInitRank(&other, 2, id, m.rank), ncclSuccess);
      const Ints in(m.gpu, kToldCount * 2, 1);
      const auto sum = [&](ncclComm_t comm, int* at) {
        EXPECT_EQ(ncclAllReduce(at, at, kToldCount, ncclInt32, ncclSum, comm, m.stream()), ncclSuccess);
      };
      sum(m.comm, in.at());
      sum(other, in.at(kToldCount));
      ncclGroupStart();
      sum(m.comm, in.at());
      sum(other, in.at(kToldCount));
      EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
      m.sync();
      EXPECT_EQ(in.read(), std::vector<int>(kToldCount * 2, 4));
      EXPECT_EQ(ncclCommDestroy(other), ncclSuccess);
    });
    expectWhole();
    EXPECT_EQ(profiler_.records("init").size(), 4U);
    EXPECT_EQ(profiler_.records("init", ncclSystemError).size(), 1U);
    EXPECT_EQ(profiler_.records("finalize").size(), 3U);
    EXPECT_EQ(count(ncclProfileColl), 6U) << "two of each of the three";
    EXPECT_EQ(count(ncclProfileCollApi), version() >= 5 ? 6U : 0U);
    EXPECT_EQ(count(ncclProfileGroupApi), version() >= 5 ? 5U : 0U) << "three calls alone, a group of each rank";
  }
}

TEST_F(ProfilersOfEachVersion, DoNoHarmWhereTheyRefuseAndGiveNoHandles) {
  profiler_.fail(0, true, true);
  withComm(2, [&](Member& m) {
    const Ints in(m.gpu, kToldCount, 1);
    EXPECT_EQ(ncclAllReduce(in.at(), in.at(), kToldCount, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
    m.sync();
  });
  EXPECT_EQ(profiler_.records("stop").size(), 0U);
  EXPECT_EQ(count(ncclProfileColl), 2U);
}

}  // namespace
}  // namespace tutti::comm
