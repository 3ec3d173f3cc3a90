#include "comm/lifecycle.h"

#include <fmt/format.h>

#include <vector>

#include "base/hash.h"
#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "comm/ending/deferred_free.h"
#include "comm/ending/ending.h"
#include "comm/ending/flush.h"
#include "comm/ending/revoke.h"
#include "comm/enqueue/group.h"
#include "comm/enqueue/group_work.h"
#include "comm/enqueue/start_job.h"
#include "comm/making.h"
#include "comm/state/background.h"
#include "comm/state/call_gate.h"
#include "comm/state/communicator.h"
#include "comm/state/revocation.h"

namespace tutti::comm {

namespace {

/// What goes on in the background, in words.
std::string pendingCall(const ncclComm& comm) {
  if (comm.progress.starting.load()) return "its init by " + comm.identity.function;
  if (const char* const call = comm.progress.pending.load()) return call;
  return "a group of operations";
}

}  // namespace

Status checkComm(ncclComm_t comm, std::string_view label) {
  if (comm == nullptr) return fail(ncclInvalidArgument, "{} : comm argument is NULL", label);
  if (comm->magicFirst != ncclComm::kMagic || comm->magicLast != ncclComm::kMagic) {
    return fail(ncclInvalidArgument,
                "Error: corrupted comm object detected ({}): the handle was destroyed before, or its "
                "memory was overwritten",
                label);
  }
  return {};
}

Status checkReady(ncclComm& comm, std::string_view label) {
  switch (commAsyncError(comm)) {
    case ncclSuccess:
      break;
    case ncclInProgress:
      return fail(ncclInvalidArgument,
                  "{} : attempt to use communicator {} before the previous operation returned "
                  "ncclSuccess: {} is still in progress, poll ncclCommGetAsyncError",
                  label, fmt::ptr(&comm), pendingCall(comm));
    case ncclUnhandledCudaError:
    case ncclSystemError:
    case ncclInternalError:
    case ncclInvalidArgument:
    case ncclInvalidUsage:
    case ncclRemoteError:
    case ncclTimeout:
    case ncclNumResults:
      return comm.abort.status();
  }
  return {};
}

std::string commName(const ncclComm& comm) {
  return describeComm(comm);
}

int commCount(const ncclComm& comm) {
  return comm.identity.nRanks;
}
int commUserRank(const ncclComm& comm) {
  return comm.identity.rank;
}
int commCuDevice(const ncclComm& comm) {
  return comm.identity.cudaDevice;
}

std::uint64_t commHash(const ncclComm& comm) {
  return comm.parts.bootstrap ? comm.parts.bootstrap->commHash() : 0;
}

ncclResult_t commAsyncError(ncclComm& comm) {
  const std::lock_guard lock(comm.progress.mutex);
  if (comm.progress.task) {
    if (!comm.progress.task->done()) return ncclInProgress;
    comm.progress.task->wait().ignore();  // ended: joins without waiting
    comm.progress.task.reset();
  }
  if (comm.progress.starting.load(std::memory_order_acquire)) return ncclInProgress;
  // Its own reason counts more than what peers said about theirs, whoever was faster.
  const ncclResult_t initResult = comm.progress.initResult.load();
  if (initResult != ncclSuccess) return initResult;
  // Whoever polls for the end of the shrink must not take for its failure why the communicator was given up.
  if (comm.progress.replaced.load()) return ncclSuccess;
  const Revocation& revocation = *comm.progress.revocation;
  return revocation.begun() ? revocation.result() : comm.abort.status().code();
}

Result<Progress> revokeComm(ncclComm& comm) {
  // From here on: another thread may abort the communicator meanwhile, and must wait before it frees it.
  auto pass = std::make_shared<CallGate::Pass>(*comm.gate);
  const CommProgress& progress = comm.progress;
  if (progress.destroying.load() || progress.ending.load()) {
    return fail(ncclInvalidArgument, "CommRevoke : the communicator is being destroyed or aborted");
  }
  if (progress.finalized.load()) return fail(ncclInvalidArgument, "CommRevoke : the communicator was finalized before");
  if (GroupWork* group = openGroup()) TRY(group->admit(comm));
  if (!comm.progress.revocation->begin()) {
    return fail(ncclInvalidArgument, "CommRevoke : the communicator was revoked before");
  }
  auto before = [&comm] {
    const std::lock_guard lock(comm.progress.mutex);
    return comm.progress.task;
  }();
  raiseRevoke(comm);
  auto body = [&comm, pass = std::move(pass), before = std::move(before)] { return awaitRevoked(comm, before.get()); };
  return startJob(comm, JobKind::Revoke, std::move(body), false);
}

ncclResult_t commStateToTell(ncclComm& comm) {
  const GroupWork* const group = openGroup();
  if (group != nullptr && group->collectsInitOf(comm)) return ncclSuccess;
  return commAsyncError(comm);
}

Result<Progress> finalizeComm(ncclComm& comm) {
  if (comm.progress.revocation->begun()) {
    return fail(ncclInvalidArgument, "CommFinalize : the communicator was revoked: ncclCommDestroy is what is left");
  }
  if (comm.progress.finalized.exchange(true)) {
    return fail(ncclInvalidArgument, "CommFinalize : the communicator was finalized before");
  }
  comm.progress.pending = "ncclCommFinalize";
  return startJob(
      comm, JobKind::Finalize,
      [&comm] {
        const CallGate::Pass pass(*comm.gate);
        TRY(flushComm(comm));
        // Kernels end for a failure as well, and then nothing of theirs is to be waited for.
        if (comm.abort.raised()) restoreLastError(comm.abort.text());
        return comm.abort.status();
      },
      false);
}

Result<Progress> destroyComm(ncclComm* comm) {
  comm->progress.destroying.store(true);
  return startJob(
      *comm, JobKind::End, [comm] { return destroyAndRelease(comm); }, true);
}

Result<Progress> abortComm(ncclComm* comm) {
  comm->progress.aborted.store(true);
  return startJob(
      *comm, JobKind::End, [comm] { return abortAndRelease(comm); }, true);
}

}  // namespace tutti::comm
