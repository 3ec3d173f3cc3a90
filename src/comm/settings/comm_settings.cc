#include "comm/settings/comm_settings.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/settings/params.h"
#include "comm/settings/config.h"
#include "comm/settings/join_settings.h"

namespace tutti::comm {

namespace {

void setIfGiven(int& field, const std::optional<std::int64_t>& value) {
  if (value) field = static_cast<int>(*value);
}

/// Zero and less: not set.
std::uint32_t sizeIfSet(std::int64_t bytes) {
  return bytes > 0 ? static_cast<std::uint32_t>(bytes) : 0;
}

/// "EFFICIENCY|ZERO", or a number; nothing where it is neither.
std::optional<std::int64_t> ctaPolicyFrom(const std::string& text) {
  constexpr std::pair<std::string_view, int> kWords[] = {
      {"DEFAULT", NCCL_CTA_POLICY_DEFAULT}, {"EFFICIENCY", NCCL_CTA_POLICY_EFFICIENCY}, {"ZERO", NCCL_CTA_POLICY_ZERO}};
  constexpr std::int64_t kAll = NCCL_CTA_POLICY_EFFICIENCY | NCCL_CTA_POLICY_ZERO;
  if (text.empty()) return std::nullopt;
  if (std::isdigit(static_cast<unsigned char>(text.front())) != 0) {
    const auto number = parseInteger(text).value;
    return number && *number <= kAll ? number : std::nullopt;
  }
  std::int64_t policy = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('|', begin), text.size());
    const std::string_view part = std::string_view(text).substr(begin, end - begin);
    const auto known =
        std::find_if(std::begin(kWords), std::end(kWords), [&](const auto& w) { return w.first == part; });
    if (known == std::end(kWords)) return std::nullopt;
    policy |= known->second;
    begin = end + 1;
  }
  return policy;
}

/// The fields of the configuration that the environment sets; all others undefined.
ncclConfig_t overridesFrom(const Params& params) {
  ncclConfig_t config = undefinedConfig();
  setIfGiven(config.blocking, params.misc.commBlocking);
  setIfGiven(config.splitShare, params.misc.splitShare);
  setIfGiven(config.shrinkShare, params.misc.shrinkShare);
  setIfGiven(config.collnetEnable, params.misc.collnetEnable);
  setIfGiven(config.numRmaCtx, params.misc.numRmaCtx);
  setIfGiven(config.minCTAs, params.tuning.minCtas);
  setIfGiven(config.maxCTAs, params.tuning.maxCtas);
  setIfGiven(config.cgaClusterSize, params.tuning.cgaClusterSize);
  setIfGiven(config.nvlsCTAs, params.tuning.nvlsCtas);
  setIfGiven(config.nvlinkCentricSched, params.tuning.nvlinkCentricSched);
  setIfGiven(config.nChannelsPerNetPeer, params.tuning.channelsPerNetPeer);
  setIfGiven(config.maxP2pPeers, params.tuning.maxP2pPeers);
  setIfGiven(config.launchOrderImplicit, params.tuning.launchOrderImplicit);
  setIfGiven(config.graphStreamOrdering, params.tuning.graphStreamOrdering);
  if (params.tuning.graphMixing) config.graphUsageMode = *params.tuning.graphMixing != 0 ? 2 : 0;
  const auto policy = ctaPolicyFrom(params.tuning.ctaPolicy);
  if (!policy && !params.tuning.ctaPolicy.empty()) {
    info(kEnv, "Invalid value {} for NCCL_CTA_POLICY, using default unset.", params.tuning.ctaPolicy);
  }
  setIfGiven(config.CTAPolicy, policy);
  return config;
}

MessageSettings messageSettingsFrom(const Params::Tuning& params) {
  const auto bytes = [](const std::optional<std::int64_t>& value) { return sizeIfSet(value.value_or(0)); };
  return {.fewest = static_cast<int>(params.minP2pNchannels),
          .most = static_cast<int>(params.maxP2pNchannels),
          .nvlChunk = bytes(params.p2pNvlChunkSize),
          .pciChunk = bytes(params.p2pPciChunkSize),
          .netChunk = bytes(params.p2pNetChunkSize),
          .mostPerGroup = static_cast<int>(params.p2pScheduleGroup)};
}

bootstrap::BootstrapSettings bootstrapFrom(const Params::Sockets& sockets) {
  bootstrap::BootstrapSettings settings;
  settings.interfaceNames = sockets.ifname;
  settings.family = sockets.family;
  settings.commId = sockets.commId;
  settings.commKey = sockets.commKey;
  settings.timeout = std::chrono::seconds(sockets.bootstrapTimeoutSec);
  settings.peerTimeout = milliseconds(sockets.peerTimeoutMs);
  return settings;
}

}  // namespace

CommSettings commSettingsFrom(const Params& params) {
  CommSettings runtime;
  runtime.bootstrap = bootstrapFrom(params.sockets);
  runtime.bootstrap.reportAfter = std::chrono::seconds(params.misc.stallSec);
  runtime.ras = {params.ras.enable == 1, params.ras.address,    ras::timeoutFactorOf(params.ras.timeoutFactor),
                 params.sockets.ifname,  params.sockets.family, params.sockets.commId};
  runtime.configOverrides = overridesFrom(params);
  runtime.netName = params.misc.netName;
  runtime.p2p.disabled =
      params.transports.p2pDisable || params.transports.p2pLevel == "LOC" || params.transports.p2pLevel == "0";
  runtime.kernels = {params.misc.kernelsPath, params.misc.softGpuKernels == "PTX"};
  // Kernels of GPUs do not read past slots.
  const bool direct = !params.transports.p2pDirectDisable && !runtime.kernels.fatbins;
  runtime.p2p.directDisabled = !direct;
  runtime.shm.disabled = params.topology.shmDisable;
  runtime.shm.directDisabled = !direct;
  runtime.hostId = params.sockets.hostId;
  // Unset means "automatic": the software GPU does better with smaller buffers.
  runtime.buffers.simple = static_cast<std::uint32_t>(params.tuning.buffSize.value_or(0));
  runtime.buffers.ll = sizeIfSet(params.tuning.llBuffSize);
  runtime.buffers.ll128 = sizeIfSet(params.tuning.ll128BuffSize);
  runtime.algo = params.tuning.algo;
  runtime.proto = params.tuning.proto;
  runtime.tuning = tuningSettingsFrom(params);
  runtime.messages = messageSettingsFrom(params.tuning);
  runtime.topology = topologySettingsFrom(params);
  runtime.fusion = fusionSettings(params);
  runtime.affinity = {params.misc.proxyCpuset, params.misc.ignoreCpuAffinity};
  runtime.gpuDirect = gpuDirectSettings(params);
  runtime.collNet = {static_cast<int>(params.misc.collnetNodeThreshold), params.misc.ignoreCollnetMismatch};
  runtime.pxnLevel = static_cast<int>(params.topology.p2pPxnLevel);
  runtime.netMessageMb = static_cast<std::uint32_t>(params.transports.netMessageMb);
  const auto sharedSlots = static_cast<std::uint32_t>(params.transports.netSharedSlots);
  runtime.netSharedSlots = params.transports.netSharedBuffers == 0 ? 0 : std::bit_floor(sharedSlots);
  runtime.netSharedComms = params.transports.netSharedComms;
  runtime.stall = {std::chrono::seconds(params.misc.stallSec), std::chrono::seconds(params.misc.stallAlarmSec)};
  runtime.reportAfter = std::chrono::seconds(params.misc.splitReportSec);
  runtime.launchShape = params.tuning.launchShape;
  setIfGiven(runtime.minChannels, params.tuning.minNchannels);
  setIfGiven(runtime.maxChannels, params.tuning.maxNchannels);
  runtime.remoteDomain = params.tuning.memSyncDomain != 0;
  runtime.connectAtInit = !params.tuning.runtimeConnect;
  runtime.checkCalls = params.misc.checkCalls;
  runtime.checkOverlap = params.misc.checkOverlap;
  runtime.checkPointers = params.misc.checkPointers || params.misc.checkMode != "DEFAULT";
  runtime.allowVmm = params.transports.cumemEnable != 0;
  runtime.p2p.descriptors = params.transports.cumemEnable == 1;
  runtime.allowRanksOfOneDevice = params.transports.multiRankGpu;
  runtime.registersBuffers = params.transports.localRegister && !params.transports.p2pUseCudaMemcpy;
  runtime.registersGraphs = params.transports.graphRegister;
  runtime.memoryManaged = !params.transports.disableMemManager;
  return runtime;
}

const bootstrap::BootstrapSettings& joinSettings(const CommSettings& settings) {
  return settings.bootstrap;
}

}  // namespace tutti::comm
