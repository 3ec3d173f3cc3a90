// Init of one communicator, stage by stage.
#pragma once

#include "base/status.h"
#include "comm/init/join_stage.h"

struct ncclComm;

namespace tutti::comm {

/// Runs all stages on the calling thread; `join`: the first of them. On failure the communicator is marked as failed,
/// its peers are told, and the status is returned. The caller holds a pass of the communicator's gate.
Status runInit(ncclComm& comm, const JoinStep& join);

}  // namespace tutti::comm
