#include "comm/settings/config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>

#include "base/log.h"
#include "comm/settings/config_fields.h"
#include "comm/settings/other_config.h"
#include "support/log_capture.h"

namespace tutti::comm {
namespace {

Result<Config> parse(const std::function<void(ncclConfig_t&)>& edit) {
  ncclConfig_t user = undefinedConfig();
  edit(user);
  return parseConfig(&user, undefinedConfig());
}

TEST(Config, NullMeansDefaults) {
  const auto config = parseConfig(nullptr, undefinedConfig());
  ASSERT_TRUE(config.ok());
  const ncclConfig_t& v = config.value().values;
  EXPECT_EQ(v.blocking, 1);
  EXPECT_EQ(v.cgaClusterSize, 4);
  EXPECT_EQ(v.minCTAs, 1);
  EXPECT_EQ(v.maxCTAs, 64);
  EXPECT_EQ(v.graphUsageMode, 2);
  EXPECT_EQ(v.numRmaCtx, 1);
  EXPECT_EQ(v.graphStreamOrdering, 1);
  EXPECT_EQ(v.trafficClass, NCCL_CONFIG_UNDEF_INT);
}

TEST(Config, UninitialisedStructIsRefusedWithBothSizesAndVersionsAndTheRemedy) {
  test::expectLog("NCCL_CONFIG_INITIALIZER");
  const auto config = parse([](ncclConfig_t& c) {
    c.magic = 17;
    c.size = 80;
    c.version = 22809;
  });
  EXPECT_EQ(config.status().code(), ncclInvalidArgument);
  const std::string why = lastErrorText();
  for (const std::string& part :
       {std::string("magic 0x11, expected 0xcafebeef"), std::string("it says size 80 and version 22809"),
        fmt::format("this library has size {} and version {}", sizeof(ncclConfig_t), NCCL_VERSION_CODE),
        std::string("Initialise it with that macro of the nccl.h that belongs to this library"),
        std::string("the program mixes headers")}) {
    EXPECT_NE(why.find(part), std::string::npos) << part << " in: " << why;
  }
}

TEST(Config, BadValuesAreRefusedByName) {
  struct Case {
    const char* name;
    int ncclConfig_t::*field;
    int value;
  };
  const Case cases[] = {
      {"blocking", &ncclConfig_t::blocking, 2},
      {"splitShare", &ncclConfig_t::splitShare, -1},
      {"shrinkShare", &ncclConfig_t::shrinkShare, 2},
      {"collnetEnable", &ncclConfig_t::collnetEnable, 7},
      {"nvlinkCentricSched", &ncclConfig_t::nvlinkCentricSched, 3},
      {"graphStreamOrdering", &ncclConfig_t::graphStreamOrdering, 2},
      {"cgaClusterSize", &ncclConfig_t::cgaClusterSize, -1},
      {"minCTAs", &ncclConfig_t::minCTAs, 0},
      {"maxCTAs", &ncclConfig_t::maxCTAs, 0},
      {"CTAPolicy", &ncclConfig_t::CTAPolicy, 4},
      {"nvlsCTAs", &ncclConfig_t::nvlsCTAs, 0},
      {"nChannelsPerNetPeer", &ncclConfig_t::nChannelsPerNetPeer, 65},
      {"graphUsageMode", &ncclConfig_t::graphUsageMode, 3},
      {"numRmaCtx", &ncclConfig_t::numRmaCtx, -5},
      {"maxP2pPeers", &ncclConfig_t::maxP2pPeers, 0},
  };
  for (const Case& one : cases) {
    test::expectLog(one.name);
    const auto config = parse([&](ncclConfig_t& c) { c.*one.field = one.value; });
    EXPECT_EQ(config.status().code(), ncclInvalidArgument) << one.name;
  }
}

TEST(Config, MinCtasAloneIsRefusedAndMaxCtasAloneIsFine) {
  test::expectLog("min/max");
  EXPECT_FALSE(parse([](ncclConfig_t& c) { c.minCTAs = 2; }).ok());
  const auto config = parse([](ncclConfig_t& c) { c.maxCTAs = 2; });
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config.value().values.maxCTAs, 2);
}

TEST(Config, CtasAreCapped) {
  const auto config = parse([](ncclConfig_t& c) { c.minCTAs = c.maxCTAs = 1000; });
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config.value().values.minCTAs, 64);
  EXPECT_EQ(config.value().values.maxCTAs, 64);
}

TEST(Config, EnvironmentWins) {
  ncclConfig_t user = undefinedConfig();
  user.blocking = 1;
  user.minCTAs = 4;
  user.maxCTAs = 8;
  ncclConfig_t environment = undefinedConfig();
  environment.blocking = 0;
  environment.maxCTAs = 2;
  const auto config = parseConfig(&user, environment);
  ASSERT_TRUE(config.ok());
  EXPECT_FALSE(config.value().blocking());
  EXPECT_EQ(config.value().values.maxCTAs, 2);
  EXPECT_EQ(config.value().values.minCTAs, 2) << "lowered to the maximum";
}

TEST(Config, SmallerStructsOfOlderHeadersWork) {
  ncclConfig_t user = undefinedConfig();
  user.size = offsetof(ncclConfig_t, cgaClusterSize);
  user.version = 21400;
  user.blocking = 0;
  user.cgaClusterSize = 77777;  // beyond the size: must not be read
  const auto config = parseConfig(&user, undefinedConfig());
  ASSERT_TRUE(config.ok());
  EXPECT_FALSE(config.value().blocking());
  EXPECT_EQ(config.value().values.cgaClusterSize, 4);
}

TEST(Config, FieldsNewerThanTheHeaderAreForgotten) {
  const auto config = parse([](ncclConfig_t& c) {
    c.version = 22800;
    c.numRmaCtx = -9;  // no such field in 2.28
  });
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config.value().values.numRmaCtx, 1);
}

TEST(Config, LargerStructsOfNewerHeadersWork) {
  struct Newer {
    ncclConfig_t known;
    int unknown[16];
  } user{undefinedConfig(), {}};
  user.known.size = sizeof(user);
  user.known.version = 29999;
  EXPECT_TRUE(parseConfig(&user.known, undefinedConfig()).ok());
}

TEST(Config, EveryLevelBringsItsFieldsAndNoMore) {
  struct Level {
    unsigned version;
    std::size_t size;
    bool has31;
    bool has32;
  };
  for (const Level& level :
       {Level{23007, 96, false, false}, Level{23102, 112, true, false}, Level{23203, 120, true, true}}) {
    ncclConfig_t user = undefinedConfig();
    user.version = level.version;
    user.size = level.size;
    user.launchOrderImplicit = 1;
    user.numRmaSig = 8;
    user.rmaEagerInit = 1;
    user.hostCftMode = ncclHostCftFallback;
    user.nvlsHostMode = ncclNvlsHostModeDisable;
    const auto config = parseConfig(&user, undefinedConfig());
    ASSERT_TRUE(config.ok()) << level.version;
    const ncclConfig_t& values = config.value().values;
    EXPECT_EQ(values.launchOrderImplicit, level.has31 ? 1 : 0) << level.version;
    EXPECT_EQ(values.numRmaSig, level.has31 ? 8 : NCCL_CONFIG_UNDEF_INT) << level.version;
    EXPECT_EQ(values.rmaEagerInit, level.has31 ? 1 : 0) << level.version;
    EXPECT_EQ(values.hostCftMode, level.has31 ? 3 : NCCL_CONFIG_UNDEF_INT) << level.version;
    EXPECT_EQ(values.nvlsHostMode, level.has32 ? 0x7fffffff : NCCL_CONFIG_UNDEF_INT) << level.version;
  }
}

TEST(Config, NamesAreCopied) {
  char name[] = "training";
  ncclConfig_t user = undefinedConfig();
  user.commName = name;
  auto config = parseConfig(&user, undefinedConfig());
  ASSERT_TRUE(config.ok());
  std::memset(name, 'x', sizeof(name) - 1);
  EXPECT_EQ(config.value().commName, "training");
}

TEST(InheritedConfig, HasEveryFieldOfTheParent) {
  const ncclConfig_t user = test::otherConfig();
  const Config parent = parseConfig(&user, undefinedConfig()).value();
  for (const ConfigField& field : configFields()) {
    EXPECT_EQ(parent.values.*field.member, test::otherThanDefault(field)) << field.name << " of the parent";
  }
  const Config child = inheritConfig(parent, undefinedConfig());
  test::expectSame(child, parent);
  EXPECT_EQ(child.values.netName, nullptr) << "its own text is what counts";
  test::expectSame(inheritConfig(child, undefinedConfig()), parent);
}

TEST(InheritedConfig, IsThatOfTheParentAsItIsInEffect) {
  ncclConfig_t user = undefinedConfig();
  user.minCTAs = 4;
  user.maxCTAs = 100;
  ncclConfig_t environment = undefinedConfig();
  environment.shrinkShare = 1;
  const Config parent = parseConfig(&user, environment).value();
  const Config child = inheritConfig(parent, undefinedConfig());
  EXPECT_EQ(child.values.maxCTAs, 64) << "as the library has lowered it";
  EXPECT_EQ(child.values.shrinkShare, 1) << "what the environment said then";
}

TEST(InheritedConfig, GivesWayToTheEnvironment) {
  const Config parent = parseConfig(nullptr, undefinedConfig()).value();
  ncclConfig_t environment = test::otherConfig();
  environment.commName = nullptr;
  const Config child = inheritConfig(parent, environment);
  for (const ConfigField& field : configFields()) {
    EXPECT_EQ(child.values.*field.member, test::otherThanDefault(field)) << field.name;
  }
  EXPECT_EQ(child.netName, "Socket");
  EXPECT_EQ(child.commName, "") << "no variable names communicators";
}

TEST(Config, IsDescribedByWhatDiffersFromTheDefaults) {
  EXPECT_EQ(describe(parseConfig(nullptr, undefinedConfig()).value()), "");
  const auto spelledOut = parse([](ncclConfig_t& c) { c.blocking = 1; });
  EXPECT_EQ(describe(spelledOut.value()), "") << "what is a default anyway";
  ncclConfig_t user = undefinedConfig();
  user.blocking = 0;
  user.trafficClass = 5;
  user.netName = "Socket";
  user.commName = "training";
  ncclConfig_t environment = undefinedConfig();
  environment.maxCTAs = 8;
  const auto config = parseConfig(&user, environment);
  EXPECT_EQ(describe(config.value()), "blocking 0, maxCTAs 8, trafficClass 5, netName Socket, commName training");
}

TEST(Config, ContradictionsAreBentWithAWarning) {
  test::expectLog("EFFICIENCY is ignored");
  test::expectLog("stream ordering stays on");
  const auto config = parse([](ncclConfig_t& c) {
    c.CTAPolicy = NCCL_CTA_POLICY_EFFICIENCY | NCCL_CTA_POLICY_ZERO;
    c.graphStreamOrdering = 0;
  });
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config.value().values.CTAPolicy, NCCL_CTA_POLICY_ZERO);
  EXPECT_EQ(config.value().values.graphStreamOrdering, 1);
}

}  // namespace
}  // namespace tutti::comm
