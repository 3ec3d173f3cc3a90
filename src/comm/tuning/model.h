// The cost model: latency and bandwidth of every combination, once per communicator.
#pragma once

#include "comm/tuning/call_options.h"
#include "comm/tuning/tuning.h"

namespace tutti::comm {

/// Whether a combination can be had for a call that selects it, and else why not. `selection` may select nothing.
Verdict verdictOf(const TuningInput& input, device::Func func, device::Algorithm algorithm, device::Protocol protocol,
                  const Selection& selection);

/// Fills the tables. Never fails: a communicator for which nothing is left fails at its first operation.
Tuning makeTuning(TuningInput input);

/// Whether LL128 may run without being asked for. Links within a node: NVLink, or memory of one device; between nodes:
/// the network writes in order (`netKeepsOrder`). All GPUs of one compute capability, or none below 9.0; and none
/// below 7.0.
bool ll128IsSafe(const RankFacts& ranks, int highestComputeCapability, bool netKeepsOrder);

}  // namespace tutti::comm
