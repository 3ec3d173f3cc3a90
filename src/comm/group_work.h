// What a group collects and how it is carried out. Inside comm/ only; the face is group.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/status.h"
#include "comm/operations.h"
#include "comm/progress.h"
#include "nccl.h"

namespace tutti {

/// Init comes before the operations of a group, the end of a communicator after them.
enum class JobKind : std::uint8_t { Init, Finalize, End };

/// Host work on one communicator that may wait for other ranks. `body` of an End job destroys `comm`.
struct Job {
  ncclComm* comm = nullptr;
  JobKind kind = JobKind::Init;
  std::function<Status()> body;
};

struct CommOps {
  ncclComm* comm = nullptr;
  std::vector<Op> ops;
};

/// Everything between a group's start and its end.
struct GroupWork {
  std::vector<Job> jobs;
  std::vector<CommOps> ops;             ///< communicators in order of their first operation
  std::optional<bool> blocking;         ///< kind of the communicators so far; unset: none yet
  bool forceBlocking = false;           ///< destroy and abort are always waited for

  /// Refuses (ncclInvalidArgument) a blocking and a non-blocking communicator in one group.
  Status admit(const ncclComm& comm);
  Status add(Job job);
  Status add(ncclComm& comm, const Op& op);
  bool empty() const { return jobs.empty() && ops.empty(); }
};

/// The open group of the calling thread, null if there is none.
GroupWork* openGroup();

/// Gives up a group that cannot be carried out: an init that never ran must not look as if it still went on.
void dropWork(GroupWork& work, Status why);

/// Ends the communicators that are to end, whatever became of the rest: their handles are the caller's no more. What has
/// not run by then is given up where `soFar` is an error, which counts more than one of the ends.
Status endAll(GroupWork& work, Status soFar);

/// Carries a group out: on the calling thread, or, where only non-blocking communicators are involved and somebody may
/// have to be waited for, in the background. Where something fails, what comes after it is given up, but for End jobs:
/// they run in any case.
Result<Progress> runGroup(GroupWork work);

}  // namespace tutti
