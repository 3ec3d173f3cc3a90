#include "bootstrap/root_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>

namespace tutti::bootstrap {
namespace {

CheckIn rankOf(int rank, int nRanks) {
  CheckIn c{rank,  nRanks,     0, 1,
            23007, 100 + rank, 1, Address::loopback(AF_INET, static_cast<std::uint16_t>(1000 + rank)),
            {}};
  setText(c.host, "host" + std::to_string(rank));
  return c;
}

std::optional<Notice> noticeIn(const RootState::Sends& sends, std::uint64_t to) {
  for (const RootSend& send : sends) {
    if (send.to == to && send.type == FrameType::Notice) return decodeNotice(send.payload);
  }
  return std::nullopt;
}

std::string textIn(const RootState::Sends& sends, std::uint64_t to) {
  const auto notice = noticeIn(sends, to);
  return notice ? notice->text : "";
}

class RootStateTest : public testing::Test {
 protected:
  RootState state_{Welcome{}, 99, Key{}};
};

TEST_F(RootStateTest, PlacesEverybodyWhenTheLastOneComes) {
  for (int r = 0; r < 2; ++r) {
    for (const RootSend& s : state_.onCheckIn(r + 1, rankOf(r, 3))) EXPECT_EQ(s.type, FrameType::Welcome);
  }
  int placements = 0;
  for (const RootSend& s : state_.onCheckIn(3, rankOf(2, 3))) placements += s.type == FrameType::Placement ? 1 : 0;
  EXPECT_EQ(placements, 3);
  EXPECT_TRUE(state_.complete());
  for (std::uint64_t c = 1; c <= 3; ++c) {
    EXPECT_FALSE(state_.finished());
    state_.onDone(c);
  }
  EXPECT_TRUE(state_.finished());
}

TEST_F(RootStateTest, DuplicateRankIsToldToAllNamingBoth) {
  state_.onCheckIn(1, rankOf(0, 3));
  CheckIn twin = rankOf(0, 3);
  setText(twin.host, "elsewhere");
  const auto sends = state_.onCheckIn(2, twin);
  for (const std::uint64_t conn : {1U, 2U}) {
    EXPECT_NE(textIn(sends, conn).find("duplicate rank: rank 0 (host host0, pid 100) and rank 0 (host elsewhere"),
              std::string::npos)
        << textIn(sends, conn);
  }
}

TEST_F(RootStateTest, DifferentSizesRootsAndVersionsAreNamed) {
  const auto complaint = [](auto change) {
    RootState state{Welcome{}, 99, Key{}};
    state.onCheckIn(1, rankOf(0, 4));
    CheckIn odd = rankOf(1, 4);
    change(odd);
    const auto sends = state.onCheckIn(2, odd);
    EXPECT_EQ(textIn(sends, 1), textIn(sends, 2));
    return textIn(sends, 1);
  };
  EXPECT_NE(complaint([](CheckIn& c) { c.nRanks = 5; }).find("mismatched number of ranks"), std::string::npos);
  EXPECT_NE(complaint([](CheckIn& c) { c.nRoots = 2; }).find("mismatched number of unique ids"), std::string::npos);
  EXPECT_NE(complaint([](CheckIn& c) { c.version = 1; }).find("mismatched library versions"), std::string::npos);
  EXPECT_NE(complaint([](CheckIn& c) { c.rank = 9; }).find("out of range"), std::string::npos);
  EXPECT_NE(complaint([](CheckIn& c) { c.rootIndex = 1; }).find("lists of unique ids differ"), std::string::npos);
}

TEST_F(RootStateTest, LatecomersHearOfTheFailureToo) {
  state_.onCheckIn(1, rankOf(0, 3));
  state_.onCheckIn(2, rankOf(1, 4));
  EXPECT_NE(textIn(state_.onCheckIn(3, rankOf(2, 3)), 3).find("mismatched number of ranks"), std::string::npos);
}

TEST_F(RootStateTest, TheEndOfItsProcessIsToldToWhoWaitsWithWhatItMayComeFrom) {
  EXPECT_TRUE(state_.onProcessEnd("").empty()) << "nobody waits";
  EXPECT_NE(textIn(state_.onCheckIn(1, rankOf(1, 3)), 1).find("ended by exit()"), std::string::npos) << "until then";
  RootState state{[] {
                    Welcome self;
                    self.pid = 7;
                    setText(self.host, "origin");
                    return self;
                  }(),
                  99, Key{}};
  state.onCheckIn(1, rankOf(1, 3));
  const auto sends = state.onProcessEnd(", perhaps because another one of its process had failed: rank 2 died");
  EXPECT_EQ(textIn(sends, 1),
            "Bootstrap: process 7 on host origin, which made the unique id, left while the communicator was being "
            "made, for its process ended by exit(), perhaps because another one of its process had failed: rank 2 "
            "died");
  EXPECT_EQ(textIn(state.onCheckIn(2, rankOf(2, 3)), 2), textIn(sends, 1)) << "who comes late hears it, too";
}

TEST_F(RootStateTest, TheEndOfItsProcessIsItsOwnFailureUnlessItMayFollowFromAnother) {
  for (const bool follows : {false, true}) {
    RootState state{Welcome{}, 99, Key{}};
    state.onCheckIn(1, rankOf(1, 3));
    const auto notice = noticeIn(state.onProcessEnd(follows ? ", perhaps because of that" : ""), 1);
    ASSERT_TRUE(notice.has_value());
    EXPECT_EQ(notice->cause, follows ? Cause::Aborted : Cause::Failed) << "what others remember of it";
  }
}

TEST_F(RootStateTest, WhoHasAllItNeedsHearsNothingOfTheEndOfTheProcess) {
  state_.onCheckIn(1, rankOf(0, 2));
  state_.onCheckIn(2, rankOf(1, 2));
  state_.onDone(1);
  state_.onDone(2);
  EXPECT_TRUE(state_.onProcessEnd("").empty());
}

TEST_F(RootStateTest, DeadlineSaysWhatMayHaveKeptTheMissing) {
  state_.onCheckIn(1, rankOf(0, 2));
  const std::string text = textIn(state_.onDeadline(5.0, ", perhaps because of that"), 1);
  EXPECT_TRUE(text.ends_with(", perhaps because of that")) << text;
}

TEST_F(RootStateTest, DeadlineNamesTheMissing) {
  state_.onCheckIn(1, rankOf(0, 4));
  state_.onCheckIn(2, rankOf(2, 4));
  const std::string text = textIn(state_.onDeadline(5.0, ""), 1);
  EXPECT_NE(text.find("ranks 1 and 3 of 4 did not come"), std::string::npos) << text;
}

TEST_F(RootStateTest, TheRankOfItsOwnProcessHearsOfAFailureLast) {
  CheckIn own = rankOf(0, 4);
  own.processHash = 99;
  state_.onCheckIn(1, own);
  state_.onCheckIn(2, rankOf(2, 4));
  state_.onCheckIn(3, rankOf(1, 4));
  const auto sends = state_.onDeadline(5.0, "");
  ASSERT_EQ(sends.size(), 3u);
  EXPECT_EQ(sends.back().to, 1u);
}

TEST_F(RootStateTest, DeathBeforeDoneIsToldAfterDoneIsNot) {
  state_.onCheckIn(1, rankOf(0, 2));
  state_.onCheckIn(2, rankOf(1, 2));
  state_.onDone(1);
  EXPECT_TRUE(state_.onClosed(1).empty());
  EXPECT_TRUE(state_.onClosed(2).empty()) << "nobody is left to tell";
  EXPECT_TRUE(state_.failed());
}

TEST_F(RootStateTest, DeathOfOneIsToldToTheOthers) {
  state_.onCheckIn(1, rankOf(0, 3));
  state_.onCheckIn(2, rankOf(1, 3));
  EXPECT_NE(textIn(state_.onClosed(2), 1).find("rank 1 (host host1, pid 101) died"), std::string::npos);
}

TEST_F(RootStateTest, AGarbageNumberOfRanksIsRefusedByName) {
  for (const int nRanks : {0, -5, kMaxRanks + 1, 0x7fffffff}) {
    RootState state{Welcome{}, 99, Key{}};
    EXPECT_NE(textIn(state.onCheckIn(1, rankOf(0, nRanks)), 1).find(std::to_string(nRanks)), std::string::npos);
    EXPECT_TRUE(state.onDeadline(1.0, "").empty());
  }
}

TEST_F(RootStateTest, ASilentRankIsNotSaidToBeDead) {
  state_.onCheckIn(1, rankOf(0, 3));
  state_.onCheckIn(2, rankOf(1, 3));
  const std::string text = textIn(state_.onSilence(2, milliseconds(700)), 1);
  EXPECT_NE(text.find("rank 1 (host host1, pid 101) has given the root no sign of life for 700 ms"), std::string::npos);
  EXPECT_EQ(text.find("died"), std::string::npos);
}

TEST_F(RootStateTest, AFailureOfTheRootsProcessIsToldToThoseWhoAreThereAndToWhoComes) {
  state_.onCheckIn(1, rankOf(0, 3));
  EXPECT_EQ(textIn(state_.onFailure({-1, ncclSystemError, "h", "no descriptors"}), 1), "no descriptors");
  EXPECT_EQ(textIn(state_.onCheckIn(2, rankOf(1, 3)), 2), "no descriptors");
}

TEST_F(RootStateTest, LookupIsAnsweredWhenTheLeaderComes) {
  EXPECT_TRUE(state_.onLookup(7, Lookup{2, 4, 2}).empty());
  CheckIn leader = rankOf(0, 4);
  leader.nRoots = 2;
  const auto sends = state_.onCheckIn(1, leader);
  EXPECT_TRUE(std::any_of(sends.begin(), sends.end(),
                          [](const RootSend& s) { return s.to == 7 && s.type == FrameType::LeaderFound; }));
}

}  // namespace
}  // namespace tutti::bootstrap
