#include "comm/diagnosis/call_words.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "comm/diagnosis/call_exchange.h"

namespace tutti::comm {
namespace {

Call sum(std::uint64_t count) {
  return {.count = count, .func = ApiFunc::AllReduce, .datatype = ncclInt32, .redOp = ncclSum};
}

void addUpTo(CallLog& log, std::uint64_t n, std::uint64_t wrong = 0) {
  while (log.count() < n) log.add(sum(log.count() + 1 == wrong ? 1 : 8));
}

/// Ranks whose words reach all others at once.
class Net {
 public:
  explicit Net(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}
  CallExchange& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  /// What is found, if calls differ.
  std::optional<std::string> tick(int rank, int seconds) {
    const auto finding = find(rank, seconds * 1000);
    if (!finding) return std::nullopt;
    EXPECT_TRUE(finding->differ);
    EXPECT_EQ(finding->why.code(), ncclInvalidUsage);
    return finding->text;
  }
  std::optional<CallExchange::Finding> find(int rank, int ms) {
    auto finding = at(rank).tick(when(ms), peersOf(rank));
    deliver();
    return finding;
  }
  void askAll(int rank, int ms) {
    at(rank).askAll(when(ms), peersOf(rank));
    deliver();
  }
  static CallExchange::Time when(int ms) { return CallExchange::Time{} + milliseconds(ms); }
  CallExchange::Peers peersOf(int rank) {
    return {rank, static_cast<int>(ranks_.size()),
            [this, rank](std::span<const std::byte> word) {
              ++words;
              said_.emplace_back(rank, std::vector<std::byte>(word.begin(), word.end()));
            },
            [](int named) { return "rank " + std::to_string(named); }};
  }
  int words = 0;

 private:
  /// Once nobody holds a lock of its own: as in the library, where words are heard on other threads.
  void deliver() {
    for (const auto& [rank, word] : std::exchange(said_, {})) {
      for (int other = 0; other < static_cast<int>(ranks_.size()); ++other) {
        if (other == rank) continue;
        EXPECT_TRUE(at(other).hear(rank, word));
      }
    }
  }

  std::deque<CallExchange> ranks_;
  std::vector<std::pair<int, std::vector<std::byte>>> said_;
};

TEST(CallLog, ForgetsTheOldestCallsAndKeepsTheHashOfAll) {
  CallLog log;
  EXPECT_EQ(log.hashAt(0), 0U);
  addUpTo(log, CallLog::kKept + 5);
  EXPECT_FALSE(log.at(5));
  EXPECT_TRUE(log.at(6));
  EXPECT_FALSE(log.hashAt(5));
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < CallLog::kKept + 5; ++i) hash = hashWith(hash, sum(8));
  EXPECT_EQ(log.hashAt(CallLog::kKept + 5), hash);
}

/// Others may have heard of a call that was not made after all: whatever follows it is no difference.
TEST(CallLog, ComparesNothingOnceCallsWereNotMadeAfterAll) {
  CallLog log;
  CallLog other;
  addUpTo(log, 3);
  addUpTo(other, 3);
  const CallWord stale = wordUpTo(other, 3);
  log.giveUp(1);
  log.add(sum(9));
  EXPECT_EQ(log.called(), 3U);
  EXPECT_EQ(log.count(), 0U);
  EXPECT_FALSE(log.at(3));
  EXPECT_FALSE(log.at(1));
  EXPECT_NE(compare(log, stale).result, Comparison::Result::Differ);
  EXPECT_EQ(compare(log, stale).number, 0U);
  const Comparison heard = compare(other, wordUpTo(log, log.count()));
  EXPECT_EQ(heard.result, Comparison::Result::Same);
  EXPECT_EQ(heard.number, 0U);
}

/// One thread calls, another one tells of it and compares: neither sees a call that is not there.
TEST(CallLog, IsReadWholeWhileCallsAreAdded) {
  CallLog log;
  CallLog other;
  std::atomic<bool> done{false};
  std::thread caller([&] {
    std::vector<Call> many(700);
    for (std::uint64_t i = 0; i < 300; ++i) {
      for (std::size_t k = 0; k < many.size(); ++k) many[k] = sum(1 + (i * 700 + k) % 5);
      log.add(many);
      other.add(many);
    }
    done = true;
  });
  while (!done) {
    const CallWord word = wordUpTo(log, log.count());
    const Comparison result = compare(other, word);
    EXPECT_NE(result.result, Comparison::Result::Differ);
    EXPECT_NE(result.result, Comparison::Result::Before);
    for (std::size_t i = 0; i < word.nCalls; ++i) EXPECT_EQ(word.calls[i].count, 1 + (word.first() + i - 1) % 5);
  }
  caller.join();
}

TEST(CallLog, HasNoCallWithoutElements) {
  Op op;
  op.func = ApiFunc::AllReduce;
  op.count = 0;
  EXPECT_FALSE(callOf(op));
  op.count = 1;
  EXPECT_TRUE(callOf(op));
}

TEST(Calls, ThatOnlyMoveBytesAreAlikeByTheirBytes) {
  const Call words{.count = 4, .root = 1, .func = ApiFunc::Broadcast, .datatype = ncclInt32};
  const Call bytes{.count = 16, .root = 1, .func = ApiFunc::Broadcast, .datatype = ncclInt8};
  const Call elsewhere{.count = 16, .root = 2, .func = ApiFunc::Broadcast, .datatype = ncclInt8};
  EXPECT_TRUE(sameCall(words, bytes));
  EXPECT_EQ(hashWith(7, words), hashWith(7, bytes));
  EXPECT_FALSE(sameCall(words, elsewhere));
  EXPECT_NE(hashWith(7, words), hashWith(7, elsewhere));
  Call other = sum(4);
  other.datatype = ncclFloat32;
  EXPECT_FALSE(sameCall(sum(4), other));
}

TEST(CallWords, TellTheFirstCallThatDiffers) {
  CallLog own;
  CallLog other;
  addUpTo(own, 30);
  addUpTo(other, 30, 21);
  const auto found = [&](std::uint64_t n) { return compare(own, wordUpTo(other, n)); };
  EXPECT_EQ(found(20).result, Comparison::Result::Same);
  EXPECT_EQ(found(25).result, Comparison::Result::Differ);
  EXPECT_EQ(found(25).number, 21U);
  EXPECT_EQ(found(30).number, 21U);
  addUpTo(own, 60);
  addUpTo(other, 60);
  EXPECT_EQ(found(60).result, Comparison::Result::Before);
  EXPECT_EQ(found(60).number, 47U);
}

TEST(CallWords, OfWhatIsAheadOnlyTheCommonPartCounts) {
  CallLog own;
  CallLog other;
  addUpTo(own, 17);
  addUpTo(other, 20, 17);
  EXPECT_EQ(compare(own, wordUpTo(other, 20)).number, 17U);
  addUpTo(other, 40);
  EXPECT_EQ(compare(own, wordUpTo(other, 40)).result, Comparison::Result::Unknown);
}

TEST(CallWords, AreTakenOnlyWhole) {
  CallLog log;
  addUpTo(log, 3);
  CallWord word = wordUpTo(log, 3);
  EXPECT_TRUE(wordFrom(bytesOf(word)));
  EXPECT_FALSE(wordFrom(bytesOf(word).subspan(1)));
  for (const auto spoil : {0, 1, 2}) {
    CallWord bad = word;
    if (spoil == 0) bad.nCalls = CallWord::kCalls + 1;
    if (spoil == 1) bad.calls[1].func = static_cast<ApiFunc>(99);
    if (spoil == 2) bad.count = 2;
    EXPECT_FALSE(wordFrom(bytesOf(bad))) << spoil;
  }
}

TEST(CallExchange, NamesBothCallsAndGuessesTheCause) {
  Net net(2);
  const Call gather{.count = 5, .func = ApiFunc::AllGather, .datatype = ncclInt8};
  addUpTo(net.at(0).log(), 1);
  addUpTo(net.at(1).log(), 1);
  net.at(0).log().add(gather);
  net.at(0).log().add(sum(8));
  net.at(1).log().add(sum(8));
  EXPECT_FALSE(net.tick(0, 1));
  EXPECT_EQ(
      net.tick(1, 1),
      "The calls of two ranks do not match. rank 1 is in its 2nd collective of this communicator, AllReduce of 8 "
      "ncclInt32, sum; rank 0 is in its 2nd, AllGather of 5 ncclInt8. It seems that rank 1 does not call AllGather "
      "of 5 ncclInt8, or without elements");
}

TEST(CallExchange, SaysNothingWhileNothingIsCalledAndOnceASecondElse) {
  Net net(2);
  for (int second = 1; second < 5; ++second) EXPECT_FALSE(net.tick(0, second));
  EXPECT_EQ(net.words, 0);
  addUpTo(net.at(0).log(), 1);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(net.tick(0, 6));
  EXPECT_EQ(net.words, 1);
  addUpTo(net.at(0).log(), 100);
  EXPECT_FALSE(net.tick(0, 6));
  EXPECT_EQ(net.words, 1);
  EXPECT_FALSE(net.tick(0, 7));
  EXPECT_EQ(net.words, 2);
}

TEST(CallExchange, ComparesWhatIsCalledLater) {
  Net net(2);
  addUpTo(net.at(0).log(), 17);
  EXPECT_FALSE(net.tick(0, 1));
  addUpTo(net.at(1).log(), 16);
  EXPECT_FALSE(net.tick(1, 1));
  EXPECT_FALSE(net.tick(1, 30));
  addUpTo(net.at(1).log(), 17, 17);
  EXPECT_TRUE(net.tick(1, 31));
}

TEST(CallExchange, ARankFarBehindIsComparedByWhoeverIsAhead) {
  Net net(2);
  addUpTo(net.at(0).log(), 100);
  addUpTo(net.at(1).log(), 50, 50);
  EXPECT_FALSE(net.tick(0, 1));
  for (const int second : {1, 2, 3}) EXPECT_FALSE(net.tick(1, second));
  const auto text = net.tick(0, 4);
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("rank 1 is in its 50th"), std::string::npos) << *text;
}

TEST(CallExchange, SearchesWhatBothKeepForTheFirstDifference) {
  for (const std::uint64_t wrong : {300U, 1U, 699U}) {
    Net net(3);
    for (const int rank : {0, 1, 2}) addUpTo(net.at(rank).log(), 700, rank == 2 ? wrong : 0);
    EXPECT_FALSE(net.tick(0, 1));
    EXPECT_FALSE(net.tick(1, 1));
    auto text = net.tick(2, 1);
    if (!text) {
      EXPECT_FALSE(net.tick(0, 2));
      text = net.tick(2, 2);
    }
    ASSERT_TRUE(text);
    EXPECT_NE(text->find("rank 2 is in its " + ordinal(wrong)), std::string::npos) << *text;
    EXPECT_EQ(net.tick(1, 2), text);
  }
}

TEST(CallExchange, SaysThatCallsDifferedThatNobodyKeepsAnyMore) {
  Net net(2);
  for (const int rank : {0, 1}) addUpTo(net.at(rank).log(), 3000, rank == 1 ? 20 : 0);
  EXPECT_FALSE(net.tick(0, 1));
  EXPECT_FALSE(net.tick(1, 1));
  EXPECT_FALSE(net.tick(0, 2));
  const auto text = net.tick(1, 2);
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("have differed in one of their first 2987 collectives"), std::string::npos) << *text;
}

TEST(CallExchange, EveryRankHearsTheVerdictOfTheOneThatFindsIt) {
  Net net(3);
  for (const int rank : {0, 1, 2}) addUpTo(net.at(rank).log(), 7, rank == 2 ? 7 : 0);
  EXPECT_FALSE(net.tick(0, 1));
  EXPECT_FALSE(net.tick(1, 1));
  const auto text = net.tick(2, 1);
  ASSERT_TRUE(text);
  EXPECT_FALSE(net.find(2, 1001));
  for (const int rank : {0, 1}) {
    const auto told = net.find(rank, 1001);
    ASSERT_TRUE(told);
    EXPECT_EQ(told->text, *text);
    EXPECT_TRUE(net.at(rank).differ());
  }
}

TEST(CallExchange, WhoeverLeavesKnowsHowAllOthersStandToItsCalls) {
  Net net(3);
  addUpTo(net.at(0).log(), 40);
  addUpTo(net.at(1).log(), 20);
  addUpTo(net.at(2).log(), 3);
  EXPECT_FALSE(net.at(1).comparedBefore(Net::when(1), 1));
  net.askAll(1, 1);
  EXPECT_FALSE(net.at(1).answered(net.peersOf(1)));
  EXPECT_FALSE(net.find(0, 2));
  EXPECT_FALSE(net.find(1, 2));
  EXPECT_FALSE(net.at(1).answered(net.peersOf(1)));
  EXPECT_FALSE(net.find(2, 3));
  EXPECT_FALSE(net.find(1, 4));
  EXPECT_TRUE(net.at(1).answered(net.peersOf(1)));
  // Rank 0 has made these calls; who has made others would be heard of soon.
  EXPECT_FALSE(net.at(1).comparedBefore(Net::when(50), 1));
  EXPECT_TRUE(net.at(1).comparedBefore(Net::when(500), 1));
}

TEST(CallExchange, RanksThatLeaveTogetherSayOneWordEach) {
  Net net(8);
  for (int rank = 0; rank < 8; ++rank) addUpTo(net.at(rank).log(), 20);
  for (int rank = 0; rank < 8; ++rank) {
    EXPECT_FALSE(net.find(rank, 1));
    net.askAll(rank, 1);
    for (int other = 0; other < 8; ++other) EXPECT_FALSE(net.find(other, 2));
  }
  EXPECT_EQ(net.words, 9);  // and the first question
  for (int rank = 0; rank < 8; ++rank) EXPECT_TRUE(net.at(rank).answered(net.peersOf(rank)));
}

TEST(CallExchange, WhoComparesNothingAnyMoreHoldsNobodyUpAndAccusesNobody) {
  Net net(3);
  for (const int rank : {0, 1, 2}) addUpTo(net.at(rank).log(), 5);
  EXPECT_FALSE(net.find(0, 1));  // says five calls, the last of which it takes back
  net.at(0).log().giveUp(1);
  net.at(1).log().giveUp(1);
  for (const int rank : {0, 1}) net.at(rank).log().add(sum(9));
  EXPECT_TRUE(net.at(0).comparedBefore(Net::when(2), 0));
  net.askAll(2, 2);
  for (int ms = 3; ms < 2000; ms += 300) {
    for (const int rank : {0, 1, 2}) EXPECT_FALSE(net.find(rank, ms));
  }
  EXPECT_TRUE(net.at(2).answered(net.peersOf(2)));
}

/// Nothing waits for that, and the communicator hears of lost peers as before.
TEST(CallExchange, AVerdictOnARankThatIsNoneIsNone) {
  Net net(2);
  net.at(0).watched(true);
  CallWord verdict = lostVerdict(7, 3);
  EXPECT_TRUE(net.at(0).hear(1, bytesOf(verdict)));
  EXPECT_TRUE(net.at(0).failing());
  EXPECT_FALSE(net.find(0, 1));
  EXPECT_FALSE(net.at(0).failing());
}

TEST(CallExchange, WhatNobodyLooksAtTakesLittleMemory) {
  CallExchange exchange;
  CallLog log;
  addUpTo(log, 1);
  const CallWord word = wordUpTo(log, 1);
  EXPECT_FALSE(exchange.due());
  for (int i = 0; i < 100000; ++i) EXPECT_TRUE(exchange.hear(1, bytesOf(word)));
  EXPECT_TRUE(exchange.due());
  EXPECT_LE(exchange.heard(), 4096U);
}

TEST(CallExchange, WhoHasLeftIsNotWaitedFor) {
  Net net(2);
  addUpTo(net.at(0).log(), 2);
  net.askAll(0, 1);
  EXPECT_FALSE(net.at(0).answered(net.peersOf(0)));
  net.at(0).hearLast(1, {});
  EXPECT_TRUE(net.at(0).answered(net.peersOf(0)));
}

TEST(CallExchange, AnErrorStandsWhereAllCallsAgree) {
  Net net(2);
  EXPECT_FALSE(net.at(0).suspect(Status(ncclRemoteError), "cut short"));
  net.at(0).watched(true);
  EXPECT_FALSE(net.at(0).suspect(Status(ncclRemoteError), "cut short"));
  for (const int rank : {0, 1}) addUpTo(net.at(rank).log(), 5);
  EXPECT_TRUE(net.at(0).suspect(Status(ncclRemoteError), "cut short"));
  EXPECT_FALSE(net.find(0, 1));
  EXPECT_FALSE(net.find(1, 2));
  const auto finding = net.find(0, 3);
  ASSERT_TRUE(finding);
  EXPECT_FALSE(finding->differ);
  EXPECT_EQ(finding->text, "cut short");
  EXPECT_EQ(finding->why.code(), ncclRemoteError);
}

TEST(CallExchange, AnErrorGivesWayToCallsThatDiffer) {
  Net net(2);
  for (const int rank : {0, 1}) addUpTo(net.at(rank).log(), 5, rank == 1 ? 4 : 0);
  net.at(0).watched(true);
  EXPECT_TRUE(net.at(0).suspect(Status(ncclRemoteError), "cut short"));
  EXPECT_FALSE(net.find(0, 1));
  EXPECT_TRUE(net.find(1, 2));
  const auto finding = net.find(0, 3);
  ASSERT_TRUE(finding);
  EXPECT_TRUE(finding->differ);
  EXPECT_NE(finding->text.find("4th"), std::string::npos) << finding->text;
}

TEST(CallExchange, AnErrorStandsAfterASecondWhereNobodyAnswers) {
  Net net(2);
  addUpTo(net.at(0).log(), 1);
  net.at(0).watched(true);
  EXPECT_TRUE(net.at(0).suspect(Status(ncclRemoteError), "cut short"));
  EXPECT_FALSE(net.find(0, 1));
  EXPECT_FALSE(net.find(0, 900));
  EXPECT_TRUE(net.find(0, 1001));
}

}  // namespace
}  // namespace tutti::comm
