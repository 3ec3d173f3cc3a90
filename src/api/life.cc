// Asking and ending communicators.
#include "api/boundary.h"
#include "comm/lifecycle.h"
#include "comm/state/revocation.h"

using namespace tutti;

namespace tutti::api {

Status checkUsable(ncclComm_t comm, std::string_view label) {
  TRY(comm::checkComm(comm, label));
  return comm::checkReady(*comm, label);
}

Status checkMovable(ncclComm_t comm, std::string_view label) {
  TRY(comm::checkComm(comm, label));
  TRY(comm::checkNotRevoked(*comm, label));
  return comm::checkReady(*comm, label);
}

}  // namespace tutti::api

namespace {

/// The three functions that store one number of a ready communicator.
Status store(ncclComm_t comm, int* out, std::string_view label, std::string_view what, int (*read)(const ncclComm&)) {
  TRY(comm::checkComm(comm, label));
  TRY(api::checkPointer(out, label, what));
  TRY(comm::checkReady(*comm, label));
  *out = read(*comm);
  return {};
}

}  // namespace

TUTTI_API(ncclResult_t, CommCount, (const ncclComm_t comm, int* count)) {
  return api::ask("ncclCommCount", [&] { return store(comm, count, "CommCount", "count", comm::commCount); });
}

TUTTI_API(ncclResult_t, CommCuDevice, (const ncclComm_t comm, int* device)) {
  return api::ask("ncclCommCuDevice",
                  [&] { return store(comm, device, "CommCuDevice", "device", comm::commCuDevice); });
}

TUTTI_API(ncclResult_t, CommUserRank, (const ncclComm_t comm, int* rank)) {
  return api::ask("ncclCommUserRank", [&] { return store(comm, rank, "CommUserRank", "rank", comm::commUserRank); });
}

TUTTI_API(ncclResult_t, CommGetAsyncError, (ncclComm_t comm, ncclResult_t* asyncError)) {
  return api::ask("ncclCommGetAsyncError", [&]() -> Status {
    TRY(comm::checkComm(comm, "ncclGetAsyncError"));
    TRY(api::checkPointer(asyncError, "ncclGetAsyncError", "asyncError"));
    *asyncError = comm::commStateToTell(*comm);
    return {};
  });
}

TUTTI_API(ncclResult_t, CommFinalize, (ncclComm_t comm)) {
  if (comm == nullptr) return ncclSuccess;
  return api::apiInGroup("ncclCommFinalize", [&]() -> Result<comm::Progress> {
    TRY(api::checkUsable(comm, "CommFinalize"));
    return comm::finalizeComm(*comm);
  });
}

TUTTI_API(ncclResult_t, CommDestroy, (ncclComm_t comm)) {
  if (comm == nullptr) return ncclSuccess;
  return api::apiInGroup("ncclCommDestroy", [&]() -> Result<comm::Progress> {
    TRY(comm::checkComm(comm, "CommDestroy"));
    return comm::destroyComm(comm);
  });
}

TUTTI_API(ncclResult_t, CommAbort, (ncclComm_t comm)) {
  if (comm == nullptr) return ncclSuccess;
  return api::apiInGroup("ncclCommAbort", [&]() -> Result<comm::Progress> {
    TRY(comm::checkComm(comm, "CommAbort"));
    return comm::abortComm(comm);
  });
}

TUTTI_API(ncclResult_t, CommRevoke, (ncclComm_t comm, int revokeFlags)) {
  if (comm == nullptr) return ncclSuccess;
  return api::apiInGroup("ncclCommRevoke", [&]() -> Result<comm::Progress> {
    TRY(comm::checkComm(comm, "CommRevoke"));
    if (revokeFlags != NCCL_REVOKE_DEFAULT) {
      return fail(ncclInvalidArgument, "CommRevoke : invalid flags {:#x}: only NCCL_REVOKE_DEFAULT is defined",
                  static_cast<unsigned>(revokeFlags));
    }
    return comm::revokeComm(*comm);
  });
}
