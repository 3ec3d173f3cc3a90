// The part of the stage of channels that makes the launcher of their kernels.
#pragma once

#include "base/status.h"

struct ncclComm;

namespace tutti::comm {

/// With the order of launches and graphs that configuration and family ask for. Errors: the driver's.
Status makeLauncher(ncclComm& comm);

}  // namespace tutti::comm
