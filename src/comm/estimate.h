// How long a group would take, for ncclGroupSimulateEnd: a first model, to be replaced by the topology's.
#pragma once

#include <span>

#include "comm/operations.h"

namespace tutti {

/// Microseconds of the last collective among `ops`; -1 where there is none.
float estimateMicroseconds(int nRanks, std::span<const Op> ops);

}  // namespace tutti
