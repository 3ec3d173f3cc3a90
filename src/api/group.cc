// Groups.
#include <cstddef>

#include "api/boundary.h"

using namespace tutti;

namespace {
constexpr unsigned kSimInfoMagic = 0x74685283;
}

TUTTI_API(ncclResult_t, GroupStart, (void)) {
  return api::api("ncclGroupStart", []() -> Status {
    comm::groupStart();
    return {};
  });
}

TUTTI_API(ncclResult_t, GroupEnd, (void)) {
  return api::api("ncclGroupEnd", [] { return comm::groupEnd(); });
}

TUTTI_API(ncclResult_t, GroupSimulateEnd, (ncclSimInfo_t * simInfo)) {
  if (simInfo == nullptr) return pncclGroupEnd();
  return api::api("ncclGroupSimulateEnd", [&]() -> Result<comm::Progress> {
    if (simInfo->magic != kSimInfoMagic) {
      return fail(ncclInvalidArgument,
                  "ncclGroupSimulateEnd : simInfo was not initialised with NCCL_SIM_INFO_INITIALIZER (magic {:#x})",
                  simInfo->magic);
    }
    float microseconds = NCCL_UNDEF_FLOAT;
    ASSIGN(const comm::Progress progress, comm::groupSimulateEnd(microseconds));
    constexpr std::size_t kNeeded = offsetof(ncclSimInfo_t, estimatedTime) + sizeof(float);
    if (simInfo->size >= kNeeded) simInfo->estimatedTime = microseconds;
    return progress;
  });
}
