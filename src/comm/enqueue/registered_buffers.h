// Which works of a plan send from registered memory: their kernels may offer it to networks that have to know it.
#pragma once

#include <span>

#include "base/status.h"

struct ncclComm;

namespace tutti::comm {

struct Op;
struct Plan;

/// Says of each collective whether both its buffers are registered (Op::registered), where a tuner plugin wants to
/// know. As below, a capture counts as registered. Errors: the driver's.
Status tellRegistered(const ncclComm& comm, std::span<Op> ops);

/// Marks them (KernelArgs::registered), right before the plan is launched: what is registered changes. Where the plan
/// goes into a CUDA graph, the allocations that its operations use count as registered as long as the graph lives,
/// unless NCCL_GRAPH_REGISTER=0. Errors: the driver's; ncclInvalidUsage as Launcher::launch().
Status markRegistered(ncclComm& comm, Plan& plan);

}  // namespace tutti::comm
