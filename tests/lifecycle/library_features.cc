#include "lifecycle/library_features.h"

#include <array>
#include <cstring>
#include <utility>

namespace lifecycle {

namespace {

constexpr std::array<std::pair<Feature, const char*>, 6> kNames = {{{kSplit, "Split"},
                                                                    {kShrink, "Shrink"},
                                                                    {kGrow, "Grow"},
                                                                    {kRevoke, "Revoke"},
                                                                    {kSuspend, "Suspend and Resume"},
                                                                    {kMemStats, "MemStats"}}};

bool isThere(ncclResult_t result) {
  if (result != ncclInvalidUsage) return true;
  const char* const text = ncclGetLastError(nullptr);
  return std::strstr(text, "does not support") == nullptr || std::strstr(text, " yet") == nullptr;
}

}  // namespace

std::uint32_t probeFeatures() {
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  if (ncclGetUniqueId(&id) != ncclSuccess || ncclCommInitRank(&comm, 1, id, 0) != ncclSuccess) return kProbed;
  std::uint32_t features = kProbed;
  ncclComm_t child = nullptr;
  if (isThere(ncclCommSplit(comm, 0, 0, &child, nullptr))) features |= kSplit;
  if (child != nullptr) ncclCommDestroy(child);
  int nobody = 1;
  if (isThere(ncclCommShrink(comm, &nobody, 1, &child, nullptr, NCCL_SHRINK_DEFAULT))) features |= kShrink;
  ncclUniqueId more;
  if (isThere(ncclCommGetUniqueId(comm, &more))) features |= kGrow;
  std::uint64_t bytes = 0;
  if (isThere(ncclCommMemStats(comm, ncclStatGpuMemTotal, &bytes))) features |= kMemStats;
  const ncclResult_t suspended = ncclCommSuspend(comm, NCCL_SUSPEND_MEM);
  if (isThere(suspended)) features |= kSuspend;
  if (suspended == ncclSuccess) ncclCommResume(comm);
  if (isThere(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT))) features |= kRevoke;
  ncclCommAbort(comm);
  return features;
}

std::string missingFeatures(std::uint32_t features) {
  std::string missing;
  for (const auto& [feature, name] : kNames)
    if ((features & feature) == 0) missing += (missing.empty() ? "" : ", ") + std::string(name);
  return missing;
}

}  // namespace lifecycle
