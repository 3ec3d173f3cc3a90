// The stage of init that begins the tuner plugin, if there is one.
#pragma once

#include "base/status.h"

struct ncclComm;

namespace tutti::comm {

/// Loads the plugin and begins it for this communicator; operations are planned with what it makes of the model's
/// constants, and it is asked about each collective from now on (PlanContext::tuner). Does nothing for a lone rank.
/// Errors: the plugin's.
Status joinTuner(ncclComm& comm);

}  // namespace tutti::comm
