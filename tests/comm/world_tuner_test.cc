// Tuner plugins as applications meet them: what was chosen is what runs, and errors come out where they belong. The
// meson.build gives NCCL_TUNER_PLUGIN.
#include <algorithm>
#include <array>
#include <barrier>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>

#include "base/log.h"
#include "comm/state/communicator.h"
#include "comm/tuning/constants.h"
#include "comm/world.h"
#include "plugin/tuner_fixture.h"
#include "support/scoped_log.h"

namespace tutti::comm {
namespace {

using test::TunerRules;

/// Of the plugin, which is called …-testvN.so.
int version() {
  const std::string file = std::getenv("NCCL_TUNER_PLUGIN");
  return file.at(file.size() - 4) - '0';
}
std::string tunerName() {
  return "tunerv" + std::to_string(version());
}
/// "tunerv6 (v6"
std::string tunerWithVersion() {
  return tunerName() + " (v" + std::to_string(version());
}

std::size_t linesWith(std::string_view part) {
  const std::vector<std::string> lines = test::capturedLog();
  return static_cast<std::size_t>(std::count_if(
      lines.begin(), lines.end(), [&](const std::string& line) { return line.find(part) != std::string::npos; }));
}

ncclResult_t sum(const test::Member& m, const test::Ints& buffer, std::size_t count) {
  return ncclAllReduce(buffer.at(), buffer.at(), count, ncclInt32, ncclSum, m.comm, m.stream());
}

/// One that has to come to the right result.
void allReduce(const test::Member& m, std::size_t count) {
  const test::Ints buffer(m.gpu, test::countUp(m.rank, count));
  ASSERT_EQ(sum(m, buffer, count), ncclSuccess);
  m.sync();
  const std::vector<int> got = buffer.read();
  EXPECT_EQ(got.front(), m.size * (m.size - 1) / 2);
  EXPECT_EQ(got.back(), m.size * (m.size - 1) / 2 + m.size * (static_cast<int>(count) - 1));
}

TEST(WorldTuner, AForcedChoiceIsWhatRuns) {
  for (const auto& [rules, line] : {std::pair{"take=0/0", "Algo TREE proto LL "},
                                    {"take=1/2", "Algo RING proto SIMPLE"},
                                    {"take=1/0,channels=1", "Algo RING proto LL channel{Lo..Hi}={0..0}"},
                                    {"take=1/2,channels=3", "Algo RING proto SIMPLE channel{Lo..Hi}={0..2}"}}) {
    SCOPED_TRACE(rules);
    const test::ScopedLog log("INFO", "TUNING");
    const TunerRules given(rules);
    test::withComm(2, [](test::Member& m) { allReduce(m, 1 << 16); });
    EXPECT_GE(linesWith(std::string("AllReduce: 262144 Bytes -> ") + line), 1u) << test::capturedText();
    EXPECT_GE(linesWith("by the tuner plugin; the model expects"), 1u);
    EXPECT_FALSE(test::tunerIsLoaded(version())) << "the last communicator closes it";
  }
}

/// Does `work` between two communicators' lives, with what the plugin has recorded after all ranks have done theirs.
TestTunerRecord recorded(const std::string& rules, int ranks, const std::function<void(test::Member&)>& work) {
  const TunerRules given(rules);
  TestTunerRecord record{};
  std::barrier meet(ranks);
  test::withComm(ranks, [&](test::Member& m) {
    work(m);
    meet.arrive_and_wait();
    if (m.rank == 0) record = test::recordOf(version());
    meet.arrive_and_wait();
  });
  EXPECT_EQ(record.strangers, 0);
  return record;
}

TEST(WorldTuner, IsAskedOncePerCollectiveWithItsFactsAndNeverForMessages) {
  const TestTunerRecord record = recorded("", 2, [](test::Member& m) {
    const test::Ints in(m.gpu, 100, 1), out(m.gpu, 200, 0);
    ASSERT_EQ(ncclAllGather(in.at(), out.at(), 100, ncclInt32, m.comm, m.stream()), ncclSuccess);
    ASSERT_EQ(ncclAlltoAll(out.at(), out.at(100), 50, ncclInt32, m.comm, m.stream()), ncclSuccess);
    m.sync();
  });
  EXPECT_EQ(record.inits, 2);
  EXPECT_EQ(record.questions, 2) << "once on each rank";
  EXPECT_EQ(record.func, ncclFuncAllGather);
  EXPECT_EQ(record.bytes, 800u) << "of all ranks together";
  EXPECT_EQ(record.pipeOps, 1);
  EXPECT_EQ(record.registered, version() == 3 ? -1 : 0) << "version 3 is not told";
  EXPECT_EQ(record.channelsIn, 0);
  EXPECT_EQ(record.chunkQuestions, version() >= 6 ? 2 : 0);
  if (version() == 2) {
    EXPECT_EQ(record.algorithmIn, NCCL_ALGO_UNDEF);
    EXPECT_EQ(record.protocolIn, NCCL_PROTO_UNDEF);
    EXPECT_EQ(record.collNet, 0);
    EXPECT_EQ(record.nvls, 0);
    return;
  }
  EXPECT_EQ(record.nAlgorithms, NCCL_NUM_ALGORITHMS);
  EXPECT_EQ(record.nProtocols, NCCL_NUM_PROTOCOLS);
  EXPECT_EQ(record.times[0][0], -1) << "no tree gathers";
  EXPECT_GT(record.times[1][2], 0);
}

TEST(WorldTuner, IsToldAllOfItsCommunicator) {
  std::uint64_t commId = 0;
  const TestTunerRecord record = recorded("", 3, [&](test::Member& m) {
    if (m.rank == 0) commId = m.comm->identity.commId;
  });
  EXPECT_EQ(record.inits, 3);
  EXPECT_EQ(record.nRanks, 3u);
  EXPECT_EQ(record.nNodes, 1u);
  const bool toldMore = version() >= 5;
  EXPECT_NE(commId, 0u);
  EXPECT_EQ(record.commId, toldMore ? commId : 0);
  using Domains = std::array<int, 3>;
  EXPECT_EQ(std::bit_cast<Domains>(record.domains), toldMore ? (Domains{1, 3, 3}) : Domains{});
  const topo::costs::Constants usual = toldMore ? usualConstants(device::World::Host) : topo::costs::Constants{};
  EXPECT_TRUE(std::bit_cast<topo::costs::Constants>(record.constants) == usual);
}

TEST(WorldTuner, HearsOfRegisteredBuffersAndAggregatedCollectives) {
  const TestTunerRecord record = recorded("", 2, [](test::Member& m) {
    const test::Ints buffer(m.gpu, 64, 1);
    void* handle = nullptr;
    ASSERT_EQ(ncclCommRegister(m.comm, buffer.at(), 256, &handle), ncclSuccess);
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (int i = 0; i < 200; ++i) ASSERT_EQ(sum(m, buffer, 64), ncclSuccess);
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    m.sync();
    ASSERT_EQ(ncclCommDeregister(m.comm, handle), ncclSuccess);
  });
  EXPECT_EQ(record.questions, 400);
  EXPECT_EQ(record.registered, version() == 2 ? 0 : version() == 3 ? -1 : 1) << "since version 4";
  EXPECT_GT(record.pipeOps, 1);
}

TEST(WorldTuner, CutsTheChunksThatRun) {
  const test::ScopedLog log("INFO", "TUNING");
  const TestTunerRecord record = recorded("take=0/2,size=3000", 2, [](test::Member& m) { allReduce(m, 1 << 16); });
  EXPECT_EQ(record.chunkQuestions, 2);
  EXPECT_EQ(record.chunkAlgorithm, NCCL_ALGO_TREE);
  EXPECT_EQ(record.chunkProtocol, NCCL_PROTO_SIMPLE);
  EXPECT_GE(record.chunkChannels, 1);
  EXPECT_GT(record.chunkIn, 3000u);
  EXPECT_EQ(linesWith("chunk 2560, by the tuner plugin"), 1u) << "whole grains: " << test::capturedText();
}

TEST(WorldTuner, ForbiddingEverythingIsAnErrorAndTheCommunicatorLivesOn) {
  test::allowLog("No algorithm/protocol available for function AllReduce");
  const TunerRules given("forbid");
  test::withComm(2, [](test::Member& m) {
    const test::Ints buffer(m.gpu, 10, m.rank);
    EXPECT_EQ(sum(m, buffer, 10), ncclInternalError);
    const std::string said = ncclGetLastError(m.comm);
    EXPECT_NE(said.find("The tuner " + tunerWithVersion() + " of "), std::string::npos) << said;
    EXPECT_NE(said.find("has forbidden all"), std::string::npos) << said;
    ASSERT_EQ(ncclAlltoAll(buffer.at(), buffer.at(4), 1, ncclInt32, m.comm, m.stream()), ncclSuccess);
    m.sync();
  });
}

TEST(WorldTuner, ErrorsFailTheCallThatLedToThem) {
  test::allowLog("tuner " + tunerName());
  test::allowLog("went wrong");
  for (const char* call : {"info", "chunk"}) {
    if (version() < 6 && call == std::string("chunk")) continue;
    const TunerRules given(std::string("take=1/2,") + call);
    test::withComm(2, [call](test::Member& m) {
      const test::Ints buffer(m.gpu, 10, m.rank);
      EXPECT_EQ(sum(m, buffer, 10), ncclSystemError);
      const std::string said = ncclGetLastError(m.comm);
      EXPECT_NE(said.find(", rank " + std::to_string(m.rank) + " of 2"), std::string::npos) << said;
      EXPECT_NE(said.find(std::string("it said: ") + call + " went wrong"), std::string::npos) << said;
    });
  }
}

TEST(WorldTuner, AFailingInitFailsTheCommunicatorOnAllRanks) {
  test::allowLog("");  // and what follows from it
  const TunerRules given("init");
  const ncclUniqueId id = test::newId();
  test::runRanks(2, [&](int rank) {
    test::useDevice(rank);
    ncclComm_t comm = nullptr;
    EXPECT_NE(ncclCommInitRank(&comm, 2, id, rank), ncclSuccess);
  });
  EXPECT_NE(test::capturedText().find("init failed with ncclSystemError; it said: init went wrong"), std::string::npos);
  EXPECT_FALSE(test::tunerIsLoaded(version()));
}

TEST(WorldTuner, ChangedConstantsChangeTheDecisionOfThatCommunicatorOnly) {
  const auto algorithms = [](const char* rules) {
    const test::ScopedLog log("INFO", "TUNING");
    const std::size_t before = test::capturedText().size();
    const TunerRules given(rules);
    test::withComm(2, [](test::Member& m) { allReduce(m, 256); });
    return test::capturedText().substr(before);
  };
  // All base latencies of rings that protocols have here; own algorithms follow them.
  const std::string usual = algorithms("");
  EXPECT_EQ(usual.find("-> Algo TREE"), std::string::npos) << usual;
  const std::string changed = algorithms("base=0/2/-500");
  EXPECT_NE(changed.find("-> Algo TREE proto SIMPLE"), std::string::npos) << changed;
  EXPECT_EQ(changed.find("by the tuner plugin"), std::string::npos) << "the model has decided";
  EXPECT_EQ(algorithms("").find("-> Algo TREE"), std::string::npos);
}

TEST(WorldTuner, TwoCommunicatorsShareTheLibraryAndEachHasItsContext) {
  const test::ScopedLog log("INFO");
  const TunerRules given("take=1/2");
  const ncclUniqueId id = test::newId();
  TestTunerRecord both{}, one{};
  std::barrier meet(2);
  test::withComm(2, [&](test::Member& m) {
    ncclComm_t other = nullptr;
    ASSERT_EQ(ncclCommInitRank(&other, 2, id, m.rank), ncclSuccess);
    const test::Ints buffer(m.gpu, 8, m.rank);
    meet.arrive_and_wait();
    both = test::recordOf(version());
    meet.arrive_and_wait();
    EXPECT_EQ(ncclCommDestroy(other), ncclSuccess);
    meet.arrive_and_wait();
    one = test::recordOf(version());
    meet.arrive_and_wait();
  });
  EXPECT_EQ(both.inits, 4);
  EXPECT_EQ(both.ends, 0);
  EXPECT_EQ(one.ends, 2);
  EXPECT_EQ(one.strangers, 0);
  EXPECT_EQ(linesWith("TUNER/Plugin: Using " + tunerWithVersion() + ")"), 1u);
  EXPECT_EQ(linesWith("TUNER/Plugin: Closing tuner: '" + tunerName() + "'"), 1u);
}

TEST(WorldTuner, WhatItSetsInItsInitHoldsForTheFirstCommunicatorAndForLaterOnes) {
  const auto protocols = [](const char* rules) {
    const test::ScopedLog log("INFO", "TUNING,ENV");
    const std::size_t before = test::capturedText().size();
    const TunerRules given(rules);
    test::withComm(2, [](test::Member& m) { allReduce(m, 1 << 16); });
    return test::capturedText().substr(before);
  };
  EXPECT_NE(protocols("").find(" proto SIMPLE "), std::string::npos);
  const std::string first = protocols("proto=LL");
  EXPECT_NE(first.find(" proto LL "), std::string::npos) << first;
  EXPECT_EQ(linesWith("NCCL_PROTO set by tuner " + tunerName() + " to LL"), 1u) << first;
  EXPECT_NE(protocols("").find(" proto LL "), std::string::npos);
  ::unsetenv("NCCL_PROTO");
  EXPECT_NE(protocols("").find(" proto SIMPLE "), std::string::npos);
}

TEST(WorldTuner, RanksWithDifferentAnswersAreNamedWhereTheyWaitForEachOther) {
  const test::ScopedEnv stall("TUTTI_STALL_SEC", "1");
  test::allowLog("");  // and what follows from the aborts
  for (const char* rules : {"take=1/2|take=0/2", "take=1/2|take=1/0", "take=1/2,channels=1|take=1/2,channels=3"}) {
    SCOPED_TRACE(rules);
    const std::size_t before = test::capturedText().size();
    const auto said = [before] { return test::capturedText().substr(before); };
    const TunerRules given(rules);
    test::withComm(2, [&](test::Member& m) {
      const test::Ints buffer(m.gpu, 1 << 16, m.rank);
      EXPECT_EQ(sum(m, buffer, 1 << 16), ncclSuccess);
      const Deadline deadline = Deadline::in(std::chrono::seconds(30));
      while (said().find("Stall: ") == std::string::npos && !deadline.expired()) {
        std::this_thread::sleep_for(milliseconds(20));
      }
      EXPECT_EQ(ncclCommAbort(m.comm), ncclSuccess);
      m.comm = nullptr;
    });
    const bool first = said().find("Stall: rank 0 of 2 on host ") != std::string::npos;
    const bool second = said().find("Stall: rank 1 of 2 on host ") != std::string::npos;
    EXPECT_TRUE(first || second) << said();
    EXPECT_NE(said().find(first ? " rank 1 (host " : " rank 0 (host "), std::string::npos) << said();
  }
}

TEST(WorldTuner, ALoneRankLoadsNone) {
  const test::ScopedLog log("INFO");
  test::withComm(1, [](test::Member& m) { allReduce(m, 10); });
  EXPECT_EQ(linesWith("TUNER/Plugin"), 0u);
}

}  // namespace
}  // namespace tutti::comm
