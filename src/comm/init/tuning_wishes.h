// What this rank's environment says about tuning, and what came of it.
#pragma once

#include "base/status.h"
#include "comm/tuning/filter.h"
#include "comm/tuning/thread_thresholds.h"

struct ncclComm;

namespace tutti::comm {

struct TuningWishes {
  TuningFilter filter;          ///< NCCL_ALGO and NCCL_PROTO; a lone rank has nothing to choose
  ThreadThresholds thresholds;  ///< NCCL_THREAD_THRESHOLDS
};

/// Errors: ncclInvalidUsage, with the word that is wrong.
Result<TuningWishes> tuningWishes(const ncclComm& comm);

/// Says in the log what operations are planned with (CommParts::planning).
void logTuning(const ncclComm& comm);

}  // namespace tutti::comm
