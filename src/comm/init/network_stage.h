// The stages of init that open the network, and begin to send for others of the host.
#pragma once

#include <optional>
#include <vector>

#include "base/status.h"

namespace tutti::topo {
struct NetDeviceFacts;
}

struct ncclComm;

namespace tutti::comm {

/// Chooses the network, and makes one device of those that belong together. A lone rank has nobody to reach, and gets
/// none. Errors: the network's.
Status openNetwork(ncclComm& comm);

/// What ranks do for others of their host over the network (comm/network/relays.h).
Status joinRelays(ncclComm& comm);

/// What the topology has to know of the network's devices; empty: there is no network.
std::optional<std::vector<topo::NetDeviceFacts>> nicFacts(const ncclComm& comm);

}  // namespace tutti::comm
