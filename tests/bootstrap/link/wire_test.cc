#include "bootstrap/link/wire.h"

#include <gtest/gtest.h>

namespace tutti::bootstrap {
namespace {

TEST(Wire, NoticeSurvivesTheTrip) {
  const auto back =
      decodeNotice(encodeNotice({3, ncclInvalidUsage, "gpu07", "something broke", Cause::Failed, 4711, 2}));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->rank, 3);
  EXPECT_EQ(back->code, ncclInvalidUsage);
  EXPECT_EQ(back->host, "gpu07");
  EXPECT_EQ(back->text, "something broke");
  EXPECT_EQ(back->cause, Cause::Failed);
  EXPECT_EQ(back->pid, 4711);
  EXPECT_EQ(back->era, 2U);
}

TEST(Wire, NoticeOfNonsenseIsRefusedOrTamed) {
  EXPECT_FALSE(decodeNotice({}));
  EXPECT_FALSE(decodeNotice(Bytes(10)));
  EXPECT_FALSE(decodeNotice(Bytes(100'000)));
  const auto zero = decodeNotice(Bytes(84));
  ASSERT_TRUE(zero);
  EXPECT_EQ(zero->code, ncclRemoteError) << "success is no failure";
  EXPECT_EQ(zero->cause, Cause::Observed);
  EXPECT_EQ(decodeNotice(Bytes(84, std::byte{0xff}))->cause, Cause::Observed);
  EXPECT_EQ(decodeNotice(Bytes(84, std::byte{0xff}))->host.size(), 64U) << "unterminated text ends with its field";
}

TEST(Wire, LongNoticeIsCut) {
  EXPECT_EQ(decodeNotice(encodeNotice({0, ncclRemoteError, "", std::string(9000, 'x')}))->text.size(), kMaxNoticeText);
}

TEST(Wire, ValueOfAnotherSizeIsRefused) {
  EXPECT_FALSE(decodeValue<CheckIn>(Bytes(sizeof(CheckIn) - 1)));
}

TEST(Wire, RankListsReadWell) {
  EXPECT_EQ(rankListText(std::vector{5}), "rank 5");
  EXPECT_EQ(rankListText(std::vector{5, 6}), "ranks 5 and 6");
  EXPECT_EQ(rankListText(std::vector{5, 7, 9, 10, 11, 12}), "ranks 5, 7 and 9..12");
  std::vector<int> odd;
  for (int i = 1; i < 100; i += 2) odd.push_back(i);
  EXPECT_NE(rankListText(odd).find("and 38 more"), std::string::npos) << rankListText(odd);
}

TEST(Wire, RankTextLeavesOutWhatIsNotKnown) {
  EXPECT_EQ(rankText(3, ""), "rank 3");
  EXPECT_EQ(rankText(3, "a"), "rank 3 (host a)");
  EXPECT_EQ(rankText(3, "a", 7), "rank 3 (host a, pid 7)");
}

}  // namespace
}  // namespace tutti::bootstrap
