// The kernels of a plan, loaded and ready to be launched.
#pragma once

#include <vector>

#include "base/status.h"

struct ncclComm;

namespace tutti::comm {

struct Plan;
struct PreparedLaunch;

/// Loads those of `plan`, and fills `launches`, one per launch of the plan, which lives longer; what was there is
/// forgotten. Errors: what the planner relied on has not come about (ChannelSet::checkMesh()); the driver's.
Status loadKernels(ncclComm& comm, Plan& plan, std::vector<PreparedLaunch>& launches);

}  // namespace tutti::comm
