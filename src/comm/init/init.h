// Init of one communicator, stage by stage.
#pragma once

#include <vector>

#include "base/status.h"
#include "nccl.h"

struct ncclComm;

namespace tutti::comm {

/// Runs all stages on the calling thread. On failure the communicator is marked as failed, its peers are told, and the
/// status is returned. The caller holds a pass of the communicator's gate.
Status runInit(ncclComm& comm, const std::vector<ncclUniqueId>& ids);

}  // namespace tutti::comm
