// What a profiler plugin hears of calls, groups, launches and replays: a plugin of the newest version, which the
// environment of this program names.
#include <barrier>
#include <map>
#include <set>
#include <string>

#include "comm/graph.h"
#include "comm/profiled.h"
#include "comm/world.h"
#include "support/log_capture.h"
#include "support/scoped_log.h"

namespace tutti::comm {
namespace {

using test::Ints;
using test::Member;
using test::Recording;
using test::withComm;
using Record = test::RecordedProfiler::Record;

constexpr std::size_t kCount = 300;
constexpr int kAll = (1 << 15) - 1;

using ProfiledComms = test::Profiled;

bool begins(const std::string& text, const std::string& with) {
  return text.compare(0, with.size(), with) == 0;
}

ncclResult_t allReduce(const Member& m, const Ints& in, const Ints& out) {
  return ncclAllReduce(in.at(), out.at(), kCount, ncclInt32, ncclSum, m.comm, m.stream());
}

TEST_F(ProfiledComms, AreToldFromInitToFinalize) {
  const test::ScopedLog level("INFO");
  withComm(3, [](Member&) {});
  std::set<int> ranks;
  for (const Record& one : profiler_.records("init")) {
    ranks.insert(one.rank);
    EXPECT_STREQ(one.text, "name=NULL hasId=1 nodes=1 ranks=3");
  }
  EXPECT_EQ(ranks, (std::set<int>{0, 1, 2}));
  EXPECT_EQ(profiler_.records("finalize").size(), 3U);
  const std::string log = test::capturedText();
  for (const char* line :
       {"PROFILER/Plugin: Loaded TestProfiler (v6)", "Successfully loaded external profiler plugin /",
        "Profiler event mask: 0x7fff (32767) - Enabled: Group Coll P2p ProxyOp ProxyStep",
        "PROFILER/Plugin: Closing profiler plugin TestProfiler"}) {
    EXPECT_NE(log.find(line), std::string::npos) << line;
  }
}

struct Collective {
  const char* name;
  std::function<ncclResult_t(const Member&, const Ints&, const Ints&)> call;
  const char* asCalled;
  const char* asCarriedOut;  ///< after the sequence number
};

std::vector<Collective> collectives() {
  return {
      {"AllReduce", allReduce, "func=AllReduce count=300 type=ncclInt32 root=0",
       "func=AllReduce count=300 root=0 type=ncclInt32"},
      {"Reduce",
       [](const Member& m, const Ints& in, const Ints& out) {
         return ncclReduce(in.at(), out.at(), kCount, ncclInt32, ncclSum, 1, m.comm, m.stream());
       },
       "func=Reduce count=300 type=ncclInt32 root=1", "func=Reduce count=300 root=1 type=ncclInt32"},
      {"Broadcast",
       [](const Member& m, const Ints& in, const Ints& out) {
         return ncclBroadcast(in.at(), out.at(), kCount, ncclInt32, 1, m.comm, m.stream());
       },
       "func=Broadcast count=300 type=ncclInt32 root=1", "func=Broadcast count=1200 root=1 type=ncclInt8"},
      {"AllGather",
       [](const Member& m, const Ints& in, const Ints& out) {
         return ncclAllGather(in.at(), out.at(), kCount / 2, ncclInt32, m.comm, m.stream());
       },
       "func=AllGather count=150 type=ncclInt32 root=0", "func=AllGather count=600 root=0 type=ncclInt8"},
      {"ReduceScatter",
       [](const Member& m, const Ints& in, const Ints& out) {
         return ncclReduceScatter(in.at(), out.at(), kCount / 2, ncclInt32, ncclSum, m.comm, m.stream());
       },
       "func=ReduceScatter count=150 type=ncclInt32 root=0", "func=ReduceScatter count=150 root=0 type=ncclInt32"},
  };
}

TEST_F(ProfiledComms, HearOfEveryCollectiveAsCalledAndAsCarriedOut) {
  for (const Collective& one : collectives()) {
    SCOPED_TRACE(one.name);
    hear(kAll);
    withComm(2, [&](Member& m) {
      const Ints in(m.gpu, kCount, 1);
      const Ints out(m.gpu, kCount, 0);
      for (int i = 0; i < 2; ++i) EXPECT_EQ(one.call(m, in, out), ncclSuccess);
      m.sync();
    });
    expectWhole();
    for (const std::string& text : texts(ncclProfileCollApi)) EXPECT_TRUE(begins(text, one.asCalled)) << text;
    EXPECT_EQ(count(ncclProfileGroupApi), 4U);
    EXPECT_EQ(count(ncclProfileCollApi), 4U);
    EXPECT_EQ(count(ncclProfileKernelLaunch), 4U);
    EXPECT_EQ(count(ncclProfileGroup), 4U);
    std::map<int, int> next;
    const auto colls = profiler_.records("start", ncclProfileColl);
    ASSERT_EQ(colls.size(), 4U);
    for (const Record& coll : colls) {
      const std::string text = coll.text;
      const std::string number = "seq=" + std::to_string(next[coll.rank]++) + " ";
      EXPECT_TRUE(begins(text, number + one.asCarriedOut)) << text;
      EXPECT_EQ(text.find("channels=0"), std::string::npos) << text;
      EXPECT_EQ(text.find("warps=0"), std::string::npos) << text;
      EXPECT_EQ(text.find("UNKNOWN"), std::string::npos) << text;
      EXPECT_EQ(text.find("group=0"), std::string::npos) << text;
      EXPECT_EQ(typeOfParent(coll), ncclProfileCollApi);
    }
    for (const Record& launch : profiler_.records("start", ncclProfileKernelLaunch)) {
      EXPECT_EQ(typeOfParent(launch), ncclProfileGroupApi);
    }
    for (const std::string& text : texts(ncclProfileGroupApi)) EXPECT_EQ(text, "captured=0 depth=1");
  }
}

TEST_F(ProfiledComms, HearOfACallOutsideAGroupInOrder) {
  hear(kAll & ~ncclProfileKernelCh);  // which another thread tells
  withComm(2, [&](Member& m) {
    const Ints in(m.gpu, kCount, 1);
    EXPECT_EQ(allReduce(m, in, in), ncclSuccess);
    m.sync();
  });
  std::map<long, int> contexts;
  std::vector<std::string> heard;
  for (const Record& one : profiler_.records()) {
    const std::string call = one.call;
    if (call == "start") contexts[one.handle] = one.context;
    const int context = call == "start" ? one.context : contexts[one.handle];
    if (context != profiler_.records("init").front().context) continue;
    heard.push_back(call == "stop" ? call : call + " " + std::to_string(one.type));
  }
  EXPECT_EQ(heard, (std::vector<std::string>{"start 256", "state 23", "start 512", "stop", "state 24", "start 1",
                                             "start 2", "start 2048", "stop", "stop", "stop", "stop"}));
}

TEST_F(ProfiledComms, HearOfMessagesAndWhatIsMadeOfThem) {
  withComm(2, [&](Member& m) {
    const Ints in(m.gpu, kCount, 1);
    const Ints out(m.gpu, kCount, 0);
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclSend(in.at(), kCount, ncclInt32, 1 - m.rank, m.comm, m.stream()), ncclSuccess);
    EXPECT_EQ(ncclRecv(out.at(), kCount, ncclInt32, 1 - m.rank, m.comm, m.stream()), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    m.sync();
  });
  expectWhole();
  EXPECT_EQ(count(ncclProfileP2pApi), 4U);
  EXPECT_EQ(count(ncclProfileCollApi), 0U);
  EXPECT_EQ(count(ncclProfileGroupApi), 2U);
  const auto messages = profiler_.records("start", ncclProfileP2p);
  ASSERT_EQ(messages.size(), 4U);
  for (const Record& one : messages) {
    const std::string text = one.text;
    EXPECT_NE(text.find("count=300 peer=" + std::to_string(1 - one.rank) + " type=ncclInt32"), std::string::npos);
    EXPECT_EQ(text.find("channels=0"), std::string::npos) << text;
    EXPECT_EQ(typeOfParent(one), ncclProfileP2pApi);
  }

  hear(ncclProfileP2p);
  withComm(2, [&](Member& m) {
    const Ints in(m.gpu, kCount, 1);
    const Ints out(m.gpu, kCount, 0);
    EXPECT_EQ(ncclAlltoAll(in.at(), out.at(), kCount / 2, ncclInt32, m.comm, m.stream()), ncclSuccess);
    m.sync();
  });
  expectWhole();
  EXPECT_EQ(count(ncclProfileP2p), 8U) << "two sends and two receives of each rank";
  for (const Record& one : profiler_.records("start", ncclProfileP2p)) {
    EXPECT_EQ(typeOfParent(one), ncclProfileCollApi);
  }
}

TEST_F(ProfiledComms, HearOfOneGroupHoweverDeep) {
  withComm(2, [&](Member& m) {
    const Ints in(m.gpu, kCount, 1);
    const Ints other(m.gpu, kCount, 1);
    ncclGroupStart();
    ncclGroupStart();
    EXPECT_EQ(allReduce(m, in, in), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    EXPECT_EQ(allReduce(m, other, other), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    m.sync();
  });
  expectWhole();
  EXPECT_EQ(texts(ncclProfileGroupApi), (std::vector<std::string>(2, "captured=0 depth=2")));
  EXPECT_EQ(profiler_.records("state", ncclProfilerGroupEndApiStart).size(), 2U);
  EXPECT_EQ(count(ncclProfileCollApi), 4U);
  EXPECT_EQ(count(ncclProfileColl), 4U);
  EXPECT_EQ(count(ncclProfileGroup), 2U);
}

TEST_F(ProfiledComms, HearOfWhatTheyWantWhenTheyWantIt) {
  withComm(2, [&](Member& m) {
    const Ints in(m.gpu, kCount, 1);
    static std::barrier together(2);
    const auto callWith = [&](int mask) {
      together.arrive_and_wait();
      if (m.rank == 0) hear(mask);
      together.arrive_and_wait();
      EXPECT_EQ(allReduce(m, in, in), ncclSuccess);
      m.sync();
      together.arrive_and_wait();
    };
    const auto expect = [&](int mask, const std::set<long>& kinds) {
      callWith(mask);
      if (m.rank != 0) return;
      std::set<long> heard;
      for (const Record& one : profiler_.records("start")) heard.insert(one.type);
      EXPECT_EQ(heard, kinds) << "mask " << mask;
    };
    expect(0, {});
    expect(ncclProfileProxyCtrl, {});
    expect(ncclProfileKernelLaunch, {ncclProfileGroupApi, ncclProfileKernelLaunch});
    expect(ncclProfileCollApi, {ncclProfileGroupApi, ncclProfileCollApi});
    expect(ncclProfileP2p, {ncclProfileGroupApi, ncclProfileGroup});
    expect(ncclProfileColl, {ncclProfileGroupApi, ncclProfileCollApi, ncclProfileGroup, ncclProfileColl});
  });
  const auto colls = texts(ncclProfileColl);
  ASSERT_EQ(colls.size(), 2U);
  for (const std::string& text : colls) EXPECT_TRUE(begins(text, "seq=5 ")) << "unheard ones count: " << text;
}

TEST_F(ProfiledComms, HearOfWholeEventsWhileTheMaskChangesAtAnyTime) {
  constexpr int kRounds = 40;
  callWhileMasksChange(kRounds);
  awaitFreed();
  expectWhole();
  EXPECT_GT(count(ncclProfileColl), 0U);
  EXPECT_LT(count(ncclProfileColl), 4U * 3 * kRounds) << "some were not wanted";
  EXPECT_GT(count(ncclProfileKernelCh), 0U);
}

TEST_F(ProfiledComms, HearTheEndOfWhatFails) {
  for (int rank = 0; rank < 2; ++rank) test::expectLog("invalid root 7");
  withComm(2, [&](Member& m) {
    const Ints in(m.gpu, kCount, 1);
    ncclGroupStart();
    EXPECT_EQ(allReduce(m, in, in), ncclSuccess);
    EXPECT_EQ(ncclBroadcast(in.at(), in.at(), kCount, ncclInt32, 7, m.comm, m.stream()), ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  });
  expectWhole();
  EXPECT_EQ(count(ncclProfileGroupApi), 2U);
  EXPECT_EQ(count(ncclProfileCollApi), 2U);
  EXPECT_EQ(count(ncclProfileColl), 0U);
  EXPECT_EQ(count(ncclProfileKernelLaunch), 0U);
}

TEST_F(ProfiledComms, HearOfEveryReplayOfAGraph) {
  constexpr int kReplays = 3;
  withComm(2, [&](Member& m) {
    const Ints in(m.gpu, kCount, 1);
    const auto recording = Recording::of(m.stream(), [&] { EXPECT_EQ(allReduce(m, in, in), ncclSuccess); });
    if (m.rank == 0) {
      for (const Record& one : profiler_.records("start", ncclProfileColl)) EXPECT_NE(one.rank, 0) << "no replay yet";
    }
    for (int i = 0; i < kReplays; ++i) recording->launch(m.stream());
    m.sync();
  });
  awaitFreed();
  expectWhole();
  for (const std::string& text : texts(ncclProfileGroupApi)) EXPECT_EQ(text, "captured=1 depth=1");
  EXPECT_EQ(count(ncclProfileCollApi), 2U);
  EXPECT_EQ(count(ncclProfileKernelLaunch), 2U);
  EXPECT_EQ(count(ncclProfileColl), 2U * kReplays);
  for (const Record& one : profiler_.records("start", ncclProfileColl)) {
    EXPECT_EQ(typeOfParent(one), ncclProfileCollApi);
  }
}

TEST_F(ProfiledComms, HearOfCallsThatGoOnInTheBackground) {
  const ncclUniqueId id = test::newId();
  test::runRanks(2, [&](int rank) {
    test::useDevice(rank);
    const gpu::Device& gpu = test::device(rank);
    const gpu::Stream stream = gpu::Stream::create(gpu).value();
    const Ints in(gpu, kCount, 1);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm = nullptr;
    const ncclResult_t begun = ncclCommInitRankConfig(&comm, 2, id, rank, &config);
    EXPECT_TRUE(begun == ncclSuccess || begun == ncclInProgress);
    EXPECT_EQ(test::settle(comm), ncclSuccess);
    // Has to be connected first, which goes on in the background.
    const ncclResult_t sent = [&] {
      ncclGroupStart();
      ncclSend(in.at(), kCount / 2, ncclInt32, 1 - rank, comm, stream.get());
      ncclRecv(in.at(kCount / 2), kCount / 2, ncclInt32, 1 - rank, comm, stream.get());
      return ncclGroupEnd();
    }();
    EXPECT_TRUE(sent == ncclSuccess || sent == ncclInProgress);
    EXPECT_EQ(test::settle(comm), ncclSuccess);
    EXPECT_TRUE(gpu::waitStream(gpu, stream.get(), nullptr).ok());
    const ncclResult_t finalized = ncclCommFinalize(comm);
    EXPECT_TRUE(finalized == ncclSuccess || finalized == ncclInProgress);
    EXPECT_EQ(test::settle(comm), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
  expectWhole();
  EXPECT_EQ(count(ncclProfileGroupApi), 2U);
  EXPECT_EQ(count(ncclProfileP2p), 4U);
  EXPECT_EQ(count(ncclProfileKernelLaunch), 2U);
}

TEST_F(ProfiledComms, OfOneRankHaveCallsAndNothingToCarryOut) {
  withComm(1, [&](Member& m) {
    const Ints in(m.gpu, kCount, 1);
    const Ints out(m.gpu, kCount, 0);
    EXPECT_EQ(allReduce(m, in, out), ncclSuccess);
    m.sync();
  });
  expectWhole();
  EXPECT_EQ(count(ncclProfileGroupApi), 1U);
  EXPECT_EQ(count(ncclProfileCollApi), 1U);
  EXPECT_EQ(count(ncclProfileColl), 0U);
}

TEST_F(ProfiledComms, GoOnWithoutAPluginThatRefuses) {
  const test::ScopedLog level("INFO");
  profiler_.fail(ncclSystemError, false, false);
  withComm(2, [&](Member& m) {
    const Ints in(m.gpu, kCount, 1);
    EXPECT_EQ(allReduce(m, in, in), ncclSuccess);
    m.sync();
  });
  EXPECT_EQ(profiler_.records("init").size(), 2U);
  EXPECT_EQ(profiler_.records("start").size(), 0U);
  EXPECT_EQ(profiler_.records("finalize").size(), 0U);
  const std::string said = test::capturedText();
  const std::size_t at = said.find("Profiler init failed with error '2': ncclSystemError. Continue without profiler.");
  ASSERT_NE(at, std::string::npos);
  const std::string which = said.substr(at, said.find('\n', at) - at);
  EXPECT_NE(which.find(" It is the profiler TestProfiler (v"), std::string::npos) << which;
  EXPECT_NE(which.find("/libnccl-profiler-testv"), std::string::npos) << which;
}

TEST_F(ProfiledComms, ObeyWhatThePluginSetsInItsInit) {
  const auto protocol = [this] {
    hear(ncclProfileColl);
    withComm(2, [](Member& m) {
      const Ints in(m.gpu, kCount, 1);
      EXPECT_EQ(allReduce(m, in, in), ncclSuccess);
      m.sync();
    });
    const std::string text = texts(ncclProfileColl).at(0);
    return text.substr(text.find("proto="), text.find(" send=") - text.find("proto="));
  };
  EXPECT_EQ(protocol(), "proto=SIMPLE");
  {
    const test::ScopedEnv sets("TEST_PROFILER_PROTO", "LL");
    EXPECT_EQ(protocol(), "proto=LL") << "of the first communicator";
  }
  EXPECT_EQ(protocol(), "proto=LL") << "and of later ones";
  ::unsetenv("NCCL_PROTO");
}

TEST_F(ProfiledComms, BearPluginsThatFailAndGiveNoHandles) {
  profiler_.fail(0, true, true);
  withComm(2, [&](Member& m) {
    const Ints in(m.gpu, kCount, 1);
    EXPECT_EQ(allReduce(m, in, in), ncclSuccess);
    m.sync();
  });
  EXPECT_EQ(count(ncclProfileColl), 2U);
  EXPECT_EQ(profiler_.records("stop").size(), 0U) << "of no interest, so nothing more is said of them";
  EXPECT_EQ(profiler_.records("state").size(), 0U);
}

}  // namespace
}  // namespace tutti::comm
