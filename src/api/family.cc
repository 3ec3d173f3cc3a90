// Communicators made from communicators.
#include <cstddef>
#include <span>

#include "api/boundary.h"
#include "comm/growth.h"
#include "comm/lifecycle.h"
#include "comm/shrinking.h"
#include "comm/splitting.h"

using namespace tutti;

// Split, Shrink and Grow say success, not ncclInProgress, where they go on in the background: callers compare with
// success, and ask the parent or the new communicator how it goes.

TUTTI_API(ncclResult_t, CommSplit, (ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config)) {
  return api::apiInGroup("ncclCommSplit", [&]() -> Status {
    TRY(comm::checkComm(comm, "CommSplit"));
    TRY(api::checkPointer(newcomm, "CommSplit", "newcomm"));
    TRY(comm::checkReady(*comm, "CommSplit"));
    return comm::splitComm({comm, color, key, newcomm, config}).status();
  });
}

TUTTI_API(ncclResult_t, CommShrink,
          (ncclComm_t comm, int* excludeRanksList, int excludeRanksCount, ncclComm_t* newcomm, ncclConfig_t* config,
           int shrinkFlags)) {
  return api::apiInGroup("ncclCommShrink", [&]() -> Status {
    TRY(comm::checkComm(comm, "CommShrink"));
    TRY(api::checkPointer(newcomm, "CommShrink", "newcomm"));
    TRY(api::checkPointer(excludeRanksList, "CommShrink", "excludeRanksList"));
    if (excludeRanksCount <= 0) {
      return fail(ncclInvalidArgument, "CommShrink : {} ranks to exclude: name at least one", excludeRanksCount);
    }
    if ((shrinkFlags & ~NCCL_SHRINK_ABORT) != 0) {
      return fail(ncclInvalidArgument, "CommShrink : invalid flags {:#x}: NCCL_SHRINK_DEFAULT or NCCL_SHRINK_ABORT",
                  static_cast<unsigned>(shrinkFlags));
    }
    const bool abortFirst = shrinkFlags == NCCL_SHRINK_ABORT;
    if (!abortFirst) TRY(comm::checkReady(*comm, "CommShrink"));
    const std::span<const int> exclude(excludeRanksList, static_cast<std::size_t>(excludeRanksCount));
    return comm::shrinkComm({comm, exclude, newcomm, config, abortFirst}).status();
  });
}

TUTTI_API(ncclResult_t, CommGetUniqueId, (ncclComm_t comm, ncclUniqueId* uniqueId)) {
  return api::api("ncclCommGetUniqueId", [&]() -> Status {
    TRY(api::checkMovable(comm, "CommGetUniqueId"));
    TRY(api::checkPointer(uniqueId, "CommGetUniqueId", "uniqueId"));
    ASSIGN(*uniqueId, comm::makeGrowthId(*comm));
    return {};
  });
}

TUTTI_API(ncclResult_t, CommGrow,
          (ncclComm_t comm, int nRanks, const ncclUniqueId* uniqueId, int rank, ncclComm_t* newcomm,
           ncclConfig_t* config)) {
  return api::apiInGroup("ncclCommGrow", [&]() -> Status {
    TRY(api::checkPointer(newcomm, "CommGrow", "newcomm"));
    if (comm != nullptr) TRY(api::checkMovable(comm, "CommGrow"));
    if (comm == nullptr) TRY(api::checkPointer(uniqueId, "CommGrow", "uniqueId"));
    if (nRanks <= 0) return fail(ncclInvalidArgument, "CommGrow : invalid number of ranks {}", nRanks);
    return comm::growComm({comm, nRanks, uniqueId, rank, newcomm, config}).status();
  });
}
