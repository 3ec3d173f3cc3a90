// Communicators made from communicators, and their memory while nobody uses them.
#include <algorithm>

#include "api/boundary.h"
#include "comm/lifecycle.h"

using namespace tutti;

TUTTI_API(ncclResult_t, CommSplit, (ncclComm_t comm, int, int, ncclComm_t* newcomm, ncclConfig_t*)) {
  return api::apiInGroup("ncclCommSplit", [&]() -> Status {
    TRY(comm::checkComm(comm, "CommSplit"));
    TRY(api::checkPointer(newcomm, "CommSplit", "newcomm"));
    TRY(comm::checkReady(*comm, "CommSplit"));
    return api::notYet("ncclCommSplit");
  });
}

TUTTI_API(ncclResult_t, CommShrink,
          (ncclComm_t comm, int* excludeRanksList, int excludeRanksCount, ncclComm_t* newcomm, ncclConfig_t*,
           int shrinkFlags)) {
  return api::apiInGroup("ncclCommShrink", [&]() -> Status {
    TRY(comm::checkComm(comm, "CommShrink"));
    TRY(api::checkPointer(newcomm, "CommShrink", "newcomm"));
    TRY(api::checkPointer(excludeRanksList, "CommShrink", "excludeRanksList"));
    if (excludeRanksCount <= 0) {
      return fail(ncclInvalidArgument, "CommShrink : {} ranks to exclude: name at least one", excludeRanksCount);
    }
    if ((shrinkFlags & ~NCCL_SHRINK_ABORT) == 0) TRY(comm::checkReady(*comm, "CommShrink"));
    if (std::count(excludeRanksList, excludeRanksList + excludeRanksCount, comm::commUserRank(*comm)) > 0) {
      return fail(ncclInvalidArgument,
                  "CommShrink : rank {} is in the list of ranks to exclude: only the others call it",
                  comm::commUserRank(*comm));
    }
    return api::notYet("ncclCommShrink");
  });
}

TUTTI_API(ncclResult_t, CommGetUniqueId, (ncclComm_t comm, ncclUniqueId* uniqueId)) {
  return api::api("ncclCommGetUniqueId", [&]() -> Status {
    TRY(api::checkUsable(comm, "CommGetUniqueId"));
    TRY(api::checkPointer(uniqueId, "CommGetUniqueId", "uniqueId"));
    return api::notYet("ncclCommGetUniqueId");
  });
}

TUTTI_API(ncclResult_t, CommGrow,
          (ncclComm_t comm, int nRanks, const ncclUniqueId* uniqueId, int rank, ncclComm_t* newcomm, ncclConfig_t*)) {
  return api::apiInGroup("ncclCommGrow", [&]() -> Status {
    TRY(api::checkPointer(newcomm, "CommGrow", "newcomm"));
    if (comm != nullptr) TRY(api::checkUsable(comm, "CommGrow"));
    if (nRanks <= 0 || (comm != nullptr && nRanks <= comm::commCount(*comm))) {
      return fail(ncclInvalidArgument, "CommGrow : {} ranks are not more than there are", nRanks);
    }
    if (comm != nullptr && rank != -1) {
      return fail(ncclInvalidArgument, "CommGrow : invalid rank {}: members keep theirs and pass -1", rank);
    }
    if (comm == nullptr && (rank < 0 || rank >= nRanks)) {
      return fail(ncclInvalidArgument, "CommGrow : invalid rank {} of {}", rank, nRanks);
    }
    if (comm == nullptr) TRY(api::checkPointer(uniqueId, "CommGrow", "uniqueId"));
    return api::notYet("ncclCommGrow");
  });
}

TUTTI_API(ncclResult_t, CommSuspend, (ncclComm_t comm, int)) {
  return api::apiInGroup("ncclCommSuspend", [&]() -> Status {
    TRY(api::checkUsable(comm, "CommSuspend"));
    return api::notYet("ncclCommSuspend");
  });
}

TUTTI_API(ncclResult_t, CommResume, (ncclComm_t comm)) {
  return api::apiInGroup("ncclCommResume", [&]() -> Status {
    TRY(api::checkUsable(comm, "CommResume"));
    return api::notYet("ncclCommResume");
  });
}

TUTTI_API(ncclResult_t, CommMemStats, (ncclComm_t comm, ncclCommMemStat_t stat, uint64_t* value)) {
  return api::api("ncclCommMemStats", [&]() -> Status {
    TRY(api::checkUsable(comm, "CommMemStats"));
    TRY(api::checkPointer(value, "CommMemStats", "value"));
    const int number = static_cast<int>(stat);
    if (number < ncclStatGpuMemSuspend || number > ncclStatGpuMemTotal) {
      return fail(ncclInvalidArgument, "CommMemStats : unknown statistic {}", number);
    }
    return api::notYet("ncclCommMemStats");
  });
}
