#include "transport/net/ib/nic/options.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "base/settings/params.h"

namespace tutti::net::ib {

namespace {

constexpr int kAutomatic = -2;

int firstSet(std::int64_t setting, int otherwise) {
  return setting >= 0 ? static_cast<int>(setting) : std::max(otherwise, 0);
}

constexpr int kMostTrafficClass = 255;
constexpr int kMostServiceLevel = 15;
/// What a configuration has that names none.
constexpr int kUndefined = std::numeric_limits<int>::min();

bool isGiven(int trafficClass) {
  return trafficClass != -1 && trafficClass != kUndefined;
}

const char* sourceOf(std::int64_t setting, const char* name, bool configured) {
  if (setting >= 0) return name;
  return configured ? "trafficClass of the configuration" : "default";
}

}  // namespace

std::chrono::nanoseconds IbOptions::lossBound() const {
  constexpr std::chrono::nanoseconds kUnit{4096};
  constexpr int kSlack = 4;
  return kUnit * (std::int64_t{1} << timeout) * (retries + 1) * kSlack;
}

GidWish IbOptions::gidFor(bool ethernet) const {
  GidWish wish = gid;
  if (!ethernet) wish.index = std::max(wish.index, 0);
  return wish;
}

IbOptions ibOptions(const Params& params, int trafficClass) {
  const auto& set = params.ib;
  IbOptions options;
  options.disabled = set.disable;
  options.library = set.library;
  options.hca = set.hca;
  options.gid.index = static_cast<int>(set.gidIndex);
  options.gid.family = set.addrFamily == "AF_INET6" ? GidFamily::Ipv6 : GidFamily::Ipv4;
  options.gid.range = GidRange::parse(set.addrRange);
  options.gid.roceVersion = static_cast<int>(set.roceVersion);
  options.timeout = static_cast<int>(set.timeout);
  options.retries = static_cast<int>(set.retryCount);
  options.serviceLevel = firstSet(set.serviceLevel, trafficClass > kMostServiceLevel ? 0 : trafficClass);
  options.trafficClass = firstSet(set.trafficClass, trafficClass);
  options.grantTrafficClass = static_cast<int>(set.fifoTrafficClass);
  options.partitionIndex = static_cast<int>(set.pkey);
  options.queuePairs = static_cast<int>(set.queuePairs);
  options.splits = set.splitData;
  if (set.arThreshold != kAutomatic) options.adaptiveThreshold = static_cast<std::uint32_t>(set.arThreshold);
  options.adaptiveRouting = static_cast<int>(set.adaptiveRouting);
  options.relaxedOrdering = set.relaxedOrdering != 0;
  options.mergesNics = set.mergeNics;
  options.mergesFunctions = set.mergeVfs;
  options.failsOnEvents = set.returnAsyncEvents;
  options.inlines = set.useInline;
  options.flushes = !params.topology.gdrFlushDisable;
  options.modifyRetries = static_cast<int>(set.modifyRetryCount);
  options.modifyStep = milliseconds(set.modifyRetrySleepMs);
  options.retriesAll = set.modifyRetryAll;
  options.ece = set.eceEnable;
  options.failover = set.portFailover;
  options.recovery = set.portRecovery;
  options.recoveryDelay = milliseconds(set.recoveryStartDelayMs);
  options.tryBound = milliseconds(set.recoveryAliveTimeoutMs);
  options.answerBound = milliseconds(set.recoveryAckTimeoutMs);
  options.recoveryTries = static_cast<int>(set.recoveryAttempts);
  return options;
}

std::string trafficDoubt(const Params& params, int trafficClass) {
  const bool counts = isGiven(trafficClass) && params.ib.trafficClass < 0;
  if (!counts || (trafficClass >= 0 && trafficClass <= kMostTrafficClass)) return {};
  return fmt::format(
      "trafficClass {} of the configuration is no traffic class, which is one of 0 to {}. Give another, or set "
      "NCCL_IB_TC, which goes before it",
      trafficClass, kMostTrafficClass);
}

std::string serviceLevelDoubt(const Params& params, int trafficClass) {
  const bool counts = isGiven(trafficClass) && params.ib.serviceLevel < 0;
  if (!counts || (trafficClass >= 0 && trafficClass <= kMostServiceLevel)) return {};
  return fmt::format(
      "trafficClass {} of the configuration is no service level of InfiniBand, which is one of 0 to {}: its packets go "
      "with service level 0. NCCL_IB_SL gives another",
      trafficClass, kMostServiceLevel);
}

std::string trafficText(const Params& params, int trafficClass) {
  const IbOptions options = ibOptions(params, trafficClass);
  const bool given = isGiven(trafficClass);
  const bool alsoLevel = given && trafficClass <= kMostServiceLevel;
  return fmt::format("traffic class {} ({}), service level {} ({}), grants with traffic class {}", options.trafficClass,
                     sourceOf(params.ib.trafficClass, "NCCL_IB_TC", given), options.serviceLevel,
                     sourceOf(params.ib.serviceLevel, "NCCL_IB_SL", alsoLevel),
                     options.grantTrafficClass >= 0 ? fmt::format("{} (NCCL_IB_FIFO_TC)", options.grantTrafficClass)
                                                    : "of the sender");
}

}  // namespace tutti::net::ib
