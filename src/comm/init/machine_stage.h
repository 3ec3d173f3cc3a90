// The stage of init in which a rank looks at its machine.
#pragma once

#include "base/status.h"

struct ncclComm;

namespace tutti::comm {

struct OwnMachine;

/// What this rank knows of its host, the communicator's network included. Errors: those of own_machine.h.
Result<OwnMachine> readOwnMachine(const ncclComm& comm);

/// Puts the device's proxy thread where it belongs on this machine; the first communicator on a device decides.
void placeEngine(ncclComm& comm, const OwnMachine& machine);

}  // namespace tutti::comm
