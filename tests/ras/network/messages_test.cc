#include "ras/network/messages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "ras/network/compose.h"

namespace tutti::ras {
namespace {

bootstrap::Key keyOf(int n) {
  EXPECT_TRUE(bootstrap::initCrypto().ok());
  bootstrap::Key key{};
  key[0] = static_cast<std::byte>(n);
  return key;
}

Member memberOf(int n) {
  Member member;
  member.key = keyOf(n);
  member.facts = {idOf(member.key),  Address::loopback(AF_INET, static_cast<std::uint16_t>(n)), n, 7, 1, 2,
                  ProcessState::Dead};
  return member;
}

Answer sampleAnswer() {
  Answer answer;
  answer.unresponsive = {3, 4};
  CommFacts comm;
  comm.key = {1, 2, 3};
  comm.size = 3;
  RankFacts rank;
  rank.rank = 1;
  rank.state = {7, 6, true, false, true, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {2, 11, 12, 13}};
  comm.ranks.push_back(rank);
  rank.rank = 2;
  comm.ranks.push_back(rank);
  comm.members = std::make_shared<const std::vector<CommMember>>(std::vector<CommMember>{{1, 2, 3}, {4, 5, 6}, {}});
  comm.name = "tensor parallel";
  comm.parent = 17;
  answer.comms.push_back(comm);
  return answer;
}

TEST(Table, ComesBackAsItWas) {
  const Member member = memberOf(5);
  const Member* const pointer = &member;
  const Bytes bytes = encodeTable(std::span(&pointer, 1), keyOf(1));
  const auto back = decodeTable(bytes, keyOf(1));
  ASSERT_TRUE(back && back->size() == 1);
  EXPECT_EQ(back->front().key, member.key);
  EXPECT_EQ(back->front().facts.address, member.facts.address);
  EXPECT_EQ(back->front().facts.pid, 5);
  EXPECT_EQ(back->front().facts.state, ProcessState::Dead);
}

TEST(Table, ShowsNoKeyToWhomListens) {
  const Member member = memberOf(5);
  const Member* const pointer = &member;
  const Bytes bytes = encodeTable(std::span(&pointer, 1), keyOf(1));
  EXPECT_EQ(std::search(bytes.begin(), bytes.end(), member.key.begin(), member.key.end()), bytes.end());
  EXPECT_FALSE(decodeTable(bytes, keyOf(2)).has_value());
  EXPECT_NE(bytes, encodeTable(std::span(&pointer, 1), keyOf(1)));  // a mask is used once
}

TEST(AnswerMessage, ComesBackAsItWas) {
  const auto back = decodeAnswer(encodeAnswer(sampleAnswer()), 99);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->unresponsive, (std::vector<ProcessId>{3, 4}));
  ASSERT_EQ(back->comms.size(), 1U);
  const CommFacts& comm = back->comms.front();
  EXPECT_EQ(comm.key, (CommKey{1, 2, 3}));
  ASSERT_EQ(comm.ranks.size(), 2U);
  const RankFacts& rank = comm.ranks.front();
  EXPECT_EQ(rank.process, 99U);
  EXPECT_EQ(rank.state.initState, 7);
  EXPECT_EQ(rank.state.asyncError, 6);
  EXPECT_TRUE(rank.state.finalizeCalled && !rank.state.destroyFlag && rank.state.abortFlag);
  EXPECT_EQ(rank.state.counts[9], 10U);
  EXPECT_EQ(rank.state.lastOp.ageMs, 13U);
  EXPECT_EQ((*comm.members)[1].cudaDevice, 5);
  EXPECT_EQ(comm.name, "tensor parallel");
  EXPECT_EQ(comm.parent, 17U);
}

CommFacts sentWith(const std::string& name, std::uint64_t parent) {
  Answer answer = sampleAnswer();
  answer.comms[0].name = name;
  answer.comms[0].parent = parent;
  const auto back = decodeAnswer(encodeAnswer(answer), 99);
  EXPECT_TRUE(back.has_value());
  return back ? back->comms.at(0) : CommFacts();
}

TEST(AnswerMessage, HasNamesAndParentsThatThereAre) {
  EXPECT_EQ(sentWith("", 17).parent, 17U);
  EXPECT_EQ(sentWith("", 17).name, "");
  EXPECT_EQ(sentWith("a", 0).parent, 0U);
  EXPECT_EQ(sentWith("a", 0).name, "a");
  EXPECT_EQ(sentWith("", 0).ranks.size(), 2U);
  EXPECT_EQ(sentWith(std::string(100000, 'n'), 17).name, std::string(256, 'n')) << "what it takes has a bound";
}

TEST(AnswerMessage, IsNoneWithANameThatIsTooLong) {
  Answer answer = sampleAnswer();
  answer.unresponsive = {};
  answer.comms[0].name = std::string(256, 'n');
  Bytes bytes = encodeAnswer(answer);
  constexpr std::size_t kNoteBytes = 8 + 28;
  ASSERT_EQ(bytes[kNoteBytes], std::byte{8});
  ASSERT_EQ(bytes[kNoteBytes + 1], std::byte{1});
  bytes[kNoteBytes] = std::byte{9};
  bytes.insert(bytes.begin() + kNoteBytes + 4 + 8, std::byte{'n'});
  EXPECT_FALSE(decodeAnswer(bytes, 1).has_value());
}

TEST(AnswerMessage, IsNoneWithHalfAParent) {
  Answer answer = sampleAnswer();
  answer.unresponsive = {};
  answer.comms[0].name = "";
  Bytes bytes = encodeAnswer(answer);
  constexpr std::size_t kNoteBytes = 8 + 28;
  ASSERT_EQ(bytes[kNoteBytes], std::byte{8});
  bytes[kNoteBytes] = std::byte{7};
  bytes.erase(bytes.begin() + kNoteBytes + 4);
  EXPECT_FALSE(decodeAnswer(bytes, 1).has_value());
}

TEST(AnswerMessage, IsNoneWithRanksOutsideOfTheirCommunicatorOrTwice) {
  Answer answer = sampleAnswer();
  answer.comms[0].ranks[1].rank = 3;
  EXPECT_FALSE(decodeAnswer(encodeAnswer(answer), 1).has_value());
  answer.comms[0].ranks[1].rank = 1;
  EXPECT_FALSE(decodeAnswer(encodeAnswer(answer), 1).has_value());
  answer = sampleAnswer();
  answer.comms[0].size = 0;
  EXPECT_FALSE(decodeAnswer(encodeAnswer(answer), 1).has_value());
  answer = sampleAnswer();
  answer.comms[0].size = 4;  // but three members
  EXPECT_FALSE(decodeAnswer(encodeAnswer(answer), 1).has_value());
}

TEST(AnswerMessage, IsNoneWhereAnythingIsMissingOrLeftOver) {
  const Bytes bytes = encodeAnswer(sampleAnswer());
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(decodeAnswer(std::span(bytes).first(n), 1).has_value()) << n;
  }
  Bytes more = bytes;
  more.push_back({});
  EXPECT_FALSE(decodeAnswer(more, 1).has_value());
}

TEST(AnswerMessage, IsNoneWithBitsThatMeanNothing) {
  Answer answer = sampleAnswer();
  answer.unresponsive = {};
  answer.comms[0].name = "";
  answer.comms[0].parent = 0;
  const Bytes bytes = encodeAnswer(answer);
  constexpr std::size_t kComm = 8;           // behind two numbers
  constexpr std::size_t kRank = kComm + 36;  // behind the head and a number
  for (const std::size_t at : {kComm + 31, kRank + 20, kRank + 22}) {
    Bytes changed = bytes;
    changed[at] |= std::byte{0x80};
    EXPECT_FALSE(decodeAnswer(changed, 1).has_value()) << at;
  }
}

TEST(Messages, OutliveBytesThatWereChanged) {
  std::mt19937 random(11);
  const Member member = memberOf(5);
  const std::vector<const Member*> members(3, &member);
  const Bytes table = encodeTable(members, keyOf(1));
  const Bytes answer = encodeAnswer(sampleAnswer());
  for (int i = 0; i < 20000; ++i) {
    Bytes bytes = i % 4 == 0 ? table : answer;
    for (std::uint32_t n = random() % 8; n > 0; --n) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    bytes.resize(bytes.size() - random() % 3);
    static_cast<void>(decodeTable(bytes, keyOf(1)));
    const auto decoded = decodeAnswer(bytes, 1);
    if (!decoded) continue;
    for (const CommFacts& comm : decoded->comms) {
      for (const RankFacts& rank : comm.ranks) ASSERT_LT(rank.rank, comm.size);
    }
    if (decoded->comms.empty() || decoded->comms.front().size < 1000)
      static_cast<void>(compose({}, {{1, *decoded}}, {}));
  }
}

TEST(Compose, FindsOutWhoIsMissingAndWhoHasForgotten) {
  Answer first = sampleAnswer();  // ranks 1 and 2 of 3; rank 0 is of process 1
  std::map<ProcessId, Answer> answers{{50, first}};
  Survey survey = compose({}, answers, {});
  ASSERT_EQ(survey.comms.front().absent.size(), 1U);
  EXPECT_EQ(survey.comms.front().absent.front().process, 1U);
  EXPECT_FALSE(survey.comms.front().absent.front().answered);
  answers[1] = {};
  survey = compose({}, answers, {});
  EXPECT_TRUE(survey.comms.front().absent.front().answered);
}

TEST(Compose, HasTheNameAndTheParentThatAnyRankKnows) {
  Answer knows = sampleAnswer();
  Answer other = sampleAnswer();
  other.comms[0].name = "";
  other.comms[0].parent = 0;
  const Survey survey = compose({}, {{1, other}, {2, knows}}, {});
  EXPECT_EQ(survey.comms.front().name, "tensor parallel");
  EXPECT_EQ(survey.comms.front().parent, 17U);
}

TEST(Compose, TakesTheFirstWhereTwoClaimToBeOneRank) {
  const Answer answer = sampleAnswer();
  const Survey survey = compose({}, {{1, answer}, {2, answer}}, {});
  EXPECT_EQ(survey.comms.front().ranks.size(), 2U);
}

TEST(Compose, KeepsALimitedNumberOfRanksThatAreMissing) {
  Answer answer;
  for (std::uint64_t hash = 0; hash < 100; ++hash) {
    CommFacts comm;
    comm.key.hash = hash;
    comm.size = 1 << 24;
    answer.comms.push_back(comm);
  }
  std::size_t absent = 0;
  for (const CommFacts& comm : compose({}, {{1, answer}}, {}).comms) absent += comm.absent.size();
  EXPECT_EQ(absent, kMostAbsent);
}

TEST(Compose, CallsUnresponsiveWhomAnotherWaitsForInVainUnlessItAnswers) {
  Member silent = memberOf(1);
  Member answering = memberOf(2);
  Answer witness;
  witness.unresponsive = {silent.facts.id, answering.facts.id};
  const Survey survey = compose({&silent, &answering}, {{9, witness}, {answering.facts.id, {}}}, {});
  EXPECT_TRUE(survey.find(silent.facts.id)->unresponsive);
  EXPECT_FALSE(survey.find(answering.facts.id)->unresponsive);
}

}  // namespace
}  // namespace tutti::ras
