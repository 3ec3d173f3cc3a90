// The part of the stage of channels that makes what watches whether they move.
#pragma once

#include "base/status.h"

struct ncclComm;

namespace tutti::comm {

/// CommParts::stalls, of a communicator with peers, whose channels and launcher are there. Errors: the driver's.
Status makeStallProbe(ncclComm& comm);

}  // namespace tutti::comm
