#include "comm/settings/comm_settings.h"

#include <gtest/gtest.h>

#include "base/settings/params.h"
#include "comm/settings/config.h"
#include "comm/tuning/filter.h"
#include "device/policy.h"
#include "support/log_capture.h"

namespace tutti::comm {
namespace {

TEST(CommSettings, NothingSetOverridesNothing) {
  const CommSettings settings = commSettingsFrom(Params{});
  const auto config = parseConfig(nullptr, settings.configOverrides);
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config.value().values.blocking, 1);
  EXPECT_EQ(config.value().values.graphUsageMode, 2);
  EXPECT_EQ(settings.buffers.simple, 0U);
}

TEST(CommSettings, BufferSizeCountsAlsoWhereItIsTheUsualOne) {
  Params params;
  params.tuning.buffSize = 4194304;
  EXPECT_EQ(commSettingsFrom(params).buffers.simple, 4194304U);
}

TEST(CommSettings, RasRunsWhereExactlyOneAsksForIt) {
  EXPECT_TRUE(commSettingsFrom(Params{}).ras.enabled);
  for (const int value : {0, 1, 2, -1}) {
    Params params;
    params.ras.enable = value;
    EXPECT_EQ(commSettingsFrom(params).ras.enabled, value == 1) << value;
  }
}

TEST(CommSettings, EveryPlainSettingReachesItsField) {
  Params params;
  params.sockets.ifname = std::string("eth");
  params.sockets.family = std::string("AF_INET");
  params.sockets.commId = std::string("10.0.0.1:7");
  params.sockets.commKey = std::string("secret");
  params.sockets.bootstrapTimeoutSec = 7;
  params.sockets.peerTimeoutMs = 600;
  params.sockets.hostId = std::string("box");
  params.transports.cumemEnable = 0;
  params.transports.multiRankGpu = false;
  params.transports.p2pDirectDisable = true;
  params.tuning.llBuffSize = 16384;
  params.tuning.ll128BuffSize = 32768;
  params.tuning.minNchannels = 2;
  params.tuning.maxNchannels = 3;
  params.tuning.algo = std::string("Ring");
  params.tuning.proto = std::string("LL");
  params.tuning.launchShape = std::string("GPU");
  params.misc.kernelsPath = std::string("/kernels.so");
  const CommSettings settings = commSettingsFrom(params);
  EXPECT_EQ(settings.bootstrap.interfaceNames, "eth");
  EXPECT_EQ(settings.bootstrap.family, "AF_INET");
  EXPECT_EQ(settings.bootstrap.commId, "10.0.0.1:7");
  EXPECT_EQ(settings.bootstrap.commKey, "secret");
  EXPECT_EQ(settings.bootstrap.timeout, std::chrono::seconds(7));
  EXPECT_EQ(settings.bootstrap.peerTimeout, milliseconds(600));
  EXPECT_EQ(settings.hostId, "box");
  EXPECT_FALSE(settings.allowVmm);
  EXPECT_FALSE(settings.allowRanksOfOneDevice);
  EXPECT_TRUE(settings.p2p.directDisabled);
  EXPECT_EQ(settings.buffers.ll, 16384U);
  EXPECT_EQ(settings.buffers.ll128, 32768U);
  EXPECT_EQ(settings.minChannels, 2);
  EXPECT_EQ(settings.maxChannels, 3);
  EXPECT_EQ(settings.algo, "Ring");
  EXPECT_EQ(settings.proto, "LL");
  EXPECT_EQ(settings.launchShape, "GPU");
  EXPECT_EQ(settings.kernels.hostFile, "/kernels.so");
}

TEST(CommSettings, TranslatedKernelsDoNotReadPastSlots) {
  Params params;
  EXPECT_FALSE(commSettingsFrom(params).p2p.directDisabled);
  params.misc.softGpuKernels = std::string("PTX");
  const CommSettings settings = commSettingsFrom(params);
  EXPECT_TRUE(settings.kernels.fatbins);
  EXPECT_TRUE(settings.p2p.directDisabled);
  EXPECT_TRUE(settings.shm.directDisabled);
}

TEST(CommSettings, OnlyTheShortestPathsForbidPeerAccess) {
  const auto disabled = [](const char* level, bool off = false) {
    Params params;
    params.transports.p2pLevel = std::string(level);
    params.transports.p2pDisable = off;
    return commSettingsFrom(params).p2p.disabled;
  };
  EXPECT_TRUE(disabled("LOC"));
  EXPECT_TRUE(disabled("0"));
  EXPECT_TRUE(disabled("", true));
  EXPECT_TRUE(disabled("SYS", true));
  for (const char* level : {"", "NVL", "PIX", "SYS", "1", "9"}) EXPECT_FALSE(disabled(level)) << level;
}

TEST(CommSettings, EveryModeOfDebuggingChecksPointers) {
  const auto checks = [](const char* mode, bool on = false) {
    Params params;
    params.misc.checkMode = std::string(mode);
    params.misc.checkPointers = on;
    return commSettingsFrom(params).checkPointers;
  };
  EXPECT_FALSE(checks("DEFAULT"));
  EXPECT_TRUE(checks("DEFAULT", true));
  EXPECT_TRUE(checks("DEBUG_LOCAL"));
  EXPECT_TRUE(checks("DEBUG_GLOBAL"));
}

TEST(CommSettings, CopyEnginesBetweenPeersKeepBuffersFromBeingRegisteredAsNcclHasIt) {
  const auto registers = [](bool local, bool copyEngines) {
    Params params;
    params.transports.localRegister = local;
    params.transports.p2pUseCudaMemcpy = copyEngines;
    return commSettingsFrom(params).registersBuffers;
  };
  EXPECT_TRUE(registers(true, false));
  EXPECT_FALSE(registers(false, false));
  EXPECT_FALSE(registers(true, true));
}

TEST(CommSettings, EveryOverrideReachesTheConfiguration) {
  Params params;
  params.misc.commBlocking = 0;
  params.misc.splitShare = 1;
  params.misc.shrinkShare = 1;
  params.misc.collnetEnable = 1;
  params.misc.numRmaCtx = 3;
  params.misc.netName = std::string("Socket");
  params.tuning.minCtas = 5;
  params.tuning.maxCtas = 6;
  params.tuning.cgaClusterSize = 1;
  params.tuning.nvlsCtas = 7;
  params.tuning.nvlinkCentricSched = 1;
  params.tuning.channelsPerNetPeer = 2;
  params.tuning.maxP2pPeers = 9;
  params.tuning.graphMixing = 0;
  params.tuning.graphStreamOrdering = 0;
  params.tuning.ctaPolicy = std::string("ZERO");
  const CommSettings settings = commSettingsFrom(params);
  const ncclConfig_t& config = settings.configOverrides;
  EXPECT_EQ(config.blocking, 0);
  EXPECT_EQ(config.splitShare, 1);
  EXPECT_EQ(config.shrinkShare, 1);
  EXPECT_EQ(config.collnetEnable, 1);
  EXPECT_EQ(config.numRmaCtx, 3);
  EXPECT_EQ(config.minCTAs, 5);
  EXPECT_EQ(config.maxCTAs, 6);
  EXPECT_EQ(config.cgaClusterSize, 1);
  EXPECT_EQ(config.nvlsCTAs, 7);
  EXPECT_EQ(config.nvlinkCentricSched, 1);
  EXPECT_EQ(config.nChannelsPerNetPeer, 2);
  EXPECT_EQ(config.maxP2pPeers, 9);
  EXPECT_EQ(config.graphUsageMode, 0);
  EXPECT_EQ(config.graphStreamOrdering, 0);
  EXPECT_EQ(config.CTAPolicy, NCCL_CTA_POLICY_ZERO);
  EXPECT_EQ(settings.netName, "Socket");
}

TEST(CommSettings, CtaPolicyTakesWordsAndNumbers) {
  const auto policyOf = [](const char* text) {
    Params params;
    params.tuning.ctaPolicy = std::string(text);
    return commSettingsFrom(params).configOverrides.CTAPolicy;
  };
  EXPECT_EQ(policyOf("DEFAULT"), 0);
  EXPECT_EQ(policyOf("EFFICIENCY|ZERO"), 3);
  EXPECT_EQ(policyOf("1"), 1);
  EXPECT_EQ(policyOf("4"), NCCL_CONFIG_UNDEF_INT);
  EXPECT_EQ(policyOf("FAST"), NCCL_CONFIG_UNDEF_INT);
}

}  // namespace
}  // namespace tutti::comm
