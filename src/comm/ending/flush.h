// Waiting for what is under way.
#pragma once

#include "base/status.h"

struct ncclComm;

namespace tutti::comm {

/// Waits until this rank's operations are over and peers have taken what was sent to them; of connections that
/// relatives share, the last of them waits for that. Leaves early when the communicator fails. Does nothing for a
/// communicator that never came up.
Status flushComm(ncclComm& comm);

}  // namespace tutti::comm
