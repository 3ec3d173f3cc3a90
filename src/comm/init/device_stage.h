// The stage of init that opens the GPU.
#pragma once

#include "base/status.h"
#include "gpu/context.h"

struct ncclComm;

namespace tutti::comm {

/// The device, its kernels, and the word that ends kernels when the communicator aborts. Errors: the driver's.
Status openDevice(ncclComm& comm);

/// Makes its context the calling thread's, as long as the result lives. Errors: the driver's.
Result<gpu::ContextGuard> enterDevice(const ncclComm& comm);

}  // namespace tutti::comm
