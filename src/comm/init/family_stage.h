// The stage of init in which a communicator finds out whose connections it shares.
#pragma once

#include <cstdint>

#include "base/status.h"

struct ncclComm;

namespace tutti::comm {

/// What this rank tells the others (PeerInfo::familyRank).
std::int32_t offeredPlace(const ncclComm& comm);

/// Once the facts of all ranks are known: shares with its parent if all ranks can, founds a family if its children are
/// to share with it. Errors: the driver's.
Status settleMembership(ncclComm& comm);

/// The last step: from now on what befalls one member befalls all. An error if it has befallen them.
Status joinFamily(ncclComm& comm);

}  // namespace tutti::comm
