#include "comm/diagnosis/diagnosis.h"

#include <gtest/gtest.h>

#include <vector>

#include "comm/diagnosis/blocked_by.h"

namespace tutti::comm {
namespace {

RankState stateOf(RankDoing doing, std::uint64_t collectives, int waitsFor = -1) {
  RankState state;
  state.doing = doing;
  state.forMs = 2500;
  state.launched = state.collectives = collectives;
  state.waitsFor[0] = waitsFor;
  setOperation(state, "AllReduce");
  return state;
}

/// Rank 1 of 4 is in its 12th collective, as all others are.
StallCase inTwelfth() {
  StallCase stall;
  stall.self = 1;
  stall.nRanks = 4;
  stall.own = stateOf(RankDoing::Stalled, 12, 0);
  for (const int rank : {0, 2, 3}) stall.answers[rank] = stateOf(RankDoing::Stalled, 12, (rank + 3) % 4);
  stall.describe = [](int rank) { return "rank " + std::to_string(rank) + " (host b)"; };
  stall.parent = [](int rank) { return rank == 0 ? -1 : rank == 3 ? 2 : 0; };
  stall.callOf = [](std::uint64_t n) {
    return n == 12 ? std::optional(Call{.count = 8, .datatype = ncclInt32, .redOp = ncclSum}) : std::nullopt;
  };
  return stall;
}

TEST(Diagnosis, NamesTheRankThatHasNotCalled) {
  StallCase stall = inTwelfth();
  stall.answers[3] = stateOf(RankDoing::Idle, 11);
  EXPECT_EQ(judgeStall(stall).text,
            "rank 3 (host b) has launched 11 collective operations, this one is the 12th: it has not "
            "called AllReduce yet (AllReduce of 8 ncclInt32, sum)");
}

TEST(Diagnosis, NamesSeveralRanksThatAreLate) {
  StallCase stall = inTwelfth();
  stall.own = stateOf(RankDoing::Stalled, 14, 0);
  stall.answers[0] = stateOf(RankDoing::Idle, 11);
  stall.answers[3] = stateOf(RankDoing::Idle, 11);
  EXPECT_EQ(judgeStall(stall).text,
            "rank 0 (host b) and rank 3 (host b) have launched 11 collective operations, this rank 14: "
            "they have not called AllReduce yet (AllReduce of 8 ncclInt32, sum)");
}

TEST(Diagnosis, SaysWhatALateRankDoesInstead) {
  StallCase stall = inTwelfth();
  stall.answers[3] = stateOf(RankDoing::Running, 11);
  EXPECT_NE(judgeStall(stall).text.find("(it has been in AllReduce for 2.5 s)"), std::string::npos)
      << judgeStall(stall).text;
}

TEST(Diagnosis, NamesWhoDoesNotAnswer) {
  StallCase stall = inTwelfth();
  stall.answers.erase(0);
  EXPECT_EQ(judgeStall(stall).text.find(
                "rank 0 (host b) does not answer: its process is stopped or its host is not reachable"),
            0U)
      << judgeStall(stall).text;
}

TEST(Diagnosis, ARankBehindAStoppedOneIsNotBlamed) {
  StallCase stall = inTwelfth();
  stall.answers.erase(2);
  stall.answers.erase(3);
  const std::string text = judgeStall(stall).text;
  EXPECT_EQ(text.find("rank 2 (host b) does not answer"), 0U) << text;
  EXPECT_EQ(text.find("rank 3"), std::string::npos) << text;
}

TEST(Diagnosis, ARankBehindAStoppedOneIsNotBlamedFromBelowEither) {
  StallCase stall = inTwelfth();
  stall.self = 3;
  stall.own = stateOf(RankDoing::Stalled, 12, 2);
  stall.answers.clear();
  const std::string text = judgeStall(stall).text;
  EXPECT_EQ(text.find("rank 2 (host b) does not answer"), 0U) << text;
}

TEST(Diagnosis, NamesTheNetworkThatDoesNotFinishACollective) {
  StallCase stall = inTwelfth();
  stall.answers[2] = stateOf(RankDoing::Stalled, 12);
  stall.answers[2].holds[0] = {2, -1, proxy::BlockedBy::Network, device::ConnKind::Graph, 0, 0};
  EXPECT_NE(judgeStall(stall).text.find("rank 2 (host b) waits for the network in which it runs (CollNet)"),
            std::string::npos)
      << judgeStall(stall).text;
  stall.answers[2].holds[0].blockedBy = proxy::BlockedBy::Nobody;
  EXPECT_EQ(judgeStall(stall).text.find("CollNet"), std::string::npos);
  stall.answers[2].holds[0].blockedBy = proxy::BlockedBy::Network;
  stall.answers[2].waitsFor[0] = 3;  // a head is done with what its neighbours gave, and looks as if it waited for more
  stall.answers[3].waitsFor[0] = 2;
  EXPECT_NE(judgeStall(stall).text.find("rank 2 (host b) waits for the network"), std::string::npos);
  stall.answers[3].waitsFor[0] = -1;
  EXPECT_NE(judgeStall(stall).text.find("rank 3 (host b) waits for nobody"), std::string::npos)
      << "its node's part is missing: " << judgeStall(stall).text;
  stall.answers[0] = stateOf(RankDoing::Idle, 11);
  EXPECT_EQ(judgeStall(stall).text.find("rank 0 (host b) has launched 11"), 0U) << "a call needs all nodes";
}

TEST(Diagnosis, NamesWhoWaitsForNobody) {
  StallCase stall = inTwelfth();
  stall.answers[2] = stateOf(RankDoing::Running, 12);
  EXPECT_NE(judgeStall(stall).text.find("rank 2 (host b) waits for nobody: its device is stuck or stopped"),
            std::string::npos)
      << judgeStall(stall).text;
  stall.answers[2] = stateOf(RankDoing::Deaf, 12);
  EXPECT_NE(judgeStall(stall).text.find("its device does not answer"), std::string::npos) << judgeStall(stall).text;
}

TEST(Diagnosis, RanksMayWaitInACircle) {
  EXPECT_NE(judgeStall(inTwelfth()).text.find("wait for each other in a circle"), std::string::npos);
}

TEST(Diagnosis, AMessageWaitsForItsOtherHalf) {
  StallCase stall = inTwelfth();
  stall.own.message = 1;
  stall.own.waitsFor[0] = 2;
  stall.answers[2] = stateOf(RankDoing::Idle, 3);
  EXPECT_EQ(judgeStall(stall).text,
            "rank 2 (host b) has nothing under way after 3 operations: it has not called the matching "
            "Send or Recv");
}

TEST(Diagnosis, ACallThatConnectsCountsAsTheNextOperation) {
  StallCase stall = inTwelfth();
  stall.own = stateOf(RankDoing::Connecting, 1);
  for (auto& [rank, state] : stall.answers) state = stateOf(RankDoing::Connecting, 1);
  stall.answers[3] = stateOf(RankDoing::Idle, 0);
  EXPECT_EQ(judgeStall(stall).text,
            "rank 3 (host b) has launched 0 collective operations, this one is the 1st: it has not "
            "called AllReduce yet");
}

TEST(Diagnosis, ReplaysOfGraphsAreNotComparedByNumber) {
  StallCase stall = inTwelfth();
  stall.own.replays = 1;
  stall.answers[3] = stateOf(RankDoing::Idle, 11);
  EXPECT_EQ(judgeStall(stall).text.find("launched 11"), std::string::npos) << judgeStall(stall).text;
}

TEST(Diagnosis, WhoHasLeftInPeaceIsNotCalledUnreachable) {
  StallCase stall = inTwelfth();
  stall.answers.erase(2);
  stall.answers[3] = stateOf(RankDoing::Stalled, 12, 2);
  stall.hasLeft = [](int rank) { return rank == 2; };
  EXPECT_EQ(judgeStall(stall).text,
            "rank 2 (host b) has left the communicator: it has not called what is waited for, or was given other "
            "arguments");
  stall.answers[3] = stateOf(RankDoing::Idle, 11);
  EXPECT_EQ(judgeStall(stall).text.find("rank 3 (host b) has launched 11"), 0U) << "rank 2 has done its part";
}

TEST(Diagnosis, WhoLeftShortlyAfterItAnsweredIsNotLate) {
  StallCase stall = inTwelfth();
  stall.answers[2] = stateOf(RankDoing::Idle, 11);
  stall.hasLeft = [](int rank) { return rank == 2; };
  EXPECT_EQ(judgeStall(stall).text.find("rank 2 (host b) has left the communicator"), 0U) << judgeStall(stall).text;
}

TEST(Diagnosis, OthersAreFollowedBeforeOneThatHasLeft) {
  StallCase stall = inTwelfth();
  stall.answers.erase(2);
  stall.hasLeft = [](int rank) { return rank == 2; };
  stall.own.waitsFor = {2, 3, -1, -1};
  stall.answers[3] = stateOf(RankDoing::Idle, 12);
  EXPECT_EQ(judgeStall(stall).text.find("rank 3 (host b) has nothing under way"), 0U) << judgeStall(stall).text;
}

TEST(Diagnosis, OfRanksBehindOneThatHasLeftNothingIsKnown) {
  StallCase stall = inTwelfth();
  stall.answers.erase(2);
  stall.answers.erase(3);
  stall.hasLeft = [](int rank) { return rank == 2; };
  stall.own.waitsFor[0] = 3;
  EXPECT_EQ(judgeStall(stall).text,
            "rank 3 (host b) cannot be asked: a rank through which it is asked has left the communicator");
}

TEST(Diagnosis, WhoWaitsForARankThatMovesIsNotStalled) {
  StallCase stall = inTwelfth();
  stall.limit = milliseconds(2000);
  stall.own.waitsFor[0] = 2;
  stall.answers[2] = stateOf(RankDoing::Running, 12, 3);
  EXPECT_TRUE(judgeStall(stall).moves);
  EXPECT_EQ(judgeStall(stall).text, "rank 2 (host b) has been in AllReduce for 2.5 s, and moves");
  stall.answers[2].forMs = 60'000;
  EXPECT_FALSE(judgeStall(stall).moves) << "there nobody looks";
  stall.answers[2] = stateOf(RankDoing::Stalled, 12);
  EXPECT_FALSE(judgeStall(stall).moves);
  stall.answers[2] = stateOf(RankDoing::Running, 11);
  EXPECT_TRUE(judgeStall(stall).moves) << "late, but on its way";
}

using device::ConnKind;

/// Rank 0 has given rank 1, which reports, a message; rank 2 may send in its stead.
StallCase withHeld(proxy::BlockedBy blockedBy, int relay) {
  StallCase stall = inTwelfth();
  stall.own.starves[0] = {channelBit(1), 0};
  stall.answers[0].holds[0] = {1, relay, blockedBy, device::ConnKind::Graph, channelBit(1)};
  return stall;
}

TEST(Diagnosis, NamesTheRelayWhoseEngineHangs) {
  EXPECT_EQ(judgeStall(withHeld(proxy::BlockedBy::Relay, 2)).text,
            "rank 2 (host b) holds it up: it sends to this rank in the stead of rank 0 (host b), and its progress "
            "engine does not turn: it hangs in a call of the network, or gets no processor. NCCL_PXN_DISABLE=1 makes "
            "every rank send by itself");
}

TEST(Diagnosis, NamesTheRelayWhoseNetworkStandsStill) {
  EXPECT_EQ(judgeStall(withHeld(proxy::BlockedBy::Network, 2)).text,
            "this rank waits for what rank 2 (host b), in the stead of rank 0 (host b), has sent: the network does not "
            "carry it. Look at the way between these two hosts, at the NIC that rank 2 (host b) sends by, and whether "
            "the progress engine of rank 1 hangs");
}

TEST(Diagnosis, NamesBothEndsOfANetworkThatStandsStill) {
  EXPECT_EQ(judgeStall(withHeld(proxy::BlockedBy::Network, -1)).text,
            "this rank waits for what rank 0 (host b) has sent: the network does not carry it. Look at the way between "
            "their hosts, and whether the progress engine of rank 1 hangs");
}

TEST(Diagnosis, FindsAHeldMessageThroughOthers) {
  StallCase stall = inTwelfth();  // rank 1 waits for 0, which waits for 3
  stall.answers[0].starves[0] = {0, channelBit(9)};
  stall.answers[3].holds[1] = {0, 2, proxy::BlockedBy::Relay, device::ConnKind::Mesh, channelBit(9)};
  const std::string text = judgeStall(stall).text;
  EXPECT_EQ(text.find("rank 2 (host b) holds it up: it sends to rank 0 (host b) in the stead of rank 3"), 0U) << text;
}

TEST(Diagnosis, WhoeverHasNotAskedForAMessageIsNotKeptFromIt) {
  StallCase stall = withHeld(proxy::BlockedBy::Network, 2);
  stall.own.starves = {};
  EXPECT_NE(judgeStall(stall).text.find("wait for each other in a circle"), std::string::npos);
  stall = withHeld(proxy::BlockedBy::Nobody, 2);
  EXPECT_NE(judgeStall(stall).text.find("wait for each other in a circle"), std::string::npos);
}

TEST(Diagnosis, IgnoresRelaysThatAreNoRanks) {
  for (const proxy::BlockedBy blockedBy : {proxy::BlockedBy::Network, proxy::BlockedBy::Relay}) {
    StallCase stall = withHeld(blockedBy, 4);
    stall.describe = [](int rank) {
      EXPECT_LT(rank, 4);
      return std::string();
    };
    EXPECT_NE(judgeStall(stall).text.find("wait for each other in a circle"), std::string::npos);
  }
}

/// Rank 0 sends a message and then all-reduces, rank 1 does so the other way round: nobody has asked for the message.
TEST(Diagnosis, AMessageThatNobodyAskedForIsNotTheOneThatIsWaitedFor) {
  StallCase stall = inTwelfth();
  stall.nRanks = 2;
  stall.own = stateOf(RankDoing::Stalled, 1, 0);
  stall.own.starves[0] = {channelBit(0), 0};
  RankState sender = stateOf(RankDoing::Stalled, 0, 1);
  setOperation(sender, "SendRecv");
  sender.message = 1;
  sender.holds[0] = {1, -1, proxy::BlockedBy::Network, device::ConnKind::Mesh, channelBit(0)};
  stall.answers = {{0, sender}};
  stall.callOf = [](std::uint64_t) { return std::optional(Call{.count = 8, .datatype = ncclInt32, .redOp = ncclSum}); };
  EXPECT_EQ(judgeStall(stall).text,
            "rank 0 (host b) has launched 0 collective operations, this one is the 1st: it has not called AllReduce "
            "yet (AllReduce of 8 ncclInt32, sum) (it has been in SendRecv for 2.5 s)");
  stall.own.starves[0] = {0, channelBit(1)};
  EXPECT_EQ(judgeStall(stall).text.find("the network does not carry it"), std::string::npos) << "another channel";
  stall.own.starves[0] = {0, channelBit(0)};
  EXPECT_NE(judgeStall(stall).text.find("the network does not carry it"), std::string::npos);
}

TEST(Diagnosis, SaysForWhomARankSendsThatDoesNotAnswer) {
  StallCase stall = withHeld(proxy::BlockedBy::Relay, 3);
  stall.answers.erase(3);
  EXPECT_EQ(judgeStall(stall).text,
            "rank 3 (host b) does not answer: its process is stopped or its host is not reachable; rank 3 sends to "
            "rank 1 (host b) in the stead of rank 0 (host b), which waits for that");
}

TEST(StallHolds, ThoseThatMayExplainAStallAreToldFirst) {
  std::vector<RankState::Hold> each;
  for (int peer = 0; peer < 40; ++peer) {
    each.push_back({peer, -1, proxy::BlockedBy::Network, device::ConnKind::Graph, channelBit(0)});
    each.push_back({peer, -1, proxy::BlockedBy::Network, device::ConnKind::Graph, channelBit(2)});
  }
  each.push_back({50, 3, proxy::BlockedBy::Relay, device::ConnKind::Mesh, channelBit(1)});
  RankState own = stateOf(RankDoing::Stalled, 12, 33);
  tellHolds(own, each);
  EXPECT_EQ(own.holds[0].receiver, 33) << "it waits for that peer";
  EXPECT_EQ(own.holds[0].channels, channelBit(0) | channelBit(2));
  EXPECT_EQ(own.holds[1].receiver, 50) << "a relay keeps it";
  for (std::size_t i = 2; i < own.holds.size(); ++i) EXPECT_EQ(own.holds[i].receiver, static_cast<int>(i) - 2);
  tellHolds(own, std::span(each).last(1));
  EXPECT_EQ(own.holds[0].receiver, 50);
  EXPECT_EQ(own.holds[0].kind, device::ConnKind::Mesh);
  EXPECT_EQ(own.holds[1].blockedBy, proxy::BlockedBy::Nobody);
}

TEST(StallBoard, IgnoresWhatIsNoState) {
  StallBoard board;
  const std::vector<std::byte> noise(sizeof(RankState), std::byte{0xff});
  board.hear(1, noise);
  board.hear(1, std::span(noise).first(8));
  EXPECT_TRUE(board.since({}).empty());
  EXPECT_FALSE(board.takeAsked());
  RankState state;
  state.holds[7].kind = static_cast<device::ConnKind>(device::kConnKinds);
  board.hear(1, std::as_bytes(std::span(&state, 1)));
  EXPECT_TRUE(board.since({}).empty());
  state = {};
  state.asks = 1;
  board.hear(2, std::as_bytes(std::span(&state, 1)));
  EXPECT_TRUE(board.takeAsked());
  EXPECT_FALSE(board.takeAsked());
  EXPECT_EQ(board.since({}).count(2), 1U);
}

}  // namespace
}  // namespace tutti::comm
