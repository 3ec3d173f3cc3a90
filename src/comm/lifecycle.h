// The life of a communicator as api/ sees it: making, asking, ending. Every function takes arguments whose plain form
// (null pointers) api/ has checked; ranges and configuration are checked here, where their messages are born.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "comm/state/progress.h"
#include "nccl.h"

namespace tutti::comm {

/// `label: comm argument is NULL` or `Error: corrupted comm object detected`, else success. `label` as the API names
/// the function in messages: "AllReduce", "CommCount", "ncclGetAsyncError", …
Status checkComm(ncclComm_t comm, std::string_view label);
/// Success if operations may be issued: not in progress (ncclInvalidArgument), no stored error (that error).
Status checkReady(ncclComm& comm, std::string_view label);

/// "rank 3 of 8 on host gpu07, device 3", for errors of calls: a group has calls of several communicators.
std::string commName(const ncclComm& comm);
int commCount(const ncclComm& comm);
int commUserRank(const ncclComm& comm);
/// Ordinal of the CUDA device the communicator was made on.
int commCuDevice(const ncclComm& comm);
/// Equal on all ranks, different between communicators; 0 of one that has not come up.
std::uint64_t commHash(const ncclComm& comm);
/// What ncclCommGetAsyncError stores: ncclInProgress while background work goes on. Never blocks. Any thread.
ncclResult_t commAsyncError(ncclComm& comm);
/// The same for callers that poll it: ncclSuccess while its init is only collected by the calling thread's open group,
/// for nothing is under way before that group ends.
ncclResult_t commStateToTell(ncclComm& comm);

/// ncclCommRevoke: operations under way end as they can, and no others begin; the communicator stays. May run on
/// another thread while a call on the communicator blocks, and on one that has failed. ncclInvalidArgument after
/// finalize, destroy or another revoke. `comm` has passed checkComm.
Result<Progress> revokeComm(ncclComm& comm);

/// ncclCommFinalize, Destroy, Abort. `comm` has passed checkComm. Destroy and abort end the handle's life, also where
/// they report an error. abortComm may run on another thread while a call on the communicator blocks.
Result<Progress> finalizeComm(ncclComm& comm);
Result<Progress> destroyComm(ncclComm* comm);
Result<Progress> abortComm(ncclComm* comm);

}  // namespace tutti::comm
