#include "comm/runtime.h"

#include <fmt/format.h>

#include "base/environment.h"
#include "comm/config.h"
#include "gpu/driver.h"

namespace tutti {

namespace {

void setIfGiven(int& field, const std::optional<std::int64_t>& value) {
  if (value) field = static_cast<int>(*value);
}

BootstrapSettings bootstrapFrom(const Params::Sockets& sockets) {
  BootstrapSettings settings;
  settings.interfaceNames = sockets.ifname;
  settings.family = sockets.family;
  settings.commId = sockets.commId;
  settings.commKey = sockets.commKey;
  settings.timeout = std::chrono::seconds(sockets.bootstrapTimeoutSec);
  settings.peerTimeout = milliseconds(sockets.peerTimeoutMs);
  return settings;
}

}  // namespace

Runtime runtimeFrom(const Params& params) {
  Runtime runtime;
  runtime.bootstrap = bootstrapFrom(params.sockets);
  runtime.configOverrides = undefinedConfig();
  setIfGiven(runtime.configOverrides.blocking, params.misc.commBlocking);
  setIfGiven(runtime.configOverrides.minCTAs, params.tuning.minCtas);
  setIfGiven(runtime.configOverrides.maxCTAs, params.tuning.maxCtas);
  setIfGiven(runtime.configOverrides.cgaClusterSize, params.tuning.cgaClusterSize);
  runtime.p2p.disabled = params.transports.p2pDisable || params.transports.p2pLevel == "LOC" ||
                         params.transports.p2pLevel == "0";
  runtime.hostId = params.sockets.hostId;
  runtime.hostKernelsPath = params.misc.kernelsPath;
  // The default means "automatic": the software GPU does better with smaller buffers.
  const bool given = params.tuning.buffSize != Params{}.tuning.buffSize;
  runtime.bufferBytes = given ? static_cast<std::uint32_t>(params.tuning.buffSize) : 0;
  setIfGiven(runtime.minChannels, params.tuning.minNchannels);
  setIfGiven(runtime.maxChannels, params.tuning.maxNchannels);
  runtime.allowVmm = params.transports.cumemEnable != 0;
  runtime.allowRanksOfOneDevice = params.transports.multiRankGpu;
  return runtime;
}

Runtime currentRuntime() { return runtimeFrom(Params::process().forCommunicator(processEnvironment())); }

std::string versionText() {
  return fmt::format("NCCL version {}.{}.{}{}+cuda{}.{}", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH, NCCL_SUFFIX,
                     CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
}

}  // namespace tutti
