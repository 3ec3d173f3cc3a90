// Carries a group out: jobs that make communicators, then operations, then jobs that end communicators.
#pragma once

#include "base/status.h"
#include "comm/enqueue/group_work.h"
#include "comm/state/progress.h"

namespace tutti::comm {

/// Carries a group out: on the calling thread, or, where only non-blocking communicators are involved and somebody may
/// have to be waited for, in the background. Where something fails, what comes after it is given up, but for End jobs:
/// they run in any case. Leaves `work` to be cleared, or empty.
Result<Progress> runGroup(GroupWork& work);

/// Ends the communicators that are to end, whatever became of the rest: their handles are the caller's no more. What
/// has not run by then is given up where `soFar` is an error, which counts more than one of the ends.
Status endAll(GroupWork& work, Status soFar);

}  // namespace tutti::comm
