#include "comm/suspension.h"

#include <functional>
#include <utility>

#include "base/log.h"
#include "comm/enqueue/start_job.h"
#include "comm/state/communicator.h"
#include "comm/state/family.h"
#include "comm/state/membership.h"
#include "comm/state/residence.h"
#include "comm/suspend/suspend.h"
#include "gpu/memory_ledger.h"

namespace tutti::comm {

namespace {

using State = Residence::State;

Status checkManaged(const ncclComm& comm, std::string_view label) {
  if (comm.options.memoryManaged) return {};
  return fail(ncclInvalidUsage, "{} : NCCL_DISABLE_MEM_MANAGER=1 forbids it; unset the variable", label);
}

Result<Progress> begin(ncclComm& comm, State change, Status (*body)(ncclComm&)) {
  Result<Progress> started = startJob(
      comm, JobKind::Memory, [&comm, body] { return body(comm); }, false);
  // Refused by its group before it was taken.
  if (!started.ok() && !comm.abort.raised() && comm.residence->state() == change) comm.residence->giveUp();
  return started;
}

}  // namespace

Result<Progress> beginSuspend(ncclComm& comm, int flags) {
  if ((flags & ~NCCL_SUSPEND_MEM) != 0) {
    return fail(ncclInvalidArgument, "CommSuspend : invalid flags {:#x}: only NCCL_SUSPEND_MEM is defined",
                static_cast<unsigned>(flags));
  }
  TRY(checkManaged(comm, "CommSuspend"));
  if ((flags & NCCL_SUSPEND_MEM) == 0) return Progress::Done;
  if (comm.membership->family && comm.membership->family->hasOthers(comm)) {
    return fail(
        ncclInvalidUsage,
        "CommSuspend : {} shares its connections with other communicators (splitShare, shrinkShare), which may be "
        "in use; end all but one of them first",
        describeComm(comm));
  }
  if (comm.membership->family && comm.membership->family->graphsKeepOthers(comm)) {
    return fail(ncclInvalidUsage,
                "CommSuspend : {} shares its connections with communicators that have ended, but graphs with their "
                "operations have not; destroy these graphs first",
                describeComm(comm));
  }
  if (!comm.residence->begin(State::Suspending)) {
    return fail(ncclInvalidUsage, "CommSuspend : {} is suspended already; ncclCommResume comes first",
                describeComm(comm));
  }
  return begin(comm, State::Suspending, suspendComm);
}

Result<Progress> beginResume(ncclComm& comm) {
  TRY(checkManaged(comm, "CommResume"));
  if (!comm.residence->begin(State::Resuming)) {
    return fail(ncclInvalidUsage, "CommResume : {} is not suspended; ncclCommSuspend comes first", describeComm(comm));
  }
  return begin(comm, State::Resuming, resumeComm);
}

Status checkResident(const ncclComm& comm, std::string_view label) {
  if (comm.residence->state() == State::Resident) return {};
  return fail(ncclInvalidUsage,
              "{} : {} is suspended: its connections have no memory until all ranks have called ncclCommResume", label,
              describeComm(comm));
}

Result<std::uint64_t> memStat(const ncclComm& comm, int stat) {
  TRY(checkManaged(comm, "CommMemStats"));
  const std::uint64_t persistent = deviceMemory(comm, gpu::MemoryClass::Persistent);
  const std::uint64_t releasable = deviceMemory(comm, gpu::MemoryClass::Releasable) + comm.residence->released();
  switch (stat) {
    case ncclStatGpuMemSuspend:
      return releasable;
    case ncclStatGpuMemSuspended:
      return comm.residence->state() == State::Suspended ? 1U : 0U;
    case ncclStatGpuMemPersist:
      return persistent;
    case ncclStatGpuMemTotal:
      return persistent + releasable;
  }
  return fail(ncclInvalidArgument, "CommMemStats : unknown statistic {}", stat);
}

}  // namespace tutti::comm
