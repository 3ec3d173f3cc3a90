// Communicators made from the ranks of another one.
#pragma once

#include <span>

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

/// What ncclCommShrink was called with.
struct ShrinkRequest {
  ncclComm* parent = nullptr;    ///< not in progress; without `abortFirst` ready
  std::span<const int> exclude;  ///< in any order
  ncclComm_t* newcomm = nullptr;
  const ncclConfig_t* config = nullptr;
  bool abortFirst = false;  ///< NCCL_SHRINK_ABORT: the parent fails for good, and its kernels leave first
};

/// For all ranks that are not excluded, and no others. As splitComm(), but the excluded ranks need not live, and the
/// parent may have failed where `abortFirst`. ncclInvalidArgument names an entry that is no rank, stands twice, or is
/// the caller.
Result<Progress> shrinkComm(const ShrinkRequest& request);

}  // namespace tutti::comm
