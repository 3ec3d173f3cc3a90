// An operation as calls of the library.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "differential/operation.h"

namespace differential {

/// On whose behalf, and with what.
struct Caller {
  int rank;             ///< in the communicator
  std::uint8_t* arena;  ///< what offsets of buffers count from
  ncclComm_t comm;
  ncclRedOp_t op;  ///< the operation's, or the rank's own for kPreMulSum
  cudaStream_t stream;
};

/// Makes the rank's calls. Returns the first result that is neither ncclSuccess nor ncclInProgress, or else the last.
ncclResult_t call(const Operation& operation, const Caller& caller);

}  // namespace differential
