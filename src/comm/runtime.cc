#include "comm/runtime.h"

#include <cstdlib>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/log.h"
#include "comm/config.h"

namespace tutti {

namespace {

/// Number syntax of the reference: base by prefix, trailing garbage ignored, text without a number is 0.
std::optional<long long> number(const EnvReader& environment, std::string_view name) {
  const auto text = environment.get(name);
  if (!text || text->empty()) return std::nullopt;
  return std::strtoll(text->c_str(), nullptr, 0);
}

std::string text(const EnvReader& environment, std::string_view name) { return environment.get(name).value_or(""); }

void readConfig(const EnvReader& environment, Runtime& runtime) {
  struct Override {
    std::string_view name;
    int ncclConfig_t::*field;
    long long lowest;
    long long highest;
  };
  static constexpr Override kOverrides[] = {
      {"NCCL_COMM_BLOCKING", &ncclConfig_t::blocking, 0, 1},
      {"NCCL_CGA_CLUSTER_SIZE", &ncclConfig_t::cgaClusterSize, 0, 8},
      {"NCCL_MIN_CTAS", &ncclConfig_t::minCTAs, 1, 1 << 20},
      {"NCCL_MAX_CTAS", &ncclConfig_t::maxCTAs, 1, 1 << 20},
      {"NCCL_NCHANNELS_PER_NET_PEER", &ncclConfig_t::nChannelsPerNetPeer, 1, 64},
      {"NCCL_NVLINK_UTIL_CENTRIC_SCHED_ENABLE", &ncclConfig_t::nvlinkCentricSched, 0, 1},
      {"NCCL_COMM_SPLIT_SHARE_RESOURCES", &ncclConfig_t::splitShare, 0, 1},
      {"NCCL_COMM_SHRINK_SHARE_RESOURCES", &ncclConfig_t::shrinkShare, 0, 1},
      {"NCCL_COLLNET_ENABLE", &ncclConfig_t::collnetEnable, 0, 1},
      {"NCCL_CTA_POLICY", &ncclConfig_t::CTAPolicy, 0, 3},
      {"NCCL_NVLS_NCHANNELS", &ncclConfig_t::nvlsCTAs, 1, 64},
      {"NCCL_NUM_RMA_CTX", &ncclConfig_t::numRmaCtx, 0, 1 << 20},
      {"NCCL_P2P_MAX_PEERS", &ncclConfig_t::maxP2pPeers, 1, 1 << 30},
      {"NCCL_GRAPH_STREAM_ORDERING", &ncclConfig_t::graphStreamOrdering, 0, 1},
  };
  for (const Override& item : kOverrides) {
    auto value = number(environment, item.name);
    if (value && item.field == &ncclConfig_t::cgaClusterSize && *value > item.highest) value = item.highest;
    if (value && *value >= item.lowest && *value <= item.highest) {
      runtime.configOverrides.*item.field = static_cast<int>(*value);
    }
  }
  if (const auto mixing = number(environment, "NCCL_GRAPH_MIXING_SUPPORT")) {
    runtime.configOverrides.graphUsageMode = *mixing != 0 ? 2 : 0;
  }
  runtime.netName = text(environment, "NCCL_NET");
  if (!runtime.netName.empty()) runtime.configOverrides.netName = runtime.netName.c_str();
}

void readBootstrap(const EnvReader& environment, BootstrapSettings& settings) {
  settings.interfaceNames = text(environment, "NCCL_SOCKET_IFNAME");
  settings.family = text(environment, "NCCL_SOCKET_FAMILY");
  settings.commId = text(environment, "NCCL_COMM_ID");
  settings.commKey = text(environment, "TUTTI_COMM_KEY");
  if (const auto v = number(environment, "TUTTI_BOOTSTRAP_TIMEOUT_SEC"); v && *v > 0) {
    settings.timeout = std::chrono::seconds(*v);
  }
  if (const auto v = number(environment, "TUTTI_PEER_TIMEOUT_MS"); v && *v > 0) settings.peerTimeout = milliseconds(*v);
}

int firstOf(const EnvReader& environment, std::string_view name, std::string_view alias) {
  const auto value = number(environment, name);
  return static_cast<int>(value ? *value : number(environment, alias).value_or(0));
}

}  // namespace

Runtime::Runtime() : configOverrides(undefinedConfig()) {}

void readRuntime(const EnvReader& environment, Runtime& runtime) {
  readBootstrap(environment, runtime.bootstrap);
  readConfig(environment, runtime);
  const std::string level = text(environment, "NCCL_P2P_LEVEL");
  runtime.p2p.disabled = number(environment, "NCCL_P2P_DISABLE").value_or(0) == 1 || level == "LOC" || level == "0";
  runtime.hostId = text(environment, "NCCL_HOSTID");
  runtime.hostKernelsPath = text(environment, "TUTTI_KERNELS_PATH");
  const long long bufferBytes = number(environment, "NCCL_BUFFSIZE").value_or(0);
  if (bufferBytes > 0 && bufferBytes <= (1LL << 31)) runtime.bufferBytes = static_cast<std::uint32_t>(bufferBytes);
  runtime.minChannels = firstOf(environment, "NCCL_MIN_NCHANNELS", "NCCL_MIN_NRINGS");
  runtime.maxChannels = firstOf(environment, "NCCL_MAX_NCHANNELS", "NCCL_MAX_NRINGS");
  runtime.allowVmm = number(environment, "NCCL_CUMEM_ENABLE").value_or(-2) != 0;
  runtime.allowRanksOfOneDevice = number(environment, "NCCL_MULTI_RANK_GPU_ENABLE").value_or(0) == 1;
}

const Runtime& processRuntime() {
  static const Runtime& instance = [] () -> const Runtime& {
    auto* runtime = new Runtime;   // never destroyed: threads may still run when static objects go
    readRuntime(processEnvironment(), *runtime);
    return *runtime;
  }();
  return instance;
}

std::string versionText() {
  return fmt::format("NCCL version {}.{}.{}{}+cuda{}.{}", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH, NCCL_SUFFIX,
                     CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
}

}  // namespace tutti
