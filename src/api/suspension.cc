// The memory of communicators while nobody uses them.
#include "comm/suspension.h"
#include "api/boundary.h"
#include "api/caller_values.h"
#include "comm/lifecycle.h"

using namespace tutti;

TUTTI_API(ncclResult_t, CommSuspend, (ncclComm_t comm, int flags)) {
  return api::apiInGroup("ncclCommSuspend", [&]() -> Result<comm::Progress> {
    TRY(api::checkMovable(comm, "CommSuspend"));
    return comm::beginSuspend(*comm, flags);
  });
}

TUTTI_API(ncclResult_t, CommResume, (ncclComm_t comm)) {
  return api::apiInGroup("ncclCommResume", [&]() -> Result<comm::Progress> {
    TRY(api::checkMovable(comm, "CommResume"));
    return comm::beginResume(*comm);
  });
}

TUTTI_API(ncclResult_t, CommMemStats, (ncclComm_t comm, ncclCommMemStat_t stat, uint64_t* value)) {
  return api::ask("ncclCommMemStats", [&]() -> Status {
    TRY(api::checkUsable(comm, "CommMemStats"));
    TRY(api::checkPointer(value, "CommMemStats", "value"));
    ASSIGN(*value, comm::memStat(*comm, api::numberIn(stat)));
    return {};
  });
}
