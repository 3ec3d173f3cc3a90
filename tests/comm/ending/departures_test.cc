#include "comm/ending/departures.h"

#include <gtest/gtest.h>

#include "comm/ending/rank_account.h"
#include "comm/launch/launch.h"

namespace tutti::comm {
namespace {

constexpr int kSelf = 0;
constexpr int kGone = 3;

TEST(Departures, AnAccountArrivesAsItWasSent) {
  RankAccount account{.collectives = 7, .unfinished = true, .replays = true, .messages = {{2, {5, 0}}, {9, {1, 4}}}};
  const auto back = decodeAccount(encodeAccount(account), 9);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->collectives, 7U);
  EXPECT_TRUE(back->unfinished && back->replays && !back->partial);
  ASSERT_EQ(back->messages.size(), 1U) << "what concerns others is not kept";
  EXPECT_EQ(back->messages.at(9).sent, 1U);
  EXPECT_EQ(back->messages.at(9).received, 4U);
}

TEST(Departures, AnAccountTellsWhetherConnectionsGo) {
  for (const bool closes : {false, true}) {
    const auto back = decodeAccount(encodeAccount({.closes = closes, .messages = {}}), kSelf);
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(back->closes, closes);
  }
}

TEST(Departures, AnAccountTellsOfSoManyPeersAndSaysSo) {
  RankAccount many{.messages = {}};
  for (int rank = 0; rank <= static_cast<int>(kMostPeersTold); ++rank) many.messages[rank] = {1, 1};
  const auto bytes = encodeAccount(many);
  const auto first = decodeAccount(bytes, kSelf);
  const auto last = decodeAccount(bytes, static_cast<int>(kMostPeersTold));
  ASSERT_TRUE(first.has_value() && last.has_value());
  EXPECT_EQ(needFor({.messages = {{kGone, {1, 1}}}}, kSelf, first, kGone), Need::No);
  EXPECT_EQ(needFor({.messages = {{kGone, {1, 1}}}}, static_cast<int>(kMostPeersTold), last, kGone), Need::Unknown);
  EXPECT_EQ(needFor({.messages = {{2, {1, 1}}}}, static_cast<int>(kMostPeersTold), last, kGone), Need::No);
}

TEST(Departures, BytesThatAreNoAccountAreNone) {
  const auto bytes = encodeAccount({.collectives = 1, .messages = {{2, {5, 0}}}});
  EXPECT_FALSE(decodeAccount({}, kSelf).has_value());
  EXPECT_FALSE(decodeAccount(std::span(bytes).first(bytes.size() - 1), kSelf).has_value());
  EXPECT_FALSE(decodeAccount(std::span(bytes).first(8), kSelf).has_value());
}

TEST(Departures, ARankThatHasDoneItsPartIsNotNeeded) {
  const RankAccount own{.collectives = 4, .messages = {{kGone, {2, 3}}, {1, {9, 9}}}};
  const RankAccount gone{.collectives = 4, .messages = {{kSelf, {3, 2}}}};
  EXPECT_EQ(needFor(own, kSelf, gone, kGone), Need::No);
}

TEST(Departures, ACollectiveMoreThanItHasLaunchedNeedsIt) {
  EXPECT_EQ(needFor({.collectives = 5, .messages = {}}, kSelf, RankAccount{.collectives = 4, .messages = {}}, kGone),
            Need::Yes);
  EXPECT_EQ(needFor({.collectives = 3, .messages = {}}, kSelf, RankAccount{.collectives = 4, .messages = {}}, kGone),
            Need::No);
}

TEST(Departures, AMessageWhoseOtherHalfItHasNotCalledNeedsIt) {
  const RankAccount gone{.collectives = 0, .messages = {{kSelf, {1, 1}}, {2, {8, 8}}}};
  EXPECT_EQ(needFor({.messages = {{kGone, {1, 2}}}}, kSelf, gone, kGone), Need::Yes);
  EXPECT_EQ(needFor({.messages = {{kGone, {2, 1}}}}, kSelf, gone, kGone), Need::Yes);
  EXPECT_EQ(needFor({.messages = {{2, {5, 5}}}}, kSelf, gone, kGone), Need::No) << "others are not its concern";
}

TEST(Departures, WhatItHasNotFinishedNeedsIt) {
  const RankAccount gone{.collectives = 4, .unfinished = true, .messages = {}};
  EXPECT_EQ(needFor({.collectives = 4, .messages = {}}, kSelf, gone, kGone), Need::Yes);
}

TEST(Departures, WithGraphsNumbersSayNothing) {
  const RankAccount plain{.collectives = 4, .messages = {}};
  const RankAccount replayed{.collectives = 1, .replays = true, .messages = {}};
  EXPECT_EQ(needFor(plain, kSelf, replayed, kGone), Need::Unknown);
  EXPECT_EQ(needFor(replayed, kSelf, plain, kGone), Need::Unknown);
  EXPECT_EQ(needFor(plain, kSelf, std::nullopt, kGone), Need::Unknown);
}

}  // namespace
}  // namespace tutti::comm
