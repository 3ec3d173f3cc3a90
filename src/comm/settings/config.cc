#include "comm/settings/config.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "base/log.h"

namespace tutti::comm {

namespace {

constexpr int kUndefined = NCCL_CONFIG_UNDEF_INT;
constexpr int kMaxCtas = 64;
constexpr int kUnbounded = 0x7fffffff;
constexpr unsigned kConfigMagic = 0xcafebeef;

/// One integer of ncclConfig_t: how it is called, since when a user's struct may carry it, what it may be.
struct IntField {
  const char* title;      ///< for "Comm config <title> set to …"
  const char* attribute;  ///< for error messages
  int ncclConfig_t::*member;
  unsigned since;  ///< NCCL_VERSION_CODE of the first header with it; 0: its presence follows from the size
  int lowest;
  int highest;
  int fallback;
};

constexpr std::array<IntField, 21> kIntFields{{
    {"Blocking", "blocking", &ncclConfig_t::blocking, 21400, 0, 1, 1},
    {"CGA cluster size", "cgaClusterSize", &ncclConfig_t::cgaClusterSize, 21700, 0, kUnbounded, 4},
    {"Min CTAs", "minCTAs", &ncclConfig_t::minCTAs, 21700, 1, kUnbounded, 1},
    {"Max CTAs", "maxCTAs", &ncclConfig_t::maxCTAs, 21700, 1, kUnbounded, kMaxCtas},
    {"Split share", "splitShare", &ncclConfig_t::splitShare, 0, 0, 1, 0},
    {"Traffic class", "trafficClass", &ncclConfig_t::trafficClass, 22500, kUndefined, kUnbounded, kUndefined},
    {"Collnet enable", "collnetEnable", &ncclConfig_t::collnetEnable, 22700, 0, 1, 0},
    {"CTA policy flags", "CTAPolicy", &ncclConfig_t::CTAPolicy, 22700, 0, 3, 0},
    {"shrinkShare", "shrinkShare", &ncclConfig_t::shrinkShare, 22700, 0, 1, 0},
    {"nvlsCTAs", "nvlsCTAs", &ncclConfig_t::nvlsCTAs, 22700, 1, kUnbounded, kUndefined},
    {"nChannelsPerNetPeer", "nChannelsPerNetPeer", &ncclConfig_t::nChannelsPerNetPeer, 22800, 1, 64, kUndefined},
    {"nvlinkCentricSched", "nvlinkCentricSched", &ncclConfig_t::nvlinkCentricSched, 22800, 0, 1, 0},
    {"graphUsageMode", "graphUsageMode", &ncclConfig_t::graphUsageMode, 22900, 0, 2, 2},
    {"numRmaCtx", "numRmaCtx", &ncclConfig_t::numRmaCtx, 22900, 0, kUnbounded, 1},
    {"maxP2pPeers", "maxP2pPeers", &ncclConfig_t::maxP2pPeers, 23000, 1, kUnbounded, kUndefined},
    {"graphStreamOrdering", "graphStreamOrdering", &ncclConfig_t::graphStreamOrdering, 23005, 0, 1, 1},
    {"launchOrderImplicit", "launchOrderImplicit", &ncclConfig_t::launchOrderImplicit, 23100, 0, 1, 0},
    {"numRmaSig", "numRmaSig", &ncclConfig_t::numRmaSig, 23100, 0, kUnbounded, kUndefined},
    {"rmaEagerInit", "rmaEagerInit", &ncclConfig_t::rmaEagerInit, 23100, 0, 1, 0},
    {"hostCftMode", "hostCftMode", &ncclConfig_t::hostCftMode, 23100, 1, 3, kUndefined},
    {"nvlsHostMode", "nvlsHostMode", &ncclConfig_t::nvlsHostMode, 23200, 0, kUnbounded, kUndefined},
}};

/// Those that are for what is not there yet; the last ones of the table.
constexpr std::size_t kWithoutEffect = 5;

/// Takes over as much of the user's struct as both sides know, and forgets what its header cannot have had.
Result<ncclConfig_t> adopt(const ncclConfig_t& user) {
  ncclConfig_t adopted = undefinedConfig();
  std::memcpy(&adopted, &user, std::min(user.size, sizeof(adopted)));
  if (adopted.magic != kConfigMagic) {
    return fail(
        ncclInvalidArgument,
        "ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER (magic {:#x}, expected {:#x}): it says "
        "size {} and version {}, this library has size {} and version {}. Initialise it with that macro of the "
        "nccl.h that belongs to this library; where it was, the program mixes headers",
        adopted.magic, kConfigMagic, user.size, adopted.version, sizeof(adopted), NCCL_VERSION_CODE);
  }
  for (const IntField& field : kIntFields) {
    if (field.since > adopted.version) adopted.*field.member = kUndefined;
  }
  constexpr unsigned kNetNameSince = 21700;
  if (adopted.version < kNetNameSince) adopted.netName = nullptr;
  return adopted;
}

Status checkValues(const ncclConfig_t& config) {
  for (const IntField& field : kIntFields) {
    const int value = config.*field.member;
    if (value == kUndefined || (value >= field.lowest && value <= field.highest)) continue;
    return fail(ncclInvalidArgument, "Invalid config {} attribute value {} (allowed: {}..{})", field.attribute, value,
                field.lowest, field.highest == kUnbounded ? "" : std::to_string(field.highest));
  }
  // The raw values on purpose: minCTAs set and maxCTAs left undefined (the smallest int) is refused as well.
  if (config.minCTAs > config.maxCTAs) {
    return fail(ncclInvalidArgument,
                "Invalid config min/max channels attribute value {}/{}: set maxCTAs to at least "
                "minCTAs",
                config.minCTAs, config.maxCTAs);
  }
  return {};
}

void logSettings(const ncclConfig_t& config) {
  for (const IntField& field : kIntFields) {
    const int value = config.*field.member;
    if (value != kUndefined) info(kEnv, "Comm config {} set to {}", field.title, value);
  }
  static std::atomic<unsigned> said{0};
  for (std::size_t i = kIntFields.size() - kWithoutEffect; i < kIntFields.size(); ++i) {
    const unsigned bit = 1U << i;
    if (config.*kIntFields[i].member == kUndefined || (said.fetch_or(bit) & bit) != 0) continue;
    info(kEnv, "Comm config {} has no effect yet", kIntFields[i].title);
  }
  if (config.netName != nullptr) info(kEnv, "Comm config Net name set to {}", config.netName);
  if (config.commName != nullptr) info(kEnv, "Comm config Comm name set to {}", config.commName);
}

void applyEnvironment(ncclConfig_t& config, const ncclConfig_t& environment) {
  for (const IntField& field : kIntFields) {
    if (environment.*field.member != kUndefined) config.*field.member = environment.*field.member;
  }
  if (environment.netName != nullptr) config.netName = environment.netName;
}

void applyDefaults(ncclConfig_t& config) {
  for (const IntField& field : kIntFields) {
    if (config.*field.member == kUndefined) config.*field.member = field.fallback;
  }
}

/// Settings that contradict each other or the library's limits are bent, not refused.
void reconcile(ncclConfig_t& config) {
  config.minCTAs = std::min(config.minCTAs, kMaxCtas);
  config.maxCTAs = std::min(config.maxCTAs, kMaxCtas);
  if (config.minCTAs > config.maxCTAs) {
    info(kEnv, "minCTAs {} is larger than maxCTAs {}, using {} for both", config.minCTAs, config.maxCTAs,
         config.maxCTAs);
    config.minCTAs = config.maxCTAs;
  }
  constexpr int kBothPolicies = NCCL_CTA_POLICY_EFFICIENCY | NCCL_CTA_POLICY_ZERO;
  if ((config.CTAPolicy & kBothPolicies) == kBothPolicies) {
    warn("CTA policies EFFICIENCY and ZERO exclude each other: EFFICIENCY is ignored");
    config.CTAPolicy &= ~NCCL_CTA_POLICY_EFFICIENCY;
  }
  if (config.graphStreamOrdering == 0 && config.graphUsageMode == 2) {
    warn("graphStreamOrdering 0 needs graphUsageMode 0 or 1: stream ordering stays on");
    config.graphStreamOrdering = 1;
  }
}

/// With what the environment says and what nobody has said; the strings become its own.
Config complete(ncclConfig_t values, const ncclConfig_t& environment) {
  applyEnvironment(values, environment);
  applyDefaults(values);
  reconcile(values);

  Config config;
  config.netName = values.netName != nullptr ? values.netName : "";
  config.commName = values.commName != nullptr ? values.commName : "";
  values.netName = nullptr;
  values.commName = nullptr;
  config.values = values;
  return config;
}

}  // namespace

ncclConfig_t undefinedConfig() {
  const ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  return config;
}

Result<Config> parseConfig(const ncclConfig_t* user, const ncclConfig_t& environment) {
  ncclConfig_t values = undefinedConfig();
  if (user != nullptr) {
    ASSIGN(values, adopt(*user));
    TRY(checkValues(values));
    logSettings(values);
  }
  return complete(values, environment);
}

Config inheritConfig(const Config& parent, const ncclConfig_t& environment) {
  ncclConfig_t values = parent.values;
  if (!parent.netName.empty()) values.netName = parent.netName.c_str();
  if (!parent.commName.empty()) values.commName = parent.commName.c_str();
  return complete(values, environment);
}

}  // namespace tutti::comm
