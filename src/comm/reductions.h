// Reduction operators that an application makes for a communicator.
#pragma once

#include "base/status.h"
#include "nccl.h"

namespace tutti::comm {

/// ncclRedOpCreatePreMulSum / Destroy. `scalar` is read now for ncclScalarHostImmediate, by kernels for Device.
Result<ncclRedOp_t> createPreMulSum(ncclComm& comm, const void* scalar, ncclDataType_t type,
                                    ncclScalarResidence_t residence);
Status destroyRedOp(ncclComm& comm, ncclRedOp_t op);
/// Whether a user operator (value >= ncclNumOps) is alive on this communicator.
bool redOpExists(const ncclComm& comm, ncclRedOp_t op);

}  // namespace tutti::comm
