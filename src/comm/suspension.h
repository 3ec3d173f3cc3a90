// ncclCommSuspend, ncclCommResume and ncclCommMemStats as api/ sees them. Arguments have had their plain checks.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "comm/state/progress.h"
#include "nccl.h"

namespace tutti::comm {

/// Collective: gives the memory of all connections back until resumeComm(). `flags`: NCCL_SUSPEND_MEM; without it
/// nothing happens. Errors: ncclInvalidArgument for other flags, ncclInvalidUsage where the communicator is suspended
/// already or NCCL_DISABLE_MEM_MANAGER forbids it.
Result<Progress> beginSuspend(ncclComm& comm, int flags);
/// Collective: takes it again. Errors: ncclInvalidUsage where the communicator is not suspended.
Result<Progress> beginResume(ncclComm& comm);

/// Success where operations may be issued; while the communicator is suspended, ncclInvalidUsage with the remedy.
Status checkResident(const ncclComm& comm, std::string_view label);

/// Bytes of this rank's device memory by the number of a ncclCommMemStat_t; 0 or 1 for ncclStatGpuMemSuspended. Errors:
/// ncclInvalidArgument for an unknown number, ncclInvalidUsage where NCCL_DISABLE_MEM_MANAGER forbids it.
Result<std::uint64_t> memStat(const ncclComm& comm, int stat);

}  // namespace tutti::comm
