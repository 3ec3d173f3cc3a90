// The way into the library for one data movement call.
#pragma once

#include "base/status.h"
#include "comm/plan/op.h"
#include "comm/state/progress.h"

namespace tutti::comm {

/// Takes one call on `comm`, whose arguments api/ has checked (comm, ready state, root, datatype, operator, pointers).
/// Inside a group it is collected, outside it is a group of its own. Errors inside a group are latched by the caller
/// with latchGroupError(). Pending: the communicator is non-blocking and works on it in the background.
/// One thread at a time per communicator.
Result<Progress> enqueue(ncclComm& comm, Op op);

}  // namespace tutti::comm
