// In what steps a communicator's messages travel over its network, and what lies in the application's memory meanwhile.
#pragma once

#include <cstdint>

struct ncclComm;

namespace tutti::comm {

/// Whether connections share receives that are posted for several of them together.
bool groupsReceives(const ncclComm& comm);
/// Whether messages over the network are sent from where they lie, and come where they belong. The same on all ranks.
bool messagesInPlace(const ncclComm& comm);
/// Whether the network has to know the application's memory before this rank sends from where it lies.
bool sendsRegistered(const ncclComm& comm);
/// Whether kernels let networks use what lies in registered memory, past the slots of connections.
bool letsPastSlots(const ncclComm& comm);
/// Whether what captured operations use is registered as long as their graph lives.
bool registersGraphs(const ncclComm& comm);
/// Whether this rank could run collectives of two over its connections for messages
/// (device/collectives/pair_in_place.h): the most steps of a chunk; 0: it could not.
std::uint8_t stepsInPlace(const ncclComm& comm);

/// Whether they travel in long steps (mesh_slots.h). The same on all ranks.
bool longMessageSteps(const ncclComm& comm);

}  // namespace tutti::comm
