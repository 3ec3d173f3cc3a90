// The stage of init in which ranks begin to send for others of their host.
#pragma once

#include "base/status.h"

struct ncclComm;

namespace tutti::comm {

/// What ranks do for others of their host over the network (comm/network/relays.h).
Status joinRelays(ncclComm& comm);

}  // namespace tutti::comm
