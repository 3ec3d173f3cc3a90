// ncclCommRegister and ncclCommDeregister as api/ sees them. Arguments have had their plain checks.
#pragma once

#include <cstddef>

#include "base/status.h"
#include "nccl.h"

namespace tutti::comm {

/// NCCL_LOCAL_REGISTER=0 and NCCL_P2P_USE_CUDA_MEMCPY=1: nothing is registered. Any thread.
bool registersBuffers();

/// Local. `bytes` of device memory from `buffer` on; null for host memory, of which nothing has to be known. The same
/// handle for what lies in a buffer that is registered. Errors: ncclUnhandledCudaError for an address that CUDA does
/// not know, ncclInvalidArgument for memory of another device and where the allocation is shorter.
Result<void*> registerBuffer(ncclComm& comm, void* buffer, std::size_t bytes);

/// Takes back one registerBuffer(). Errors: ncclInvalidUsage for a handle that is not this communicator's.
Status deregisterBuffer(ncclComm& comm, void* handle);

}  // namespace tutti::comm
