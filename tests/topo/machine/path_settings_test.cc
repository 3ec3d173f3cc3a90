#include "topo/machine/path_settings.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/settings/params.h"
#include "support/log_capture.h"

namespace tutti::topo {
namespace {

TEST(PathSettings, LevelsAreNamesInUpperCaseOrOldDigits) {
  EXPECT_EQ(parsePathLevel("NVL"), PathType::Nvl);
  EXPECT_EQ(parsePathLevel("SYS"), PathType::Sys);
  EXPECT_EQ(parsePathLevel("0"), PathType::Loc);
  EXPECT_EQ(parsePathLevel("1"), PathType::Pix);
  EXPECT_EQ(parsePathLevel("3"), PathType::Phb);
  EXPECT_EQ(parsePathLevel("9"), PathType::Sys);
  for (const char* text : {"", "nvl", "NET", "DIS", "10", "-1"}) EXPECT_FALSE(parsePathLevel(text).has_value()) << text;
}

TEST(PathSettings, NicsOfAGpuAreSharedAllOrSoMany) {
  EXPECT_EQ(parseNetDevsPolicy("auto"), 0);
  EXPECT_EQ(parseNetDevsPolicy("All"), std::numeric_limits<int>::max());
  EXPECT_EQ(parseNetDevsPolicy("max:3"), 3);
  for (const char* text : {"", "MAX", "MAX:", "MAX:0", "MAX:-1", "MAX:2x", "MAX:99999999999", "AUTO ", "3"}) {
    EXPECT_FALSE(parseNetDevsPolicy(text).has_value()) << text;
  }
  Params params;
  params.topology.netDevsPolicy = std::string("MAX:2");
  EXPECT_EQ(pathSettings(params).netsPerGpu, 2);
  params.topology.netDevsPolicy = std::string("most");
  EXPECT_EQ(pathSettings(params).netsPerGpu, 0);
  EXPECT_NE(test::capturedText().find("NCCL_NETDEVS_POLICY=most is none of AUTO, ALL and MAX:n"), std::string::npos);
}

TEST(PathSettings, ComeFromTheSettings) {
  Params params;
  const PathSettings defaults = pathSettings(params);
  EXPECT_FALSE(defaults.p2pLevel.has_value());
  EXPECT_FALSE(defaults.gdrLevel.has_value());
  EXPECT_TRUE(defaults.pxnOverC2c);
  EXPECT_EQ(defaults.gdrRead, -2);
  params.transports.p2pLevel = std::string("PHB");
  params.topology.netGdrLevel = std::string("4");
  params.topology.nvbDisable = true;
  params.topology.ignoreDisabledP2p = 2;
  const PathSettings set = pathSettings(params);
  EXPECT_EQ(set.p2pLevel, PathType::Phb);
  EXPECT_EQ(set.gdrLevel, PathType::Sys);
  EXPECT_TRUE(set.nvbDisabled);
  EXPECT_EQ(set.p2p.ignore, 2);
}

}  // namespace
}  // namespace tutti::topo
