#include "comm/tuning/tuning.h"

#include <gtest/gtest.h>

#include "base/settings/params.h"
#include "comm/settings/tuning_settings.h"
#include "comm/tuning/tuning_worlds.h"
#include "device/kernels/kernel_name.h"
#include "device/policy.h"
#include "support/log_capture.h"

namespace tutti::comm {
namespace {

using device::Algorithm;
using device::Func;
using device::PairMethod;
using device::Protocol;
using test::gpuInput;
using test::hostInput;
using test::restricted;

constexpr std::uint64_t kHuge = std::uint64_t{1} << 30;

Choice chosen(const TuningInput& input, const Request& request) {
  const auto choice = chooseCollective(makeTuning(input), request);
  EXPECT_TRUE(choice.ok());
  return choice.ok() ? choice.value() : Choice{};
}

Request allReduceOf(std::uint64_t bytes) {
  return {.func = device::Func::AllReduce, .op = device::DevOp::Sum, .type = ncclFloat32, .bytes = bytes};
}

std::vector<TuningInput> someWorlds() {
  std::vector<TuningInput> worlds;
  for (const int n : {2, 3, 4, 8}) {
    worlds.push_back(test::gpuInput(n));
    worlds.push_back(test::hostInput(n));
  }
  TuningInput pci = test::gpuInput(4);
  pci.ranks.path = PathClass::Pci;
  pci.ranks.ll128Safe = false;
  pci.speeds = assumedSpeeds(pci.ranks, 8, true);
  worlds.push_back(pci);
  TuningInput nodes = test::gpuInput(16);
  nodes.ranks.nNodes = 2;
  nodes.speeds = assumedSpeeds(nodes.ranks, 8, false);
  worlds.push_back(nodes);
  return worlds;
}

TEST(Tuning, TinyGoesByLlOnGpusAndHugeBySimpleEverywhere) {
  for (const TuningInput& world : someWorlds()) {
    const int n = world.ranks.nRanks;
    const bool onHost = world.policy.world == device::World::Host;  // where receivers read the sender's memory
    EXPECT_EQ(chosen(world, allReduceOf(8)).protocol, onHost ? device::Protocol::Simple : device::Protocol::LL)
        << n << " ranks";
    EXPECT_EQ(chosen(world, allReduceOf(kHuge)).protocol, device::Protocol::Simple) << n << " ranks";
  }
}

TEST(Tuning, RanksThatShareAGpuReadItsMemoryNoMoreThanTheyMust) {
  TuningInput apart = test::gpuInput(2);
  apart.speeds.mesh = apart.speeds.ring.intra = 5000;  // what a path within a device is taken to carry
  TuningInput sharing = apart;
  sharing.ranks.mostOnOneDevice = 2;
  constexpr std::size_t kCount = 8 << 20;
  EXPECT_EQ(chosen(apart, allReduceOf(kCount)).algorithm, device::Algorithm::OneShot);
  EXPECT_NE(chosen(sharing, allReduceOf(kCount)).algorithm, device::Algorithm::OneShot) << "it reads a quarter more";
  EXPECT_EQ(chosen(sharing, allReduceOf(64)).algorithm, chosen(apart, allReduceOf(64)).algorithm);
}

TEST(Tuning, OneShotServesTheSmallestWhereEverybodyReachesEverybody) {
  for (const int n : {2, 4, 8}) {
    // Two ranks have two hops in a ring, and a kernel that begins earlier.
    EXPECT_EQ(chosen(test::gpuInput(n), allReduceOf(64)).algorithm,
              n == 2 ? device::Algorithm::Ring : device::Algorithm::OneShot)
        << n << " ranks";
    // On the host hops of little data are cheap, and a ring has fewer connections to look after.
    EXPECT_EQ(chosen(test::hostInput(n), allReduceOf(64)).algorithm, device::Algorithm::Ring) << n << " ranks";
    EXPECT_EQ(chosen(test::hostInput(n), allReduceOf(16 << 10)).algorithm, device::Algorithm::OneShot) << n << " ranks";
    EXPECT_NE(chosen(test::gpuInput(n), allReduceOf(kHuge)).algorithm, device::Algorithm::OneShot) << n << " ranks";
  }
  EXPECT_NE(chosen(test::hostInput(8), allReduceOf(kHuge)).algorithm, device::Algorithm::OneShot);
  TuningInput separate = test::gpuInput(8);
  separate.speeds.mesh = 0;
  EXPECT_EQ(chosen(separate, allReduceOf(64)).algorithm, device::Algorithm::Ring);
}

TEST(Tuning, TheSoftwareGpuNeverPacksLinesWhereReceiversReadInPlace) {
  for (const int n : {2, 3, 4, 8}) {
    for (const Func func : {Func::AllReduce, Func::AllGather, Func::ReduceScatter, Func::Broadcast}) {
      for (std::uint64_t bytes = 64; bytes <= 1 << 20; bytes = bytes * 5 / 4) {
        TuningInput apart = test::hostInput(n);
        apart.speeds.mesh = 0;
        for (const TuningInput& world : {test::hostInput(n), apart}) {
          const Request request{.func = func, .op = device::DevOp::Sum, .type = ncclFloat32, .bytes = bytes};
          EXPECT_EQ(chosen(world, request).protocol, Protocol::Simple)
              << device::funcName(func) << " of " << bytes << " bytes, " << n << " ranks, mesh " << world.speeds.mesh;
        }
      }
    }
  }
}

TEST(Tuning, EstimatesGrowWithBytes) {
  for (const TuningInput& world : someWorlds()) {
    const Tuning tuning = makeTuning(world);
    double last = 0;
    for (std::uint64_t bytes = 1; bytes <= kHuge; bytes *= 4) {
      const auto choice = chooseCollective(tuning, allReduceOf(bytes));
      ASSERT_TRUE(choice.ok());
      EXPECT_GE(choice.value().microseconds, last * 0.8) << bytes << ": but for the tree's steps in efficiency";
      EXPECT_GE(choice.value().microseconds, choice.value().latencyUs);
      last = choice.value().microseconds;
    }
    EXPECT_GT(last, 100.0);
  }
}

TEST(Tuning, TheChoiceIsTheQuickestCandidate) {
  for (const TuningInput& world : someWorlds()) {
    const Tuning tuning = makeTuning(world);
    for (const device::Func func : {device::Func::Broadcast, device::Func::Reduce, device::Func::AllGather,
                                    device::Func::ReduceScatter, device::Func::AllReduce}) {
      for (std::uint64_t bytes = 1; bytes <= kHuge; bytes *= 32) {
        const Request request{.func = func, .type = ncclFloat32, .bytes = bytes};
        const auto choice = chooseCollective(tuning, request);
        ASSERT_TRUE(choice.ok());
        for (const Candidate& candidate : weigh(tuning, request)) {
          if (candidate.verdict != Verdict::Possible) continue;
          EXPECT_LE(choice.value().microseconds, candidate.microseconds);
          EXPECT_GT(candidate.microseconds, 0.0);
        }
      }
    }
  }
}

TEST(Tuning, ShapesStayWithinTheirBounds) {
  for (const TuningInput& world : someWorlds()) {
    const Tuning tuning = makeTuning(world);
    for (const device::Func func : {device::Func::Broadcast, device::Func::Reduce, device::Func::AllGather,
                                    device::Func::ReduceScatter, device::Func::AllReduce}) {
      for (std::uint64_t bytes = 1; bytes <= kHuge; bytes *= 8) {
        const Choice c = chooseCollective(tuning, {.func = func, .type = ncclInt8, .bytes = bytes}).value();
        const bool mesh = c.algorithm == device::Algorithm::OneShot || c.algorithm == device::Algorithm::Direct;
        const auto p = static_cast<std::size_t>(c.protocol);
        const std::uint32_t slot = world.slotBytes[mesh ? 1 : 0][p];
        EXPECT_GE(c.nChannels, 1u);
        EXPECT_LE(c.nChannels, world.nChannels);
        EXPECT_TRUE(c.nThreads == 1 || c.nThreads % 32 == 0);
        EXPECT_LE(c.nThreads, world.policy.collThreads[p]);
        EXPECT_GT(c.chunkBytes, 0u);
        EXPECT_EQ(c.chunkBytes % device::kGrainBytes, 0u);
        EXPECT_LE(c.chunkBytes, device::slotContent(c.protocol, slot) * c.stepsPerChunk);
        EXPECT_LE(c.stepsPerChunk, device::kMaxStepsPerChunk);
      }
    }
  }
}

TEST(Tuning, FewBytesTakeFewChannelsAndThreads) {
  const TuningInput ring = test::restricted(test::gpuInput(4), "Ring", "Simple");
  EXPECT_EQ(chosen(ring, allReduceOf(4000)).nChannels, 1u);
  EXPECT_EQ(chosen(ring, allReduceOf(4000)).nThreads, 64u);
  EXPECT_EQ(chosen(ring, allReduceOf(kHuge)).nChannels, 8u);
  EXPECT_EQ(chosen(ring, allReduceOf(kHuge)).nThreads, 512u);
  EXPECT_LT(chosen(ring, allReduceOf(100 << 10)).nChannels, 8u);
}

TEST(Tuning, SlowLinksTakeFewerThreadsUnlessTheUserSaidHowMany) {
  TuningInput pci = test::restricted(test::gpuInput(4), "Ring", "Simple");
  pci.ranks.computeCapability = 70;
  pci.ranks.path = PathClass::Pci;
  pci.speeds = assumedSpeeds(pci.ranks, 8, true);
  EXPECT_EQ(chosen(pci, allReduceOf(kHuge)).nThreads, 256u);
  pci.threadsGiven = true;
  EXPECT_EQ(chosen(pci, allReduceOf(kHuge)).nThreads, 512u);
}

TEST(Tuning, TwoRanksExchangeWhatIsShortAndAllThatMemoryCarries) {
  TuningInput near = test::restricted(test::gpuInput(2), "Ring", "Simple");
  ASSERT_GT(near.speeds.mesh, 0);
  TuningInput far = near;
  far.speeds.mesh = 0;
  for (const std::uint64_t bytes : {std::uint64_t{8}, std::uint64_t{1} << 20, std::uint64_t{2} << 20, kHuge}) {
    EXPECT_EQ(chosen(near, allReduceOf(bytes)).pairMethod, device::PairMethod::Exchange) << bytes;
    EXPECT_EQ(chosen(far, allReduceOf(bytes)).pairMethod,
              bytes <= (1 << 20) ? device::PairMethod::Exchange : device::PairMethod::Ring)
        << bytes;
    EXPECT_EQ(chosen(near, {.func = device::Func::ReduceScatter, .bytes = bytes}).pairMethod, device::PairMethod::Ring)
        << bytes;
    EXPECT_EQ(chosen(test::restricted(test::gpuInput(3), "Ring", "Simple"), allReduceOf(bytes)).pairMethod,
              device::PairMethod::Ring)
        << bytes;
  }
}

TEST(Tuning, TwoRanksOfTheSoftwareGpuReduceInTwoShotsWhatNoCacheHolds) {
  const TuningInput pair = test::hostInput(2);
  for (const std::uint64_t bytes : {std::uint64_t{256} << 10, std::uint64_t{4} << 20, (std::uint64_t{16} << 20) - 4}) {
    EXPECT_EQ(chosen(pair, allReduceOf(bytes)).pairMethod, device::PairMethod::Exchange) << bytes;
  }
  for (const std::uint64_t bytes : {std::uint64_t{16} << 20, std::uint64_t{64} << 20, kHuge}) {
    const Choice choice = chosen(pair, allReduceOf(bytes));
    EXPECT_EQ(choice.algorithm, device::Algorithm::Direct) << bytes;
    EXPECT_EQ(choice.protocol, device::Protocol::Simple) << bytes;
    EXPECT_EQ(chosen(test::restricted(test::hostInput(2), "Ring", "Simple"), allReduceOf(bytes)).pairMethod,
              device::PairMethod::Exchange)
        << bytes;
  }
  TuningInput far = pair;
  far.speeds.mesh = 0;
  EXPECT_EQ(chosen(far, allReduceOf(kHuge)).algorithm, device::Algorithm::Ring) << "no memory joins them";
}

TEST(Tuning, TwoRanksReduceWhatIsLongInPlaceWhereTheirNetworkReceivesInPlace) {
  TuningInput far = test::restricted(test::gpuInput(2), "Ring", "Simple");
  far.inPlaceStep = 512 << 10;
  far.stepsInPlace = 2;
  EXPECT_EQ(chosen(far, allReduceOf(kHuge)).pairMethod, device::PairMethod::Exchange) << "memory joins them";
  far.speeds.mesh = 0;
  EXPECT_EQ(chosen(far, allReduceOf(512 << 10)).pairMethod, device::PairMethod::Exchange);
  const Choice choice = chosen(far, allReduceOf(1 << 20));
  EXPECT_EQ(choice.pairMethod, device::PairMethod::InPlace);
  EXPECT_EQ(choice.chunkBytes, 1U << 20);
  EXPECT_EQ(choice.stepsPerChunk, 2);
  EXPECT_EQ(chosen(far, {.func = device::Func::ReduceScatter, .bytes = kHuge}).pairMethod, device::PairMethod::Ring);
  TuningInput lines = test::restricted(test::gpuInput(2), "Ring", "LL");
  lines.inPlaceStep = far.inPlaceStep;
  lines.stepsInPlace = far.stepsInPlace;
  lines.speeds.mesh = 0;
  EXPECT_EQ(chosen(lines, allReduceOf(kHuge)).pairMethod, device::PairMethod::Ring) << "messages' LL has no place";
  far.ranks.nRanks = 3;
  EXPECT_EQ(chosen(far, allReduceOf(kHuge)).pairMethod, device::PairMethod::Ring);
}

TEST(Tuning, TheChainOfASmallBroadcastUsesSmallerChunks) {
  const TuningInput ring = test::restricted(test::gpuInput(8), "Ring", "Simple");
  const std::uint32_t slot = ring.slotBytes[0][2];
  EXPECT_LT(chosen(ring, {.func = device::Func::Broadcast, .bytes = 512 << 10}).chunkBytes, slot);
  EXPECT_EQ(chosen(ring, {.func = device::Func::Broadcast, .bytes = kHuge}).chunkBytes, slot);
}

TEST(Tuning, ForcedCombinationsAreTaken) {
  struct Case {
    const char* algo;
    const char* proto;
    device::Func func;
    device::Algorithm algorithm;
    device::Protocol protocol;
  };
  const Case kCases[] = {
      {"Ring", "LL", device::Func::AllReduce, device::Algorithm::Ring, device::Protocol::LL},
      {"Ring", "LL128", device::Func::Broadcast, device::Algorithm::Ring, device::Protocol::LL128},
      {"Tree", "LL128", device::Func::AllReduce, device::Algorithm::Tree, device::Protocol::LL128},
      {"Tree", "Simple", device::Func::AllReduce, device::Algorithm::Tree, device::Protocol::Simple},
      {"OneShot", "Simple", device::Func::AllReduce, device::Algorithm::OneShot, device::Protocol::Simple},
      {"Direct", "LL", device::Func::AllGather, device::Algorithm::Direct, device::Protocol::LL},
      {"Direct", "Simple", device::Func::AllReduce, device::Algorithm::Direct, device::Protocol::Simple},
      {"PAT", "", device::Func::ReduceScatter, device::Algorithm::Pat, device::Protocol::Simple},
  };
  for (const Case& c : kCases) {
    for (const TuningInput& world : {test::gpuInput(4), test::hostInput(4)}) {
      for (const std::uint64_t bytes : {std::uint64_t{16}, kHuge}) {
        const Choice choice = chosen(test::restricted(world, c.algo, c.proto), {.func = c.func, .bytes = bytes});
        EXPECT_EQ(choice.algorithm, c.algorithm) << c.algo << " " << c.proto;
        EXPECT_EQ(choice.protocol, c.protocol) << c.algo << " " << c.proto;
      }
    }
  }
}

TEST(Tuning, AListOfNamesExcludesWhatItDoesNotName) {
  for (std::uint64_t bytes = 1; bytes <= kHuge; bytes *= 16) {
    EXPECT_EQ(chosen(test::restricted(test::gpuInput(8), "Ring", ""), allReduceOf(bytes)).algorithm,
              device::Algorithm::Ring);
    EXPECT_NE(chosen(test::restricted(test::gpuInput(8), "^OneShot,Direct", ""), allReduceOf(bytes)).algorithm,
              device::Algorithm::Direct);
  }
}

TEST(Tuning, NothingLeftFailsTheOperationWithBothSettings) {
  const Tuning tree = makeTuning(test::restricted(test::gpuInput(4), "Tree", ""));
  test::expectLog(
      "for function AllGather with datatype i8 and operator Sum. NCCL_ALGO was set to Tree, NCCL_PROTO to "
      "nothing");
  EXPECT_EQ(chooseCollective(tree, {.func = device::Func::AllGather, .bytes = 8}).status().code(), ncclInvalidUsage);
  test::expectLog("NCCL_ALGO was set to NVLS,CollNetDirect, NCCL_PROTO to nothing");
  const Tuning nvls = makeTuning(test::restricted(test::gpuInput(4), "NVLS,CollNetDirect", ""));
  EXPECT_EQ(chooseCollective(nvls, allReduceOf(8)).status().code(), ncclInvalidUsage);
}

TEST(Tuning, NothingLeftWithoutSettingsIsOurFault) {
  TuningInput input = test::gpuInput(4);
  input.speeds = {};
  test::expectLog("No algorithm/protocol available for function AllReduce");
  EXPECT_EQ(chooseCollective(makeTuning(input), allReduceOf(8)).status().code(), ncclInternalError);
}

TEST(Tuning, Ll128RunsOnlyWhereItIsSafeOrNamed) {
  TuningInput unsafe = test::gpuInput(4);
  unsafe.ranks.ll128Safe = false;
  for (const Candidate& c : weigh(makeTuning(unsafe), allReduceOf(1 << 20))) {
    const bool asked = c.protocol == device::Protocol::LL128 && c.algorithm == device::Algorithm::Ring;
    EXPECT_EQ(c.verdict == Verdict::Unsafe, c.verdict != Verdict::NoKernel && c.protocol == device::Protocol::LL128);
    if (asked) {
      EXPECT_EQ(c.verdict, Verdict::Unsafe);
    }
  }
  EXPECT_EQ(chosen(test::restricted(unsafe, "Ring", "LL128"), allReduceOf(1 << 20)).protocol, device::Protocol::LL128);
  EXPECT_TRUE(ll128IsSafe(test::gpuInput(4).ranks, 90, false));
  EXPECT_TRUE(ll128IsSafe(test::gpuInput(4).ranks, 100, false)) << "mixed, but none below 9.0";
  RankFacts old = test::gpuInput(4).ranks;
  old.computeCapability = 80;
  EXPECT_FALSE(ll128IsSafe(old, 90, false));
  old.computeCapability = 61;
  EXPECT_FALSE(ll128IsSafe(old, 61, false));
  RankFacts nodes = test::gpuInput(4).ranks;
  nodes.nNodes = 2;
  EXPECT_FALSE(ll128IsSafe(nodes, 90, false));
  EXPECT_TRUE(ll128IsSafe(nodes, 90, true));
}

TEST(Tuning, PatIsForNodesOfOneRankUnlessNamed) {
  TuningInput nodes = test::gpuInput(8);
  nodes.ranks.nNodes = 8;
  nodes.speeds = assumedSpeeds(nodes.ranks, 8, false);
  const auto possible = [](const TuningInput& input) {
    const Tuning tuning = makeTuning(input);
    return tuning.verdicts[static_cast<std::size_t>(device::Func::AllGather)]
                          [static_cast<std::size_t>(device::Algorithm::Pat)][2] == Verdict::Possible;
  };
  EXPECT_TRUE(possible(nodes));
  EXPECT_FALSE(possible(test::gpuInput(8)));
  EXPECT_TRUE(possible(test::restricted(test::gpuInput(8), "PAT", "")));
  TuningSettings settings;
  settings.pat = 0;
  nodes.filter = filterFrom("PAT", "", settings).value();
  EXPECT_FALSE(possible(nodes)) << "NCCL_PAT_ENABLE=0 wins";
  TuningInput forced = test::gpuInput(8);
  settings.pat = 1;
  forced.filter = filterFrom("", "", settings).value();
  EXPECT_TRUE(possible(forced));
}

TEST(Tuning, DirectAlgorithmsEndWhereTheirTablesEnd) {
  EXPECT_EQ(chosen(test::gpuInput(72), allReduceOf(8)).algorithm, device::Algorithm::OneShot);
  EXPECT_EQ(chosen(test::restricted(test::gpuInput(73), "Ring,OneShot,Direct", ""), allReduceOf(8)).algorithm,
            device::Algorithm::Ring);
}

TEST(Tuning, LongRingsAvoidEightBitFloats) {
  const Tuning tuning = makeTuning(test::restricted(test::gpuInput(16), "Ring,Tree", ""));
  Request request = allReduceOf(kHuge);
  EXPECT_EQ(chooseCollective(tuning, request).value().algorithm, device::Algorithm::Ring);
  request.type = ncclFloat8e4m3;
  EXPECT_EQ(chooseCollective(tuning, request).value().algorithm, device::Algorithm::Tree);
}

TEST(Tuning, ALoneRankIgnoresTheSettings) {
  const Choice choice = chosen(test::restricted(test::gpuInput(1), "NVLS", "LL"), allReduceOf(100));
  EXPECT_EQ(choice.algorithm, device::Algorithm::Ring);
  EXPECT_EQ(choice.protocol, device::Protocol::Simple);
}

TEST(Tuning, SmallMessagesGoByLlAndLargeOnesOverMoreChannels) {
  const Tuning tuning = makeTuning(test::gpuInput(4));
  EXPECT_EQ(chooseMessage(tuning, 0, 8, false).protocol, device::Protocol::LL);
  EXPECT_EQ(chooseMessage(tuning, 16 << 10, 8, false).protocol, device::Protocol::LL);
  EXPECT_EQ(chooseMessage(tuning, (16 << 10) + 1, 8, false).protocol, device::Protocol::Simple);
  EXPECT_EQ(chooseMessage(tuning, 8, 8, true).protocol, device::Protocol::Simple) << "a copy to oneself";
  EXPECT_EQ(chooseMessage(tuning, 8, 8, false).nChannels, 1u);
  EXPECT_EQ(chooseMessage(tuning, kHuge, 8, false).nChannels, 8u);
  TuningInput never = test::gpuInput(4);
  never.slotBytes[1][0] = 0;
  EXPECT_EQ(chooseMessage(makeTuning(never), 8, 8, false).protocol, device::Protocol::Simple) << "no LL buffers";
}

TEST(Tuning, ThresholdsDecideHowMuchAThreadMustHaveToDo) {
  TuningInput input = test::restricted(test::gpuInput(4), "Ring,Tree", "Simple");
  EXPECT_EQ(thresholdsLine(input), "threadThresholds 8/8/64 | 32/8/64 | 0 | 0");
  EXPECT_LT(chosen(input, allReduceOf(1024)).nChannels, 8u);
  input.thresholds.ring = {-1, 100, 0};
  EXPECT_EQ(thresholdsLine(input), "threadThresholds 8/8/64 | 32/100/0 | 0 | 0");
  input.filter = parseTuningFilter("Ring", "Simple").value();
  EXPECT_EQ(chosen(input, allReduceOf(8)).nChannels, 8u) << "nothing is too little";
  input.filter = parseTuningFilter("Tree", "Simple").value();
  EXPECT_EQ(chosen(input, allReduceOf(8)).nChannels, 1u) << "these were not given";
}

TEST(Tuning, ThresholdsAreSixNumbers) {
  Params params;
  params.tuning.threadThresholds = "1, 2 -7  4/5 6";
  EXPECT_EQ(tuningSettingsFrom(params).thresholds, (ThreadThresholds{{1, 2, -1}, {4, 5, 6}}));
  for (const char* bad : {"1 2 3 4 5", "1 2 3 4 5 6 7", "1 2 three 4 5 6", "1 2 3x 4 5 6", " "}) {
    params.tuning.threadThresholds = bad;
    EXPECT_EQ(tuningSettingsFrom(params).thresholds, ThreadThresholds{}) << bad;
  }
}

TEST(Tuning, SettingsBendThePolicy) {
  Params params;
  params.tuning.nThreads = 100;
  params.tuning.ll128Threads = 64;
  params.tuning.p2pLlThreshold = 0;
  const TuningSettings settings = tuningSettingsFrom(params);
  EXPECT_EQ(settings.nThreads, 512) << "no multiple of 32 gives the most";
  EXPECT_EQ(settings.ll128Threads, 160);
  params.tuning.nThreads = 96;
  const device::Policy policy = applySettings(device::kGpuPolicy, tuningSettingsFrom(params));
  EXPECT_EQ(policy.collThreads, (std::array<std::uint32_t, 3>{96, 160, 96}));
  EXPECT_EQ(policy.p2pThreads, 128u);
  EXPECT_EQ(policy.llMessageBytes, 0u);
  EXPECT_EQ(applySettings(device::kHostPolicy, TuningSettings{}).collThreads, device::kHostPolicy.collThreads);
}

TEST(Tuning, LogNamesEveryCandidateWithItsTimeOrItsFault) {
  const Tuning tuning = makeTuning(test::restricted(test::gpuInput(4), "Ring,OneShot", "^LL128"));
  const std::string text = describeCandidates(tuning, allReduceOf(1024));
  EXPECT_NE(text.find("RING/LL "), std::string::npos) << text;
  EXPECT_NE(text.find("ONESHOT/SIMPLE "), std::string::npos) << text;
  EXPECT_NE(text.find("not allowed: TREE/LL"), std::string::npos) << text;
  EXPECT_LT(text.size(), 900u) << "one line of the log";
  for (const std::string& line : describeTuning(tuning)) EXPECT_LT(line.size(), 200u);
}

}  // namespace
}  // namespace tutti::comm
