// Who is in which communicator of a job, and how the ids get around.
#pragma once
#include <string>
#include <vector>

#include "nccl.h"
#include "run_options.h"

namespace tutti::adversary {

/// Communicator `comm` of a job of `size` ranks: the first has all ranks in order, the second all of them turned by
/// one (so that a number means another process), the third all but the last.
int sizeOf(int comm, int size);

/// The number there of rank `jobRank`; -1 if it is no member. Where NCCL_COMM_ID names the root (`turned` is false),
/// all communicators have the job's order, for then the first rank's process must be the same.
int rankIn(int comm, int jobRank, int size, bool turned);

/// Makes the unique ids of the communicators whose first rank is of this process, as files in `options.ids`. Does
/// nothing where NCCL_COMM_ID names the root. Before anything is done to anybody: an application whose ids never come
/// has nothing to wait for.
ncclResult_t makeIds(const RunOptions& options);

/// Waits for the unique id of a communicator, which its maker writes to that file, as long as a call may take. False if
/// it does not come: the library has no part in that. Any thread.
bool awaitId(const RunOptions& options, int comm, ncclUniqueId& id);

}  // namespace tutti::adversary
