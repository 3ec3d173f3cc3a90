#include "comm/ending.h"

#include <fmt/format.h>

#include "base/log.h"

namespace tutti {

namespace {

/// How long kernels and threads may take to notice an abort: they poll, so this is ample.
constexpr milliseconds kLeaveBound{10'000};

std::shared_ptr<BackgroundTask> taskOf(ncclComm& comm) {
  const std::lock_guard lock(comm.progress.mutex);
  return comm.progress.task;
}

/// Memory that kernels may still touch must not be freed: it is given up instead.
void giveUp(ncclComm& comm) {
  warn("{}: kernels did not stop within {} s after the abort; their memory stays allocated until the process ends",
       describeComm(comm), kLeaveBound.count() / 1000);
  auto* leaked = new CommParts(std::move(comm.parts));
  leaked->bootstrap.reset();
}

/// After an abort kernels leave by themselves; before anything is freed they must have.
bool kernelsHaveLeft(ncclComm& comm) {
  if (!comm.parts.launcher) return true;
  return comm.parts.launcher->drain(nullptr, kLeaveBound).ok();
}

}  // namespace

Status flushComm(ncclComm& comm) {
  CommParts& parts = comm.parts;
  if (!parts.launcher || comm.abort.raised()) return {};
  TRY(parts.launcher->drain(&comm.abort, comm.runtime.bootstrap.timeout));
  ASSIGN(const ContextGuard context, parts.device->device->enter());
  return parts.channels->awaitConsumed(comm.abort, Deadline::in(comm.runtime.bootstrap.timeout));
}

void releaseComm(ncclComm* comm, std::string_view how) {
  const CommIdentity identity = comm->identity;
  if (comm->abort.raised() && !kernelsHaveLeft(*comm)) giveUp(*comm);
  comm->magicFirst = 0;
  comm->magicLast = 0;
  const std::string address = fmt::format("{}", fmt::ptr(comm));
  delete comm;
  info(kDestroy, "comm {} rank {} nranks {} cudaDev {} busId {:x} - {} COMPLETE", address, identity.rank,
       identity.nRanks, identity.cudaDevice, identity.busId, how);
}

namespace {

/// Frees a communicator whose abort is raised and whose end the caller has claimed.
Status finishAbort(ncclComm* comm) {
  if (const auto task = taskOf(*comm)) task->wait().ignore();
  if (!comm->gate.awaitEmpty(Deadline::in(kLeaveBound))) {
    warn("{}: a call on another thread did not return within {} s after ncclCommAbort; the communicator's memory stays "
         "allocated", describeComm(*comm), kLeaveBound.count() / 1000);
    return {};
  }
  if (comm->parts.bootstrap) comm->parts.bootstrap->abort(comm->abort.status());
  releaseComm(comm, "Abort");
  return {};
}

}  // namespace

Status abortAndRelease(ncclComm* comm) {
  info(kDestroy, "comm {} rank {} nranks {} cudaDev {} busId {:x} - Abort START", fmt::ptr(comm), comm->identity.rank,
       comm->identity.nRanks, comm->identity.cudaDevice, comm->identity.busId);
  // Claimed before anybody is woken: a call that fails because of this must not free the communicator as well.
  if (comm->progress.ending.exchange(true)) return {};
  comm->abort.raise(Status(ncclInvalidUsage), "the communicator was aborted by ncclCommAbort");
  return finishAbort(comm);
}

void endFailedInit(ncclComm* comm) { finishAbort(comm).ignore(); }

}  // namespace tutti
