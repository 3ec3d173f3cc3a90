// Asking and ending communicators.
#include "api/boundary.h"
#include "comm/lifecycle.h"

using namespace tutti;

namespace tutti {

Status checkUsable(ncclComm_t comm, std::string_view label) {
  TRY(checkComm(comm, label));
  return checkReady(*comm, label);
}

}  // namespace tutti

namespace {

/// The three functions that store one number of a ready communicator.
Status store(ncclComm_t comm, int* out, std::string_view label, std::string_view what, int (*read)(const ncclComm&)) {
  TRY(checkComm(comm, label));
  TRY(checkPointer(out, label, what));
  TRY(checkReady(*comm, label));
  *out = read(*comm);
  return {};
}

}  // namespace

TUTTI_API(ncclResult_t, CommCount, (const ncclComm_t comm, int* count)) {
  return api("ncclCommCount", [&] { return store(comm, count, "CommCount", "count", commCount); });
}

TUTTI_API(ncclResult_t, CommCuDevice, (const ncclComm_t comm, int* device)) {
  return api("ncclCommCuDevice", [&] { return store(comm, device, "CommCuDevice", "device", commCuDevice); });
}

TUTTI_API(ncclResult_t, CommUserRank, (const ncclComm_t comm, int* rank)) {
  return api("ncclCommUserRank", [&] { return store(comm, rank, "CommUserRank", "rank", commUserRank); });
}

TUTTI_API(ncclResult_t, CommGetAsyncError, (ncclComm_t comm, ncclResult_t* asyncError)) {
  return api("ncclCommGetAsyncError", [&]() -> Status {
    TRY(checkComm(comm, "ncclGetAsyncError"));
    TRY(checkPointer(asyncError, "ncclGetAsyncError", "asyncError"));
    *asyncError = commAsyncError(*comm);
    return {};
  });
}

TUTTI_API(ncclResult_t, CommFinalize, (ncclComm_t comm)) {
  if (comm == nullptr) return ncclSuccess;
  return apiInGroup("ncclCommFinalize", [&]() -> Result<Progress> {
    TRY(checkUsable(comm, "CommFinalize"));
    return finalizeComm(*comm);
  });
}

TUTTI_API(ncclResult_t, CommDestroy, (ncclComm_t comm)) {
  if (comm == nullptr) return ncclSuccess;
  return apiInGroup("ncclCommDestroy", [&]() -> Result<Progress> {
    TRY(checkComm(comm, "CommDestroy"));
    return destroyComm(comm);
  });
}

TUTTI_API(ncclResult_t, CommAbort, (ncclComm_t comm)) {
  if (comm == nullptr) return ncclSuccess;
  return apiInGroup("ncclCommAbort", [&]() -> Result<Progress> {
    TRY(checkComm(comm, "CommAbort"));
    return abortComm(comm);
  });
}

TUTTI_API(ncclResult_t, CommRevoke, (ncclComm_t comm, int revokeFlags)) {
  if (comm == nullptr) return ncclSuccess;
  return apiInGroup("ncclCommRevoke", [&]() -> Status {
    TRY(checkComm(comm, "CommRevoke"));
    if (revokeFlags != NCCL_REVOKE_DEFAULT) {
      return fail(ncclInvalidArgument, "CommRevoke : invalid flags {:#x}: only NCCL_REVOKE_DEFAULT is defined",
                  static_cast<unsigned>(revokeFlags));
    }
    return notYet("ncclCommRevoke");
  });
}
