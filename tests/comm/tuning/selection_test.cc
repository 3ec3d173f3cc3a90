#include "comm/tuning/selection.h"

#include <gtest/gtest.h>

#include "comm/tuning/tuning_worlds.h"
#include "support/log_capture.h"

namespace tutti::comm {
namespace {

using device::Algorithm;
using device::Protocol;

bool allows(const Selection& selection, Algorithm algorithm, Protocol protocol) {
  return selection.allows(static_cast<std::size_t>(algorithm), static_cast<std::size_t>(protocol));
}

Selection of(std::string_view text) {
  return parseSelection(text).value();
}

TEST(Selection, NothingSelectsNothing) {
  EXPECT_FALSE(of("").given());
}

TEST(Selection, AlgorithmsAloneLeaveTheProtocolOpen) {
  const Selection selection = of("Ring,tree");
  for (const Protocol protocol : {Protocol::LL, Protocol::LL128, Protocol::Simple}) {
    EXPECT_TRUE(allows(selection, Algorithm::Ring, protocol));
    EXPECT_TRUE(allows(selection, Algorithm::Tree, protocol));
    EXPECT_FALSE(allows(selection, Algorithm::Direct, protocol));
  }
  EXPECT_EQ(selection.namedProtocols, 0) << "they are not named, so NCCL_PROTO and what is safe still count";
}

TEST(Selection, AlgorithmsAndProtocolsTogetherMeanOneOfEach) {
  const Selection selection = of("Ring,Tree,LL");
  EXPECT_TRUE(allows(selection, Algorithm::Ring, Protocol::LL));
  EXPECT_TRUE(allows(selection, Algorithm::Tree, Protocol::LL));
  EXPECT_FALSE(allows(selection, Algorithm::Ring, Protocol::Simple));
  EXPECT_FALSE(allows(selection, Algorithm::Direct, Protocol::LL));
}

TEST(Selection, PairsStandForThemselves) {
  const Selection selection = of("Tree/LL128,OneShot/LL");
  EXPECT_TRUE(allows(selection, Algorithm::Tree, Protocol::LL128));
  EXPECT_TRUE(allows(selection, Algorithm::OneShot, Protocol::LL));
  EXPECT_FALSE(allows(selection, Algorithm::Tree, Protocol::LL));
}

TEST(Selection, CanSayWhatIsNotWanted) {
  const Selection selection = of("^Ring,LL");
  EXPECT_FALSE(allows(selection, Algorithm::Ring, Protocol::LL));
  EXPECT_TRUE(allows(selection, Algorithm::Ring, Protocol::Simple));
  EXPECT_TRUE(allows(selection, Algorithm::Tree, Protocol::LL));
  EXPECT_EQ(selection.namedAlgorithms, 0);
}

TEST(Selection, UnknownNamesAreRefusedWithTheKnownOnes) {
  test::expectLog("unknown name \"Rign\"");
  EXPECT_EQ(parseSelection("Tree,Rign").status().code(), ncclInvalidArgument);
  test::expectLog("unknown name \"LL/Ring\"");
  EXPECT_EQ(parseSelection("LL/Ring").status().code(), ncclInvalidArgument);
}

TEST(Selection, AListWithoutNamesIsRefused) {
  test::allowLog("leaves nothing");
  EXPECT_EQ(parseSelection("^").status().code(), ncclInvalidArgument);
  EXPECT_EQ(parseSelection(",").status().code(), ncclInvalidArgument);
}

Request selecting(std::string_view text, std::uint64_t bytes = 1 << 20) {
  Request request{.func = device::Func::AllReduce, .op = device::DevOp::Sum, .type = ncclFloat32, .bytes = bytes};
  request.options.selection = of(text);
  return request;
}

TEST(SelectionChoice, TakesWhatIsSelectedThoughSettingsSayOtherwise) {
  const TuningInput input = test::restricted(test::gpuInput(8), "Ring", "Simple");
  const Choice choice = chooseCollective(makeTuning(input), selecting("Tree/LL")).value();
  EXPECT_EQ(choice.algorithm, Algorithm::Tree);
  EXPECT_EQ(choice.protocol, Protocol::LL);
  const Choice open = chooseCollective(makeTuning(input), selecting("Tree")).value();
  EXPECT_EQ(open.algorithm, Algorithm::Tree);
  EXPECT_EQ(open.protocol, Protocol::Simple) << "NCCL_PROTO speaks for what is not named";
}

TEST(SelectionChoice, TakesWhatIsUnsafeOnlyWhereItIsNamed) {
  TuningInput input = test::gpuInput(4);
  input.ranks.ll128Safe = false;
  EXPECT_EQ(chooseCollective(makeTuning(input), selecting("Ring/LL128")).value().protocol, Protocol::LL128);
  for (const Candidate& candidate : weigh(makeTuning(input), selecting("Ring"))) {
    if (candidate.protocol == Protocol::LL128) {
      EXPECT_NE(candidate.verdict, Verdict::Possible);
    }
  }
}

TEST(SelectionChoice, WhatIsImpossibleIsRefusedUnlessItNeedNotBe) {
  test::expectLog("Without algSelection: ");
  const Tuning tuning = makeTuning(test::gpuInput(4));
  Request request = selecting("PAT");  // moves blocks, and reduces nothing
  EXPECT_EQ(chooseCollective(tuning, request).status().code(), ncclInvalidArgument);
  request.options.selection.forced = false;
  Request free = request;
  free.options.selection = {};
  const Choice fallback = chooseCollective(tuning, request).value();
  EXPECT_EQ(fallback.algorithm, chooseCollective(tuning, free).value().algorithm);
}

TEST(SelectionChoice, BoundsOfChannelsAct) {
  const Tuning tuning = makeTuning(test::gpuInput(8, 8));
  Request tiny = selecting("Ring", 64);
  Request huge = selecting("Ring", std::uint64_t{1} << 30);
  EXPECT_EQ(chooseCollective(tuning, tiny).value().nChannels, 1U);
  EXPECT_EQ(chooseCollective(tuning, huge).value().nChannels, 8U);
  for (Request* request : {&tiny, &huge}) {
    request->options.minChannels = 3;
    request->options.maxChannels = 5;
  }
  EXPECT_EQ(chooseCollective(tuning, tiny).value().nChannels, 3U);
  EXPECT_EQ(chooseCollective(tuning, huge).value().nChannels, 5U);
  tiny.options = {tiny.options.selection, 60, 0};
  EXPECT_EQ(chooseCollective(tuning, tiny).value().nChannels, 8U) << "as far as there are so many";
}

}  // namespace
}  // namespace tutti::comm
