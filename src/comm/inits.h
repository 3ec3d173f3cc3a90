// Unique ids, and communicators made from them.
#pragma once

#include <span>
#include <string_view>

#include "base/status.h"
#include "comm/state/progress.h"
#include "nccl.h"

namespace tutti::comm {

/// What the ncclCommInitRank family was called with.
struct InitRequest {
  ncclComm_t* comm = nullptr;  ///< not null; written as the API prescribes
  int nRanks = 0;
  int rank = 0;
  std::span<const ncclUniqueId> ids;     ///< one; several for ncclCommInitRankScalable
  const ncclConfig_t* config = nullptr;  ///< null: defaults
  std::string_view function;             ///< "ncclCommInitRank", …: for the START and COMPLETE lines
  /// ncclCommInitRank: works synchronously outside a group whatever NCCL_COMM_BLOCKING says, and leaves *comm null
  /// after any error. The others leave the failed communicator there for ncclCommAbort.
  bool plain = false;
};

/// ncclGetUniqueId. Any thread.
Result<ncclUniqueId> makeUniqueId();

/// ncclCommInitRank, …RankConfig, …RankScalable, on the CUDA device current on the calling thread. Any thread.
Result<Progress> initRank(const InitRequest& request);
/// ncclCommInitAll: `devices` null means 0..n-1. On success comms[0..n-1] are written.
Status initAll(ncclComm_t* comms, int nDevices, const int* devices);

}  // namespace tutti::comm
