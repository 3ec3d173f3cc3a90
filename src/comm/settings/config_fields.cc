#include "comm/settings/config_fields.h"

#include <array>
#include <cstddef>

#include "base/log.h"

namespace tutti::comm {

namespace {

constexpr int kUndefined = ConfigField::kUndefined;
constexpr int kUnbounded = ConfigField::kUnbounded;
constexpr const char* kNoClusters = "kernels run without clusters";
constexpr const char* kOnePolicy = "there is one policy";
constexpr const char* kNoNvls = "there are no NVLink SHARP kernels";
constexpr const char* kNoAttribute = "kernels are launched without that attribute";
constexpr const char* kNoOneSided = "there are no one-sided operations";
constexpr const char* kNoCft = "there are no teams of that kind";

constexpr std::array<ConfigField, 21> kFields{{
    {"Blocking", "blocking", &ncclConfig_t::blocking, 21400, 0, 1, 1},
    {"CGA cluster size", "cgaClusterSize", &ncclConfig_t::cgaClusterSize, 21700, 0, kUnbounded, 4, kNoClusters},
    {"Min CTAs", "minCTAs", &ncclConfig_t::minCTAs, 21700, 1, kUnbounded, 1},
    {"Max CTAs", "maxCTAs", &ncclConfig_t::maxCTAs, 21700, 1, kUnbounded, 64},
    {"Split share", "splitShare", &ncclConfig_t::splitShare, 0, 0, 1, 0},
    {"Traffic class", "trafficClass", &ncclConfig_t::trafficClass, 22500, kUndefined, kUnbounded, kUndefined},
    {"Collnet enable", "collnetEnable", &ncclConfig_t::collnetEnable, 22700, 0, 1, 0},
    {"CTA policy flags", "CTAPolicy", &ncclConfig_t::CTAPolicy, 22700, 0, 3, 0, kOnePolicy},
    {"shrinkShare", "shrinkShare", &ncclConfig_t::shrinkShare, 22700, 0, 1, 0},
    {"nvlsCTAs", "nvlsCTAs", &ncclConfig_t::nvlsCTAs, 22700, 1, kUnbounded, kUndefined, kNoNvls},
    {"nChannelsPerNetPeer", "nChannelsPerNetPeer", &ncclConfig_t::nChannelsPerNetPeer, 22800, 1, 64, kUndefined},
    {"nvlinkCentricSched", "nvlinkCentricSched", &ncclConfig_t::nvlinkCentricSched, 22800, 0, 1, 0, kNoAttribute},
    {"graphUsageMode", "graphUsageMode", &ncclConfig_t::graphUsageMode, 22900, 0, 2, 2},
    {"numRmaCtx", "numRmaCtx", &ncclConfig_t::numRmaCtx, 22900, 0, kUnbounded, 1, kNoOneSided},
    {"maxP2pPeers", "maxP2pPeers", &ncclConfig_t::maxP2pPeers, 23000, 1, kUnbounded, kUndefined},
    {"graphStreamOrdering", "graphStreamOrdering", &ncclConfig_t::graphStreamOrdering, 23005, 0, 1, 1},
    {"launchOrderImplicit", "launchOrderImplicit", &ncclConfig_t::launchOrderImplicit, 23100, 0, 1, 0},
    {"numRmaSig", "numRmaSig", &ncclConfig_t::numRmaSig, 23100, 0, kUnbounded, kUndefined, kNoOneSided},
    {"rmaEagerInit", "rmaEagerInit", &ncclConfig_t::rmaEagerInit, 23100, 0, 1, 0, kNoOneSided},
    {"hostCftMode", "hostCftMode", &ncclConfig_t::hostCftMode, 23100, 1, 3, kUndefined, kNoCft},
    {"nvlsHostMode", "nvlsHostMode", &ncclConfig_t::nvlsHostMode, 23200, 0, kUnbounded, kUndefined, kNoNvls},
}};
static_assert(kFields.size() <= 32, "one bit for each");

}  // namespace

std::span<const ConfigField> configFields() {
  return kFields;
}

void sayWithoutEffect(const ncclConfig_t& given, std::atomic<std::uint32_t>& said) {
  for (std::size_t i = 0; i < kFields.size(); ++i) {
    const ConfigField& field = kFields[i];
    if (field.without == nullptr || given.*field.member == kUndefined) continue;
    const std::uint32_t bit = 1U << i;
    if ((said.fetch_or(bit) & bit) != 0) continue;
    info(kEnv, "Comm config {} has no effect yet: {}", field.title, field.without);
  }
}

}  // namespace tutti::comm
