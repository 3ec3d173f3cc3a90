// The latencies and bandwidths that the model rests on, which tuner plugins may change.
#pragma once

#include "comm/tuning/tuning.h"
#include "topo/channels/costs_constants.h"

namespace tutti::comm {

/// What the model rests on in a world, unless a tuner plugin says otherwise. On the software GPU, whose links are all
/// alike: its own latencies; the bandwidths stand there for completeness.
const topo::costs::Constants& usualConstants(device::World world);
/// Those of a communicator.
inline const topo::costs::Constants& constantsOf(const TuningInput& input) {
  return input.constants ? *input.constants : usualConstants(input.policy.world);
}

}  // namespace tutti::comm
