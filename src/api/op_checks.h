// The checks of a data movement call, in the order the API fixes.
#pragma once

#include "api/boundary.h"
#include "comm/enqueue/operations.h"

namespace tutti::api {

/// Communicator, readiness, root or peer, data type, operator, size; ncclInvalidArgument with a text naming the value.
Status checkOp(ncclComm_t comm, const comm::Op& op);

/// A whole data movement call: checks, then enqueue(). Collectives without elements end after the checks. `config`:
/// options of a collective, null where there are none.
ncclResult_t run(std::string_view function, ncclComm_t comm, const comm::Op& op,
                 const ncclCollConfig_t* config = nullptr) noexcept;

}  // namespace tutti::api
