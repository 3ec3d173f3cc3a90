// How long a group would take, for ncclGroupSimulateEnd.
#pragma once

#include <span>

#include "base/status.h"
#include "comm/operations.h"

namespace tutti {

/// Microseconds that `ops` of one communicator would take by the tuner's model, launches one after another; -1 where
/// nothing would be launched. Fails as planning them would.
Result<double> estimateMicroseconds(ncclComm& comm, std::span<const Op> ops);

}  // namespace tutti
