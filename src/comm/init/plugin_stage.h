// The stage of init that begins the plugins which a communicator has besides its network: profiler and tuner.
#pragma once

#include "base/status.h"

struct ncclComm;

namespace tutti::comm {

/// Loads them and begins them for this communicator, which must have met its peers. The profiler hears of it from now
/// on; the tuner, which a lone rank has none of, will be asked about each collective (PlanContext::tuner), and what it
/// makes of the model's constants counts (TuningInput::constants). What they have put into the environment holds for
/// the stages to come. Errors: the tuner's.
Status beginPlugins(ncclComm& comm);

}  // namespace tutti::comm
