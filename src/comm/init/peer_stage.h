// The stage of init in which the ranks tell each other who they are.
#pragma once

#include "base/status.h"

struct ncclComm;

namespace tutti::comm {

struct OwnMachine;

/// Collective. The table of ranks (CommParts::peers) and their layout. Errors: those of peer_table.h.
Status meetPeers(ncclComm& comm, const OwnMachine& machine);

/// Loads all kernels where another rank of this process has the same device: what loading one waits for may be a kernel
/// that waits for this rank. Before any of the ranks goes on. Errors: the driver's.
Status loadSharedKernels(ncclComm& comm);

}  // namespace tutti::comm
