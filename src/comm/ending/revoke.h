// ncclCommRevoke: a communicator's operations end, and the communicator stays.
#pragma once

#include "base/clock.h"
#include "base/status.h"

struct ncclComm;

namespace tutti::comm {

class BackgroundTask;

/// Tells the peers, and raises the abort: kernels, calls and connections leave from now on. By who has begun
/// Revocation. Does not wait.
void raiseRevoke(ncclComm& comm);

/// Waits until nothing of its operations is under way, nor `before`, which may be null; then the communicator can be
/// asked again, and its bootstrap be used. The calling thread must hold one pass of its gate, and no other.
/// ncclSystemError where something has not left within ten seconds: the communicator is revoked all the same. Leaves
/// early when somebody frees the communicator.
Status awaitRevoked(ncclComm& comm, const BackgroundTask* before);

/// Four times a second: the communicator fails with ncclRemoteError where it waits for peers although one of them has
/// revoked its part. `kernelsRun`: the last launch or replay has not ended. Never waits.
void heedRevokedPeers(ncclComm& comm, SteadyClock::time_point now, bool kernelsRun);

}  // namespace tutti::comm
