// Calls whose buffers overlap in another way than the API allows.
#pragma once

#include "base/status.h"
#include "comm/plan/op.h"

struct ncclComm;

namespace tutti::comm {

/// Refuses (ncclInvalidArgument, with both ranges and the form that is allowed) a call whose two buffers overlap on
/// this rank without being the in-place form of its function: ranks would read what others have written over. A lone
/// rank and TUTTI_CHECK_OVERLAP=0 are left alone. Of `op`, type, root and size have been checked.
Status checkOverlap(const ncclComm& comm, const Op& op);

}  // namespace tutti::comm
