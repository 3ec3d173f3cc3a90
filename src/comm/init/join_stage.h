// The stage of init in which the ranks find each other.
#pragma once

#include <vector>

#include "base/status.h"
#include "nccl.h"

struct ncclComm;

namespace tutti::comm {

/// Collective. From now on peers hear how this rank fares, and it of them. Errors: the bootstrap's.
Status joinBootstrap(ncclComm& comm, const std::vector<ncclUniqueId>& ids);

}  // namespace tutti::comm
