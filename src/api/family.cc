// Communicators made from communicators, and their memory while nobody uses them.
#include <algorithm>

#include "api/boundary.h"
#include "comm/lifecycle.h"

using namespace tutti;

TUTTI_API(ncclResult_t, CommSplit,
          (ncclComm_t comm, int, int, ncclComm_t* newcomm, ncclConfig_t*)) {
  return apiInGroup("ncclCommSplit", [&]() -> Status {
    TRY(checkComm(comm, "CommSplit"));
    TRY(checkPointer(newcomm, "CommSplit", "newcomm"));
    TRY(checkReady(*comm, "CommSplit"));
    return notYet("ncclCommSplit");
  });
}

TUTTI_API(ncclResult_t, CommShrink,
          (ncclComm_t comm, int* excludeRanksList, int excludeRanksCount, ncclComm_t* newcomm, ncclConfig_t*,
           int shrinkFlags)) {
  return apiInGroup("ncclCommShrink", [&]() -> Status {
    TRY(checkComm(comm, "CommShrink"));
    TRY(checkPointer(newcomm, "CommShrink", "newcomm"));
    TRY(checkPointer(excludeRanksList, "CommShrink", "excludeRanksList"));
    if (excludeRanksCount <= 0) {
      return fail(ncclInvalidArgument, "CommShrink : {} ranks to exclude: name at least one", excludeRanksCount);
    }
    if ((shrinkFlags & ~NCCL_SHRINK_ABORT) == 0) TRY(checkReady(*comm, "CommShrink"));
    if (std::count(excludeRanksList, excludeRanksList + excludeRanksCount, commUserRank(*comm)) > 0) {
      return fail(ncclInvalidArgument,
                  "CommShrink : rank {} is in the list of ranks to exclude: only the others call it",
                  commUserRank(*comm));
    }
    return notYet("ncclCommShrink");
  });
}

TUTTI_API(ncclResult_t, CommGetUniqueId, (ncclComm_t comm, ncclUniqueId* uniqueId)) {
  return api("ncclCommGetUniqueId", [&]() -> Status {
    TRY(checkUsable(comm, "CommGetUniqueId"));
    TRY(checkPointer(uniqueId, "CommGetUniqueId", "uniqueId"));
    return notYet("ncclCommGetUniqueId");
  });
}

TUTTI_API(ncclResult_t, CommGrow,
          (ncclComm_t comm, int nRanks, const ncclUniqueId* uniqueId, int rank, ncclComm_t* newcomm, ncclConfig_t*)) {
  return apiInGroup("ncclCommGrow", [&]() -> Status {
    TRY(checkPointer(newcomm, "CommGrow", "newcomm"));
    if (comm != nullptr) TRY(checkUsable(comm, "CommGrow"));
    if (nRanks <= 0 || (comm != nullptr && nRanks <= commCount(*comm))) {
      return fail(ncclInvalidArgument, "CommGrow : {} ranks are not more than there are", nRanks);
    }
    if (comm != nullptr && rank != -1) {
      return fail(ncclInvalidArgument, "CommGrow : invalid rank {}: members keep theirs and pass -1", rank);
    }
    if (comm == nullptr && (rank < 0 || rank >= nRanks)) {
      return fail(ncclInvalidArgument, "CommGrow : invalid rank {} of {}", rank, nRanks);
    }
    if (comm == nullptr) TRY(checkPointer(uniqueId, "CommGrow", "uniqueId"));
    return notYet("ncclCommGrow");
  });
}

TUTTI_API(ncclResult_t, CommSuspend, (ncclComm_t comm, int)) {
  return apiInGroup("ncclCommSuspend", [&]() -> Status {
    TRY(checkUsable(comm, "CommSuspend"));
    return notYet("ncclCommSuspend");
  });
}

TUTTI_API(ncclResult_t, CommResume, (ncclComm_t comm)) {
  return apiInGroup("ncclCommResume", [&]() -> Status {
    TRY(checkUsable(comm, "CommResume"));
    return notYet("ncclCommResume");
  });
}

TUTTI_API(ncclResult_t, CommMemStats, (ncclComm_t comm, ncclCommMemStat_t stat, uint64_t* value)) {
  return api("ncclCommMemStats", [&]() -> Status {
    TRY(checkUsable(comm, "CommMemStats"));
    TRY(checkPointer(value, "CommMemStats", "value"));
    const int number = static_cast<int>(stat);
    if (number < ncclStatGpuMemSuspend || number > ncclStatGpuMemTotal) {
      return fail(ncclInvalidArgument, "CommMemStats : unknown statistic {}", number);
    }
    return notYet("ncclCommMemStats");
  });
}
