#include "comm/settings/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string_view>

#include "base/log.h"
#include "comm/settings/config_fields.h"

namespace tutti::comm {

namespace {

constexpr int kMaxCtas = 64;
constexpr unsigned kConfigMagic = 0xcafebeef;

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
  for (const ConfigField& field : configFields()) {
    if (field.since > adopted.version) adopted.*field.member = ConfigField::kUndefined;
  }
  constexpr unsigned kNetNameSince = 21700;
  if (adopted.version < kNetNameSince) adopted.netName = nullptr;
  return adopted;
}

Status checkValues(const ncclConfig_t& config) {
  for (const ConfigField& field : configFields()) {
    const int value = config.*field.member;
    if (value == ConfigField::kUndefined || (value >= field.lowest && value <= field.highest)) continue;
    return fail(ncclInvalidArgument, "Invalid config {} attribute value {} (allowed: {}..{})", field.name, value,
                field.lowest, field.highest == ConfigField::kUnbounded ? "" : std::to_string(field.highest));
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
  for (const ConfigField& field : configFields()) {
    const int value = config.*field.member;
    if (value != ConfigField::kUndefined) info(kEnv, "Comm config {} set to {}", field.title, value);
  }
  if (config.netName != nullptr) info(kEnv, "Comm config Net name set to {}", config.netName);
  if (config.commName != nullptr) info(kEnv, "Comm config Comm name set to {}", config.commName);
}

/// Options are given with every communicator, and mostly the same.
void sayOnceWithoutEffect(const ncclConfig_t& given) {
  static std::atomic<std::uint32_t> said{0};
  sayWithoutEffect(given, said);
}

void applyEnvironment(ncclConfig_t& config, const ncclConfig_t& environment) {
  for (const ConfigField& field : configFields()) {
    if (environment.*field.member != ConfigField::kUndefined) config.*field.member = environment.*field.member;
  }
  if (environment.netName != nullptr) config.netName = environment.netName;
}

void applyDefaults(ncclConfig_t& config) {
  for (const ConfigField& field : configFields()) {
    if (config.*field.member == ConfigField::kUndefined) config.*field.member = field.fallback;
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
  sayOnceWithoutEffect(environment);
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
    sayOnceWithoutEffect(values);
  }
  return complete(values, environment);
}

std::string describe(const Config& config) {
  std::string text;
  const auto add = [&](std::string_view name, const auto& value) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  };
  for (const ConfigField& field : configFields()) {
    if (const int value = config.values.*field.member; value != field.fallback) add(field.name, value);
  }
  if (!config.netName.empty()) add("netName", config.netName);
  if (!config.commName.empty()) add("commName", config.commName);
  return text;
}

Config inheritConfig(const Config& parent, const ncclConfig_t& environment) {
  ncclConfig_t values = parent.values;
  if (!parent.netName.empty()) values.netName = parent.netName.c_str();
  if (!parent.commName.empty()) values.commName = parent.commName.c_str();
  return complete(values, environment);
}

}  // namespace tutti::comm
