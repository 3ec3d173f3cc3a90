// NCCL_CHECK_POINTERS: are the buffers of a call memory that this communicator's device owns?
#pragma once

#include "base/status.h"
#include "comm/plan/op.h"
#include "nccl.h"

namespace tutti::comm {

/// Success unless the user asked for the check and a buffer that this rank's part of `op` uses is unknown to CUDA or
/// belongs to another device (both ncclInvalidArgument). `comm` is ready. One thread at a time per communicator.
Status checkPointers(const ncclComm& comm, const Op& op);

}  // namespace tutti::comm
