#include "comm/diagnosis/circles.h"

#include <gtest/gtest.h>

namespace tutti::comm {
namespace {

using Place = CommStanding::Place;
using Time = SteadyClock::time_point;

constexpr std::uint64_t kA = 0xa;
constexpr std::uint64_t kB = 0xb;
constexpr std::uint64_t kC = 0xc;
const Time kNow = Time{} + std::chrono::hours(1);

NamedRank rankNamed(int rank) {
  return {rank, rank, 100 + rank, "h" + std::to_string(rank)};
}

CommStanding standing(std::uint64_t comm, int self, Place place, std::uint64_t number, std::uint64_t order) {
  CommStanding one;
  one.comm = comm;
  one.self = {self, 0, 100 + self, "h" + std::to_string(self)};
  one.place = place;
  one.steady = true;
  one.number = number;
  one.order = order;
  one.stream = 1;
  one.thread = 7;
  one.describe = rankNamed;
  return one;
}

/// Rank `self` has called A, which waits, and then B, which does not run.
std::vector<CommStanding> firstAThenB(int self) {
  return {standing(kA, self, Place::Waits, 3, 1), standing(kB, self, Place::Blocked, 5, 2)};
}
std::vector<CommStanding> firstBThenA(int self) {
  return {standing(kA, self, Place::Blocked, 3, 2), standing(kB, self, Place::Waits, 5, 1)};
}

CommStanding& of(std::vector<CommStanding>& all, std::uint64_t comm) {
  return *std::find_if(all.begin(), all.end(), [comm](const CommStanding& one) { return one.comm == comm; });
}

/// `all` of one process hears what `others` say over their common communicators.
void hear(std::vector<CommStanding>& all, std::span<const CommStanding> others, Time now = kNow) {
  for (std::size_t i = 0; i < others.size(); ++i) {
    const auto word = circleWord(others, i, now);
    if (!word) continue;
    for (CommStanding& one : all) {
      if (one.comm == others[i].comm) one.words[others[i].self.rank] = {*word, now};
    }
  }
}

/// Until both know what the other one says of what it has heard from them.
void exchange(std::vector<CommStanding>& zero, std::vector<CommStanding>& one, Time now = kNow) {
  for (int round = 0; round < 2; ++round) {
    hear(zero, one, now);
    hear(one, zero, now);
  }
}

std::string told(std::vector<CommStanding>& all, std::uint64_t comm) {
  const auto which = static_cast<std::size_t>(&of(all, comm) - all.data());
  return describeCircle(all[which], followCircle(all, which, kNow), 2000);
}

TEST(Circles, TwoRanksWithTwoCommunicatorsInOppositeOrderAreOne) {
  std::vector<CommStanding> zero = firstAThenB(0);
  std::vector<CommStanding> one = firstBThenA(1);
  exchange(zero, one);
  EXPECT_EQ(told(zero, kA),
            "a circle: rank 0 (host h0, device 0, pid 100) waits in AllReduce number 3 of communicator 0xa for rank 1 "
            "(host h1, device 1, pid 101), whose call of it is queued behind AllReduce number 5 of communicator 0xb, "
            "which waits for rank 0 (host h0, device 0, pid 100), whose call of that is queued behind AllReduce number "
            "3 of communicator 0xa. Call the communicators in the same order on all ranks, or on streams that do not "
            "wait for each other");
  EXPECT_EQ(told(zero, kB),
            "a circle: rank 0 (host h0, device 0, pid 100), whose call of AllReduce number 5 of communicator 0xb is "
            "queued behind AllReduce number 3 of communicator 0xa, which waits for rank 1 (host h1, device 1, pid "
            "101), whose call of it is queued behind AllReduce number 5 of communicator 0xb. Call the communicators "
            "in the same order on all ranks, or on streams that do not wait for each other");
  EXPECT_EQ(told(one, kB).find("a circle: rank 1 (host h1, device 0, pid 101) waits in AllReduce number 5"), 0U);
}

TEST(Circles, OfThreeProcessesIsFoundThoughNoneIsInAllCommunicators) {
  std::vector<std::vector<CommStanding>> places;
  const std::uint64_t comms[] = {kA, kB, kC};
  // Of A, B and C the members are places 0 and 2, 1 and 0, 2 and 1: rank 0 of each calls it first.
  for (std::size_t place = 0; place < 3; ++place) {
    places.push_back(
        {standing(comms[place], 0, Place::Waits, 1, 1), standing(comms[(place + 1) % 3], 1, Place::Blocked, 1, 2)});
  }
  for (int round = 0; round < 3; ++round) {
    for (auto& place : places) {
      for (const auto& other : places) {
        if (&other != &place) hear(place, other);
      }
    }
  }
  for (std::size_t place = 0; place < 3; ++place) {
    for (const std::uint64_t comm : {comms[place], comms[(place + 1) % 3]}) {
      const std::string text = told(places[place], comm);
      EXPECT_EQ(text.find("a circle: "), 0U) << text;
      for (const char* name : {"communicator 0xa", "communicator 0xb", "communicator 0xc"}) {
        EXPECT_NE(text.find(name), std::string::npos) << text;
      }
    }
  }
}

TEST(Circles, ARankOutsideOfOneThatWaitsForItNamesIt) {
  std::vector<CommStanding> zero = firstAThenB(0);
  std::vector<CommStanding> one = firstBThenA(1);
  exchange(zero, one);
  std::vector<CommStanding> two{standing(kA, 2, Place::Waits, 3, 1)};
  hear(two, one);
  const std::string text = told(two, kA);
  EXPECT_EQ(text.find("a circle: rank 2 (host h2, device 0, pid 102) waits in AllReduce number 3 of communicator 0xa "
                      "for rank 1 (host h1, device 1, pid 101), whose call of it is queued behind AllReduce number 5"),
            0U)
      << text;
}

TEST(Circles, WhoIsMerelyLateIsInNone) {
  std::vector<CommStanding> zero = firstAThenB(0);
  std::vector<CommStanding> one{standing(kA, 1, Place::Absent, 3, 0), standing(kB, 1, Place::Absent, 5, 0)};
  hear(zero, one);
  EXPECT_EQ(told(zero, kA), "");
  EXPECT_EQ(told(zero, kB).find("circle"), std::string::npos);
}

TEST(Circles, ACallBehindOneThatMovesIsInNone) {
  std::vector<CommStanding> zero = firstAThenB(0);
  std::vector<CommStanding> one = firstBThenA(1);
  of(one, kB).steady = false;
  exchange(zero, one);
  EXPECT_EQ(told(zero, kA), "");
}

TEST(Circles, ACallThatWasMadeBeforeTheOtherIsNotBehindIt) {
  std::vector<CommStanding> zero = firstAThenB(0);
  std::vector<CommStanding> one = firstBThenA(1);
  of(one, kB).order = 3;
  exchange(zero, one);
  EXPECT_EQ(told(zero, kA), "");
}

TEST(Circles, ACallOnAnotherDeviceIsNotInFront) {
  std::vector<CommStanding> zero = firstAThenB(0);
  std::vector<CommStanding> one = firstBThenA(1);
  of(one, kB).self.device = 1;
  hear(zero, one);
  EXPECT_EQ(told(zero, kA), "");
}

TEST(Circles, WhatIsWaitedForMustBeTheCallThatDoesNotRun) {
  std::vector<CommStanding> zero = firstAThenB(0);
  std::vector<CommStanding> one = firstBThenA(1);
  of(one, kA).number = 4;  // the third has run
  exchange(zero, one);
  EXPECT_EQ(told(zero, kA), "");
}

TEST(Circles, WhatWasSaidLongAgoCountsForNothing) {
  std::vector<CommStanding> zero = firstAThenB(0);
  std::vector<CommStanding> one = firstBThenA(1);
  exchange(zero, one, kNow - kCircleFresh - milliseconds(1));
  EXPECT_EQ(told(zero, kA), "");
  exchange(zero, one, kNow - kCircleFresh);
  EXPECT_EQ(told(zero, kA).find("a circle: "), 0U);
  // Nor does what somebody else repeats of it.
  for (CircleHop& hop : of(zero, kA).words[1].word.hops) hop.ageMs = 1;
  EXPECT_EQ(told(zero, kA), "");
}

TEST(Circles, OfAnotherStreamItIsSaidWithADoubt) {
  std::vector<CommStanding> zero = firstAThenB(0);
  std::vector<CommStanding> one = firstBThenA(1);
  of(one, kA).stream = 2;
  exchange(zero, one);
  EXPECT_EQ(told(zero, kA).find("it seems to be a circle: "), 0U) << told(zero, kA);
  EXPECT_NE(told(zero, kA).find("has not begun, on another stream, and seems to be behind"), std::string::npos);
}

TEST(Circles, OfCallsThatWaitOnTheHostOnlyThoseOfOneThreadAre) {
  const auto inside = [](int self, std::uint64_t in, std::uint64_t absent) {
    std::vector<CommStanding> all{standing(in, self, Place::Waits, 1, 0), standing(absent, self, Place::Absent, 1, 0)};
    all.front().onHost = true;
    return all;
  };
  std::vector<CommStanding> zero = inside(0, kA, kB);
  std::vector<CommStanding> one = inside(1, kB, kA);
  exchange(zero, one);
  EXPECT_EQ(told(zero, kA).find("a circle: "), 0U) << told(zero, kA);
  EXPECT_NE(told(zero, kA).find("was not made, for its thread waits in the call of AllReduce number 1"),
            std::string::npos);
  EXPECT_NE(told(zero, kA).find("NCCL_RUNTIME_CONNECT=0"), std::string::npos);
  of(one, kB).thread = 8;
  of(zero, kA).words.clear();
  exchange(zero, one);
  EXPECT_EQ(told(zero, kA), "");
}

TEST(Circles, RanksThatMayWaitBetweenTheirCallsAreNotCalledOne) {
  std::vector<CommStanding> zero{standing(kA, 0, Place::Waits, 1, 1), standing(kB, 0, Place::Absent, 1, 0)};
  std::vector<CommStanding> one{standing(kA, 1, Place::Absent, 1, 0), standing(kB, 1, Place::Waits, 1, 1)};
  exchange(zero, one);
  const std::string text = told(zero, kA);
  EXPECT_EQ(text.find("circle"), std::string::npos) << text;
  EXPECT_NE(text.find("whose call of it was not made, for its thread has made AllReduce number 1 of communicator 0xb"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("If the threads wait for one call before they make the next"), std::string::npos) << text;
}

TEST(Circles, MessagesAreFollowedByWhomTheirCountersWaitFor) {
  std::vector<CommStanding> zero = firstAThenB(0);
  std::vector<CommStanding> one = firstBThenA(1);
  of(zero, kA).messages = true;
  of(zero, kA).function = ApiFunc::Recv;
  exchange(zero, one);
  EXPECT_EQ(told(zero, kA), "");
  of(zero, kA).waitsFor = {1};
  exchange(zero, one);
  EXPECT_EQ(told(zero, kA).find("a circle: rank 0 (host h0, device 0, pid 100) waits in Recv of communicator 0xa for"),
            0U)
      << told(zero, kA);
}

TEST(Circles, TextsGrowBriefWhereTheyAreLong) {
  std::vector<CommStanding> zero = firstAThenB(0);
  std::vector<CommStanding> one = firstBThenA(1);
  exchange(zero, one);
  const std::string text = describeCircle(zero[0], followCircle(zero, 0, kNow), 100);
  EXPECT_EQ(text.find("a circle: rank 0 (h0, pid 100) waits in"), 0U) << text;
}

TEST(CircleWords, OthersAreTakenForNone) {
  std::vector<CommStanding> one = firstBThenA(1);
  CircleWord word = circleWord(one, 0, kNow).value();
  const auto taken = [&word] { return circleWordFrom(std::as_bytes(std::span(&word, 1))).has_value(); };
  EXPECT_TRUE(taken());
  EXPECT_FALSE(circleWordFrom(std::as_bytes(std::span(&word, 1)).first(sizeof(word) - 1)).has_value());
  word.nHops = CircleWord::kHops + 1;
  EXPECT_FALSE(taken());
  word.nHops = 0;
  EXPECT_FALSE(taken());
  word.nHops = 1;
  word.hops[0].host.fill('h');
  EXPECT_FALSE(taken());
  word.hops[0].host = {};
  word.hops[0].function = static_cast<ApiFunc>(200);
  EXPECT_FALSE(taken());
  word.hops[0].function = ApiFunc::AllReduce;
  word.hops[0].behind = static_cast<Behind>(9);
  EXPECT_FALSE(taken());
  word.hops[0].behind = Behind::Thread;
  EXPECT_TRUE(taken());
  word.magic = 0;
  EXPECT_FALSE(taken());
}

TEST(CircleWords, AreKeptAsTheLastOneOfEachRank) {
  std::vector<CommStanding> one = firstBThenA(1);
  CircleWord word = circleWord(one, 0, kNow).value();
  const auto bytes = std::as_bytes(std::span(&word, 1));
  CircleBoard board;
  const Time before = SteadyClock::now();
  EXPECT_TRUE(board.hear(1, bytes));
  word.number = 4;
  EXPECT_TRUE(board.hear(1, bytes));
  EXPECT_FALSE(board.hear(2, bytes.first(8)));
  const auto heard = board.since(before);
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_EQ(heard.at(1).word.number, 4U);
  EXPECT_TRUE(board.since(SteadyClock::now() + milliseconds(1)).empty());
}

}  // namespace
}  // namespace tutti::comm
