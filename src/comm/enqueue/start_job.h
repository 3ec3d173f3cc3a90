// The deferred part of a call on a communicator.
#pragma once

#include <functional>

#include "base/status.h"
#include "comm/enqueue/group_work.h"
#include "comm/state/progress.h"

namespace tutti::comm {

/// Runs it now, at the end of the thread's open group, or in the background for a communicator that is non-blocking;
/// `wait`: not in the background.
Result<Progress> startJob(ncclComm& comm, JobKind kind, std::function<Status()> body, bool wait);

}  // namespace tutti::comm
