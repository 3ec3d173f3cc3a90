// The part of the stage of plugins that begins a tuner.
#pragma once

#include <string>

#include "base/status.h"

struct ncclComm;

namespace tutti::comm {

/// Loads the tuner plugin that is named so (NCCL_TUNER_PLUGIN) and begins it for this communicator. It will be asked
/// about each collective (PlanContext::tuner), and what it makes of the model's constants counts
/// (TuningInput::constants). "tuner NAME", or
/// "" where there is none. Errors: the plugin's.
Result<std::string> beginTuner(ncclComm& comm, const std::string& plugin);

}  // namespace tutti::comm
