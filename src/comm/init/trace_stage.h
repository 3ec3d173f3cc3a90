// Where the trace of this process hears of a communicator that is being made (docs/tracing.md).
#pragma once

#include "base/status.h"

struct ncclComm;

namespace tutti::comm {

/// Begins the trace of the process if the settings ask for one and that was not done before; `rank`: -1 if not known.
/// Any thread.
void startTrace(int rank);

/// The same, and tells it of the communicator.
void traceComm(ncclComm& comm);

/// Between the hosts of ranks that trace, how far their clocks are apart is measured and noted. All ranks come here,
/// after they know of each other. Errors: the control channel's.
Status shareClocks(ncclComm& comm);

}  // namespace tutti::comm
