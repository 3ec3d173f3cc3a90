// The last stage of init: whether collectives may run in the network, agreed by all ranks.
#pragma once

#include <cstdint>

#include "base/status.h"

struct ncclComm;

namespace tutti::comm {

struct CommGraphs;

/// PeerInfo::collNetDevices of this rank.
std::int32_t collNetDevices(const ncclComm& comm);

/// Whether all ranks want CollNet, have it, and are on enough nodes; the same on all of them, once they have met.
bool wantsCollNet(const ncclComm& comm);

/// Collective. Joins this rank's node to the network's collectives where everybody can, and tells the tuner. What goes
/// wrong on any rank turns CollNet off on all of them, with a line that says why; so do plugins that show different
/// numbers of devices, unless NCCL_IGNORE_COLLNET_MISMATCH=1 allows that. Errors: what the exchange says.
Status joinCollNet(ncclComm& comm, const CommGraphs& graphs);

}  // namespace tutti::comm
