// What messages of a communicator are cut into, and on how many channels they run.
#pragma once

#include <array>

#include "comm/plan/message_channels.h"
#include "device/conn_view.h"

struct ncclComm;

namespace tutti::comm {

/// The channels of messages that this rank would take if others did not wish for less.
MessageLimits messageWishes(const ncclComm& comm);

/// The slots of connections for messages that this rank would have; `slotBytes`: those of all its connections.
MessageSlots ownMessageSlots(const ncclComm& comm, const std::array<device::SlotBytes, device::kConnKinds>& slotBytes);

/// Once the ranks have agreed (CommParts::planning): sets how messages are planned, and the slots of connections for
/// messages over the network.
void layOutMessages(ncclComm& comm, const MessageSlots& slots);

}  // namespace tutti::comm
