// ncclCommSplit.
#pragma once

#include "base/status.h"
#include "comm/state/progress.h"
#include "nccl.h"

namespace tutti::comm {

/// What ncclCommSplit was called with. Everything is copied during the call.
struct SplitRequest {
  ncclComm* parent = nullptr;  ///< ready
  int color = 0;
  int key = 0;
  ncclComm_t* newcomm = nullptr;         ///< not null; null is written now, the child once its init has ended
  const ncclConfig_t* config = nullptr;  ///< null: the parent's
};

/// Collective over the parent. Pending: the parent is non-blocking, and in progress until the child is there. The
/// parent stays as it is, whatever becomes of the child, which is shown also where its init has failed. Errors of the
/// call: ncclInvalidArgument (configuration), what the meeting of the parent's ranks came to, and, of a blocking
/// parent, what the init of the child came to.
Result<Progress> splitComm(const SplitRequest& request);

}  // namespace tutti::comm
