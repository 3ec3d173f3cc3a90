// The part of the stage of channels that has the engine of the device drive what the host does for them.
#pragma once

#include "base/status.h"

struct ncclComm;

namespace tutti::comm {

/// CommParts::progress, which asks the launcher; drives nothing yet. Errors: the engine's.
Status beginProgress(ncclComm& comm);

}  // namespace tutti::comm
