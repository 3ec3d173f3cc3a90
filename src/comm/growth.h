// Communicators that get more ranks.
#pragma once

#include "base/status.h"
#include "comm/state/progress.h"
#include "nccl.h"

namespace tutti::comm {

/// ncclCommGetUniqueId: an id by which `comm` (ready) can grow, once; its root runs in this process. Not collective.
/// ncclInvalidUsage with NCCL_COMM_ID, whose root cannot be told from that of `comm`.
Result<ncclUniqueId> makeGrowthId(ncclComm& comm);

/// What ncclCommGrow was called with. Everything is copied during the call.
struct GrowRequest {
  ncclComm* comm = nullptr;  ///< of a member, ready; null: a new rank
  int nRanks = 0;
  const ncclUniqueId* id = nullptr;  ///< null: a member that is told by the member that made the id
  int rank = -1;                     ///< of a new rank; a member keeps its own and says -1
  ncclComm_t* newcomm = nullptr;     ///< not null; the new communicator's handle is written at once
  const ncclConfig_t* config = nullptr;
};

/// Collective over the members and the new ranks. `comm` stays as it is. Pending: the new communicator is non-blocking,
/// and in progress. Errors of the call: ncclInvalidArgument where numbers do not fit the id or each other, or the id
/// was made to grow another communicator or used before; those of ncclCommInitRankConfig.
Result<Progress> growComm(const GrowRequest& request);

}  // namespace tutti::comm
