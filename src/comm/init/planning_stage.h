// The stage of init in which the ranks agree on the numbers that they plan with.
#pragma once

#include "base/status.h"

struct ncclComm;

namespace tutti::comm {

struct CommGraphs;

/// Collective: sets what operations are planned with (CommParts::planning) and the slots of connections for messages
/// over the network; the number of channels. Errors: ncclInvalidUsage on all ranks alike where a setting differs that
/// must not.
Result<int> agreeOnPlanning(ncclComm& comm, const CommGraphs& graphs);

}  // namespace tutti::comm
