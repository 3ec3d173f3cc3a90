// Ranks whose calls do not match: found in the background, and at the end.
#pragma once

#include "base/clock.h"
#include "base/status.h"

struct ncclComm;

namespace tutti::comm {

/// Four times a second, and when something was heard: compares what ranks have called
/// (comm/diagnosis/call_exchange.h). The communicator fails where two have called something else (ncclInvalidUsage), or
/// where they have not and something else has failed (CallExchange::suspect()). Never waits. Of one with peers that is
/// not aborted.
void compareCalls(ncclComm& comm, SteadyClock::time_point now);

/// It is about to end: unless all was compared before, says to the others what was called, and asks what they have.
void askForCalls(ncclComm& comm);
/// Its kernels have ended: asks again where others had called less, and waits for the answers, a fifth of a second at
/// most. Where these differ the communicator fails, and the error is returned.
Status settleCalls(ncclComm& comm);

/// The error where calls were found to differ, and the communicator has failed for that; success where it has not
/// failed, or for something else.
Status mismatchOf(ncclComm& comm);

}  // namespace tutti::comm
