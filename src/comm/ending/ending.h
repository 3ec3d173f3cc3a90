// The end of a communicator: waiting for what is under way, taking leave of the peers, freeing.
#pragma once

#include <string_view>

#include "base/status.h"

struct ncclComm;

namespace tutti::comm {

/// The bootstrap is there: from now on whoever ends the communicator tells peers at once. They are told here where the
/// communicator was aborted before.
void noteJoined(ncclComm& comm);

/// What beginWatch() needs, before any kernel may run. Errors: the driver's.
Status prepareWatch(ncclComm& comm);

/// From now on somebody looks after its kernels (watch.h) and after peers that leave (departures.h), and says goodbye
/// for it where its process ends (exit_farewell.h). Errors: ncclSystemError where no thread can be had.
Status beginWatch(ncclComm& comm);

/// Something has happened that concerns the communicators whose kernels run: the watch looks at once. Never waits.
void lookAtKernels();

/// Nobody does so any more, until beginWatch(), and what was known of its connections is forgotten. No kernel may run.
void endWatch(ncclComm& comm);

/// Waits until this rank's operations are over and peers have taken what was sent to them. Leaves early when the
/// communicator fails. Does nothing for a communicator that never came up.
Status flushComm(ncclComm& comm);

/// Waits for the kernels of a communicator whose abort is raised. ncclUnhandledCudaError where they do not leave within
/// ten seconds, or their device has failed.
Status awaitKernels(ncclComm& comm);

/// Frees everything, whatever state the communicator is in. Nobody may be inside it any more. If kernels do not leave
/// in time, their memory stays allocated and a warning says so.
void releaseComm(ncclComm* comm, std::string_view how);

/// Waits for background work, flushes, releases; of a communicator that has failed, or fails meanwhile, as
/// abortAndRelease(). Errors: those of flushComm(). Another thread may abort the communicator while this waits.
Status destroyAndRelease(ncclComm* comm);

/// Unless somebody else is about it: raises the abort, waits for the threads inside to leave, releases.
Status abortAndRelease(ncclComm* comm);

/// Frees a communicator whose init failed on the calling thread, which has claimed its end (CommProgress::ending).
void endFailedInit(ncclComm* comm);

}  // namespace tutti::comm
