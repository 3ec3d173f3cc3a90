// Giving back the memory of a communicator's connections, and taking it again (docs/architecture.md, "Suspension").
#pragma once

#include "base/status.h"
#include "comm/state/residence.h"

struct ncclComm;

namespace tutti::comm {

/// Collective. Waits for this rank's own operations and for all ranks; then closes all connections, with all their
/// memory, device memory or not. Kernels' tables stay where they are: graphs refer to them. No graph may be replayed
/// until resumeComm(). Residence::begin() comes before it. The communicator fails with what fails here.
Status suspendComm(ncclComm& comm);

/// Collective. Waits for all ranks and opens the connections again, each by the transport that it had; afterwards
/// everything is as after init. Otherwise as above.
Status resumeComm(ncclComm& comm);

}  // namespace tutti::comm
