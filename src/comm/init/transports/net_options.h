// How the communicator's connections over its network are made: which NIC, whose, with slots where.
#pragma once

#include "transport/net/transport.h"

struct ncclComm;

namespace tutti::comm {

/// Read when connections are made, after init knows the NICs. `comm`, which has a network, must outlive the result.
net::NetTransportOptions netOptions(const ncclComm& comm);

}  // namespace tutti::comm
