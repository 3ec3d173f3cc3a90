#include "transport/net/ib/nic/hca_filter.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/log_capture.h"

namespace tutti::net::ib {
namespace {

using namespace test;

HcaFilter filterOf(std::string_view text) {
  auto parsed = HcaFilter::parse(text);
  EXPECT_TRUE(parsed.ok()) << text;
  return parsed.ok() ? parsed.value() : HcaFilter();
}

bool uses(std::string_view text, std::string_view device, int port = 1) {
  return filterOf(text).judge(device, port).used;
}

TEST(HcaFilter, UsesAllPortsWithoutAList) {
  for (const char* empty : {"", "^", "=", "^=", ",", ",,"}) {
    EXPECT_TRUE(uses(empty, "mlx5_0", 1)) << empty;
    EXPECT_TRUE(uses(empty, "rxe0", 2)) << empty;
  }
}

TEST(HcaFilter, TakesNamesForBeginnings) {
  EXPECT_TRUE(uses("mlx5", "mlx5_0"));
  EXPECT_TRUE(uses("mlx5_1", "mlx5_10"));
  EXPECT_FALSE(uses("mlx5_1", "mlx5_0"));
  EXPECT_TRUE(uses("mlx4,mlx5_0", "mlx5_0"));
}

TEST(HcaFilter, TakesWholeNamesAfterAnEqualsSign) {
  EXPECT_TRUE(uses("=mlx5_1", "mlx5_1"));
  EXPECT_FALSE(uses("=mlx5_1", "mlx5_10"));
  EXPECT_FALSE(uses("=mlx5", "mlx5_0"));
}

TEST(HcaFilter, ExcludesAfterACircumflex) {
  EXPECT_FALSE(uses("^mlx5_1", "mlx5_10"));
  EXPECT_TRUE(uses("^mlx5_1", "mlx5_0"));
  EXPECT_TRUE(uses("^=mlx5_1", "mlx5_10"));
  EXPECT_FALSE(uses("^=mlx5_1", "mlx5_1"));
}

TEST(HcaFilter, ChoosesPorts) {
  EXPECT_TRUE(uses("mlx5_0:2", "mlx5_0", 2));
  EXPECT_FALSE(uses("mlx5_0:2", "mlx5_0", 1));
  EXPECT_TRUE(uses("mlx5_0:", "mlx5_0", 1)) << "an empty number is unset";
  EXPECT_FALSE(uses("^mlx5_0:2", "mlx5_0", 2));
  EXPECT_TRUE(uses("^mlx5_0:2", "mlx5_0", 1));
  EXPECT_TRUE(uses("mlx5_0:1,mlx5_0:2", "mlx5_0", 2));
}

TEST(HcaFilter, TakesRailAndPlaneOfTheFirstPartThatFits) {
  const HcaFilter filter = filterOf("mlx5_0:1:3:4,mlx5_0:2::5,mlx5:::6,mlx5_1:1:9");
  EXPECT_EQ(filter.judge("mlx5_0", 1).choice.rail, 3);
  EXPECT_EQ(filter.judge("mlx5_0", 1).choice.plane, 4);
  EXPECT_EQ(filter.judge("mlx5_0", 2).choice.rail, -1);
  EXPECT_EQ(filter.judge("mlx5_0", 2).choice.plane, 5);
  EXPECT_EQ(filter.judge("mlx5_1", 1).choice.rail, -1);
  EXPECT_EQ(filter.judge("mlx5_1", 1).choice.plane, 6);
}

TEST(HcaFilter, NamesThePartThatIsNoNumber) {
  for (const char* wrong :
       {"mlx5_0:x", "mlx5_0:1:y", "mlx5_0:1:2:z", "mlx5_0:-1", "mlx5_0:1:2:3:4", "mlx5_0: 1", "mlx5_0:99999999999"}) {
    allowLog("is no number");
    EXPECT_EQ(HcaFilter::parse(wrong).status().code(), ncclInvalidUsage) << wrong;
    EXPECT_NE(capturedText().find(wrong), std::string::npos) << wrong;
  }
}

TEST(HcaFilter, RefusesPlanesThatMarkFusedNics) {
  expectLog("which marks fused NICs");
  EXPECT_EQ(HcaFilter::parse("mlx5_0:1:0:16384").status().code(), ncclInvalidUsage);
  EXPECT_TRUE(HcaFilter::parse("mlx5_0:1:0:16383").ok());
}

TEST(HcaFilter, TakesThirteenPlanes) {
  std::string list = "n0:::0,m0:::0";
  for (int i = 1; i < 13; ++i) list += fmt::format(",n{}:::{}", i, 7 * i);
  EXPECT_TRUE(HcaFilter::parse(list).ok());
  expectLog("14 different planes, at most 13");
  EXPECT_EQ(HcaFilter::parse(list + ",n13:::1").status().code(), ncclInvalidUsage);
}

TEST(HcaFilter, TakesThirtyTwoParts) {
  std::string list = "n0";
  for (int i = 1; i < 32; ++i) list += ",n" + std::to_string(i);
  EXPECT_TRUE(uses(list, "n31"));
  expectLog("more than 32 parts");
  EXPECT_EQ(HcaFilter::parse(list + ",n32").status().code(), ncclInvalidUsage);
}

TEST(HcaFilter, NamesThePartThatDecides) {
  EXPECT_EQ(filterOf("mlx5_0:2,mlx5").judge("mlx5_0", 1).part, "mlx5");
  EXPECT_EQ(filterOf("mlx5_0:2:7,mlx5").judge("mlx5_0", 2).part, "mlx5_0:2:7");
  EXPECT_EQ(filterOf("^=mlx5_0").judge("mlx5_0", 1).part, "mlx5_0");
  EXPECT_EQ(filterOf("^=mlx5_0").judge("mlx5_1", 1).part, "") << "it is in no list, and so it is used";
  EXPECT_EQ(filterOf("").judge("mlx5_0", 1).part, "");
}

}  // namespace
}  // namespace tutti::net::ib
