// ncclCommShrink.
#pragma once

#include <span>

#include "base/status.h"
#include "comm/state/progress.h"
#include "nccl.h"

namespace tutti::comm {

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
