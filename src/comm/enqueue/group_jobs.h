// The jobs of a group, and other work on several communicators that goes on at once because each may wait for another.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "base/status.h"
#include "comm/enqueue/group_work.h"

namespace tutti::comm {

/// Runs the bodies at once, each on a thread of its own, a single one on the caller's. `onError` hears of each error as
/// it happens, on the thread where it happens, also of bodies for which no thread was left. Returns the first error in
/// time that is no mere echo of another rank's.
Status runTogether(const std::vector<std::function<Status()>>& bodies,
                   const std::function<void(std::size_t, Status)>& onError);

/// Runs the group's jobs of one kind, and takes them out of it; with those of Init those of Child.
Status runJobs(GroupWork& work, JobKind kind);

}  // namespace tutti::comm
