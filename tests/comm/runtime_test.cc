#include "comm/runtime.h"

#include <gtest/gtest.h>

#include "comm/config.h"
#include "support/log_capture.h"

namespace tutti {
namespace {

TEST(Runtime, NothingSetOverridesNothing) {
  const Runtime runtime = runtimeFrom(Params{});
  const auto config = parseConfig(nullptr, runtime.configOverrides);
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config.value().values.blocking, 1);
  EXPECT_EQ(config.value().values.graphUsageMode, 2);
  EXPECT_EQ(runtime.buffers.simple, 0U);
}

TEST(Runtime, BufferSizeCountsAlsoWhereItIsTheUsualOne) {
  Params params;
  params.tuning.buffSize = 4194304;
  EXPECT_EQ(runtimeFrom(params).buffers.simple, 4194304U);
}

TEST(Runtime, EverySettingReachesItsField) {
  Params params;
  params.misc.commBlocking = 0;
  params.misc.splitShare = 1;
  params.misc.shrinkShare = 1;
  params.misc.collnetEnable = 1;
  params.misc.numRmaCtx = 3;
  params.misc.netName = std::string("Socket");
  params.tuning.nvlsCtas = 7;
  params.tuning.nvlinkCentricSched = 1;
  params.tuning.channelsPerNetPeer = 2;
  params.tuning.maxP2pPeers = 9;
  params.tuning.graphMixing = 0;
  params.tuning.graphStreamOrdering = 0;
  params.tuning.ctaPolicy = std::string("ZERO");
  const Runtime runtime = runtimeFrom(params);
  const ncclConfig_t& config = runtime.configOverrides;
  EXPECT_EQ(config.blocking, 0);
  EXPECT_EQ(config.splitShare, 1);
  EXPECT_EQ(config.shrinkShare, 1);
  EXPECT_EQ(config.collnetEnable, 1);
  EXPECT_EQ(config.numRmaCtx, 3);
  EXPECT_EQ(config.nvlsCTAs, 7);
  EXPECT_EQ(config.nvlinkCentricSched, 1);
  EXPECT_EQ(config.nChannelsPerNetPeer, 2);
  EXPECT_EQ(config.maxP2pPeers, 9);
  EXPECT_EQ(config.graphUsageMode, 0);
  EXPECT_EQ(config.graphStreamOrdering, 0);
  EXPECT_EQ(config.CTAPolicy, NCCL_CTA_POLICY_ZERO);
  EXPECT_EQ(runtime.netName, "Socket");
}

TEST(Runtime, CtaPolicyTakesWordsAndNumbers) {
  const auto policyOf = [](const char* text) {
    Params params;
    params.tuning.ctaPolicy = std::string(text);
    return runtimeFrom(params).configOverrides.CTAPolicy;
  };
  EXPECT_EQ(policyOf("DEFAULT"), 0);
  EXPECT_EQ(policyOf("EFFICIENCY|ZERO"), 3);
  EXPECT_EQ(policyOf("1"), 1);
  EXPECT_EQ(policyOf("4"), NCCL_CONFIG_UNDEF_INT);
  EXPECT_EQ(policyOf("FAST"), NCCL_CONFIG_UNDEF_INT);
}

}  // namespace
}  // namespace tutti
