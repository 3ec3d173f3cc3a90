// How the communicator's connections over its network are made: which NIC, whose, with slots where.
#pragma once

#include "transport/net/transport.h"

struct ncclComm;

namespace tutti::comm {

/// Whether messages over the network are sent from where they lie, and come where they belong. The same on all ranks.
bool messagesInPlace(const ncclComm& comm);
/// Whether this rank could run collectives of two over its connections for messages
/// (device/collectives/pair_in_place.h): the most steps of a chunk; 0: it could not.
std::uint8_t stepsInPlace(const ncclComm& comm);

/// Whether they travel in long steps (mesh_slots.h). The same on all ranks.
bool longMessageSteps(const ncclComm& comm);

/// Read when connections are made, after init knows the NICs. `comm`, which has a network, must outlive the result.
net::NetTransportOptions netOptions(const ncclComm& comm);

}  // namespace tutti::comm
