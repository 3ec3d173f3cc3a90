// Ranks whose calls do not match: found in the background, and at the end.
#pragma once

#include "base/clock.h"
#include "base/status.h"

struct ncclComm;

namespace tutti::comm {

/// Four times a second: compares what ranks have called (comm/diagnosis/call_exchange.h). The communicator fails
/// (ncclInvalidUsage) where two have called something else. Never waits. Of one with peers that is not aborted.
void compareCalls(ncclComm& comm, SteadyClock::time_point now);

/// Its kernels have ended: says so to the others, and waits, a second at most, until rank 0's calls are known. Where
/// they are others than this rank's the communicator fails, and the error is returned.
Status settleCalls(ncclComm& comm);

}  // namespace tutti::comm
