// The end of a communicator: waiting for what is under way, taking leave of the peers, freeing.
#pragma once

#include <chrono>
#include <string_view>

#include "base/status.h"

struct ncclComm;

namespace tutti::comm {

/// How long kernels and threads may take to notice an abort, or a revocation: they poll, so this is ample.
inline constexpr std::chrono::milliseconds kLeaveBound{10'000};

/// The bootstrap is there: from now on whoever ends the communicator tells peers at once. They are told here where the
/// communicator was aborted before.
void noteJoined(ncclComm& comm);

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
