// What becomes of a tuner plugin's answer. Made-up plugins over made-up communicators.
#include "comm/tuning/advice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "comm/tuning/constants.h"
#include "comm/tuning/tuning_worlds.h"
#include "support/log_capture.h"

namespace tutti::comm {
namespace {

using device::Algorithm;
using device::Protocol;

/// Does with the table what a test says.
class FakeTuner final : public TunerAdvice {
 public:
  using Edit = std::function<unsigned(AdvisedTimes&)>;
  explicit FakeTuner(Edit edit, std::size_t chunkBytes = 0) : edit_(std::move(edit)), chunkBytes_(chunkBytes) {}

  std::string name() const override { return "tuner fake"; }
  Result<unsigned> times(const Request&, unsigned perPipeline, AdvisedTimes& times) override {
    perPipeline_ = perPipeline;
    seen_ = times;
    return edit_(times);
  }
  bool cutsChunks() const override { return chunkBytes_ > 0; }
  Result<std::size_t> chunk(const Request&, const Choice&) override { return chunkBytes_; }

  const AdvisedTimes& seen() const { return seen_; }
  unsigned perPipeline() const { return perPipeline_; }

 private:
  Edit edit_;
  std::size_t chunkBytes_;
  AdvisedTimes seen_{};
  unsigned perPipeline_ = 0;
};

float& at(AdvisedTimes& times, Algorithm algorithm, Protocol protocol) {
  return times[static_cast<std::size_t>(algorithm)][static_cast<std::size_t>(protocol)];
}

Request sumOf(std::uint64_t bytes) {
  return {.func = device::Func::AllReduce, .type = ncclFloat32, .bytes = bytes};
}

Choice choose(const TuningInput& input, const Request& request, TunerAdvice& advice) {
  return chooseCollective(makeTuning(input), request, &advice).value();
}

TEST(TunerAdvice, SeesTheModelsTimesAndWhatCannotBeHad) {
  const Tuning tuning = makeTuning(test::restricted(test::gpuInput(4), "", "^LL128"));
  FakeTuner tuner([](AdvisedTimes&) { return 0; });
  const Choice choice = chooseCollective(tuning, sumOf(1 << 20), &tuner).value();
  EXPECT_FALSE(choice.byPlugin);
  for (const Candidate& candidate : weigh(tuning, sumOf(1 << 20))) {
    if (static_cast<int>(candidate.algorithm) >= topo::kCostAlgorithms) continue;
    const float seen =
        tuner.seen()[static_cast<std::size_t>(candidate.algorithm)][static_cast<std::size_t>(candidate.protocol)];
    const bool possible = candidate.verdict == Verdict::Possible;
    EXPECT_EQ(seen, possible ? static_cast<float>(candidate.microseconds) : -1.0F);
  }
  EXPECT_EQ(tuner.perPipeline(), 1U);
}

TEST(TunerAdvice, LeavesTheModelsChoiceWhereItChangesNothing) {
  for (const std::uint64_t bytes : {std::uint64_t{8}, std::uint64_t{1} << 16, std::uint64_t{1} << 28}) {
    FakeTuner tuner([](AdvisedTimes&) { return 0; });
    const Choice asked = choose(test::gpuInput(8), sumOf(bytes), tuner);
    const Choice alone = chooseCollective(makeTuning(test::gpuInput(8)), sumOf(bytes)).value();
    EXPECT_EQ(asked.algorithm, alone.algorithm);
    EXPECT_EQ(asked.protocol, alone.protocol);
    EXPECT_EQ(asked.nChannels, alone.nChannels);
    EXPECT_EQ(asked.chunkBytes, alone.chunkBytes);
  }
}

TEST(TunerAdvice, DecidesWithoutOwnAlgorithmsOnceItChangesAnything) {
  const Choice alone = chooseCollective(makeTuning(test::gpuInput(8)), sumOf(1024)).value();
  ASSERT_TRUE(isMesh(alone.algorithm)) << "else this tests nothing";
  FakeTuner tuner([](AdvisedTimes& times) { return at(times, Algorithm::Tree, Protocol::Simple) = 1e6F, 0U; });
  const Choice choice = choose(test::gpuInput(8), sumOf(1024), tuner);
  EXPECT_TRUE(choice.byPlugin);
  EXPECT_EQ(choice.algorithm, Algorithm::Ring);
}

TEST(TunerAdvice, TakesTheSmallestAndOfEqualOnesTheFirst) {
  FakeTuner even([](AdvisedTimes& times) {
    for (auto& row : times) row.fill(3);
    return 0U;
  });
  const Choice first = choose(test::gpuInput(8), sumOf(1 << 20), even);
  EXPECT_EQ(first.algorithm, Algorithm::Tree);
  EXPECT_EQ(first.protocol, Protocol::LL);
  FakeTuner least([](AdvisedTimes& times) {
    for (auto& row : times) row.fill(3);
    return at(times, Algorithm::Ring, Protocol::LL128) = 2.5F, 0U;
  });
  const Choice second = choose(test::gpuInput(8), sumOf(1 << 20), least);
  EXPECT_EQ(second.algorithm, Algorithm::Ring);
  EXPECT_EQ(second.protocol, Protocol::LL128);
}

TEST(TunerAdvice, RevivesNothingAndTakesNoNumbersThatAreNone) {
  FakeTuner tuner([](AdvisedTimes& times) {
    at(times, Algorithm::Pat, Protocol::Simple) = 0;   // no AllReduce by it
    at(times, Algorithm::Nvls, Protocol::Simple) = 0;  // not available
    at(times, Algorithm::Tree, Protocol::LL) = std::nanf("");
    at(times, Algorithm::Tree, Protocol::Simple) = -7;
    return at(times, Algorithm::Ring, Protocol::Simple) = 0.5F, 0U;
  });
  const Choice choice = choose(test::gpuInput(8), sumOf(1 << 10), tuner);
  EXPECT_EQ(choice.algorithm, Algorithm::Ring);
  EXPECT_EQ(choice.protocol, Protocol::Simple);
  FakeTuner onlyRevives([](AdvisedTimes& times) { return at(times, Algorithm::Pat, Protocol::Simple) = 0, 0U; });
  EXPECT_FALSE(choose(test::gpuInput(8), sumOf(1 << 10), onlyRevives).byPlugin);
}

TEST(TunerAdvice, SetsTheNumberOfChannelsWithinWhatThereIsAndWhatTheCallSays) {
  const auto channels = [](unsigned wanted, CallOptions options) {
    FakeTuner tuner([wanted](AdvisedTimes& times) { return at(times, Algorithm::Ring, Protocol::LL) = 0, wanted; });
    Request request = sumOf(64);
    request.options = options;
    return choose(test::gpuInput(8), request, tuner).nChannels;
  };
  EXPECT_EQ(channels(0, {}), 1U);
  EXPECT_EQ(channels(5, {}), 5U) << "though there is little to do";
  EXPECT_EQ(channels(99, {}), 8U);
  EXPECT_EQ(channels(6, {.maxChannels = 4}), 4U);
  EXPECT_EQ(channels(1, {.minChannels = 3}), 3U);
}

TEST(TunerAdvice, ForbiddingAllIsAnErrorWithTheUsersSettings) {
  test::allowLog("has forbidden all of these");
  FakeTuner tuner([](AdvisedTimes& times) {
    for (auto& row : times) row.fill(-1);
    return 0U;
  });
  EXPECT_EQ(chooseCollective(makeTuning(test::gpuInput(4)), sumOf(8), &tuner).status().code(), ncclInternalError);
  const Tuning rings = makeTuning(test::restricted(test::gpuInput(4), "Ring", ""));
  EXPECT_EQ(chooseCollective(rings, sumOf(8), &tuner).status().code(), ncclInvalidUsage);
}

TEST(TunerAdvice, OwnAlgorithmsThatAreAllThatIsAllowedRunAsEver) {
  FakeTuner tuner([](AdvisedTimes& times) {
    for (auto& row : times) row.fill(0);
    return 0U;
  });
  EXPECT_EQ(choose(test::restricted(test::gpuInput(4), "OneShot", ""), sumOf(8), tuner).algorithm, Algorithm::OneShot);
}

TEST(TunerAdvice, CutsChunksToWholeGrainsThatFit) {
  const auto chunk = [](std::size_t wanted) {
    FakeTuner tuner([](AdvisedTimes& times) { return at(times, Algorithm::Ring, Protocol::Simple) = 0, 0U; }, wanted);
    return choose(test::gpuInput(4), sumOf(1 << 24), tuner).chunkBytes;
  };
  FakeTuner without([](AdvisedTimes& times) { return at(times, Algorithm::Ring, Protocol::Simple) = 0, 0U; });
  const std::uint32_t usual = choose(test::gpuInput(4), sumOf(1 << 24), without).chunkBytes;
  EXPECT_EQ(chunk(usual), usual);
  EXPECT_EQ(chunk(5000), 4608U);
  EXPECT_EQ(chunk(1), 512U);
  EXPECT_EQ(chunk(std::size_t{1} << 40), usual) << "no buffer has room for more";
}

TEST(TunerConstants, OfAPluginAreTheModelsAndOwnAlgorithmsFollowTheRing) {
  for (const TuningInput& usual : {test::gpuInput(4), test::hostInput(4)}) {
    TuningInput changed = usual;
    changed.constants = usualConstants(usual.policy.world);
    EXPECT_EQ(changed.constants->base[1][2], constantsOf(usual).base[1][2]);
    const auto latency = [](const TuningInput& input, Algorithm algorithm) {
      return makeTuning(input)
          .costs[static_cast<std::size_t>(device::Func::AllReduce)][static_cast<std::size_t>(algorithm)]
                [static_cast<std::size_t>(Protocol::Simple)]
          .latencyUs;
    };
    EXPECT_EQ(latency(changed, Algorithm::Ring), latency(usual, Algorithm::Ring));
    changed.constants->base[1][2] += 100;
    EXPECT_DOUBLE_EQ(latency(changed, Algorithm::Ring), latency(usual, Algorithm::Ring) + 100);
    EXPECT_DOUBLE_EQ(latency(changed, Algorithm::OneShot), latency(usual, Algorithm::OneShot) + 100);
    EXPECT_EQ(latency(changed, Algorithm::Tree), latency(usual, Algorithm::Tree));
  }
}

}  // namespace
}  // namespace tutti::comm
