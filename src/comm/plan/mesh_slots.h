// How large the slots of connections for messages over a network are, of which a rank may have very many.
#pragma once

#include <cstdint>

#include "device/conn_view.h"

namespace tutti::device {
struct Policy;
}

namespace tutti::comm {

struct CommSettings;

/// Slots of Mesh connections over a network, of which a rank may come to have one to and one from each of `peers`
/// others on each of the `perPeer` channels that their messages use: `mesh`, or smaller where all of them would take
/// more than `most` bytes, as far as that goes (docs/network.md). The same on all ranks.
device::SlotBytes networkMeshSlots(const device::SlotBytes& mesh, int peers, int perPeer, std::uint64_t most);
/// What the larger of the two ends of such a connection takes: slots, and messages of the flagged protocols.
std::uint64_t meshEndBytes(const device::SlotBytes& slots);

/// What an end of such a connection has for itself.
std::uint64_t sharedMeshEndBytes(const device::SlotBytes& slots);
/// The ranks of a communicator, as far as it matters here.
struct MeshWorld {
  int peers = 0;                     ///< others that one exchanges messages with
  int perPeer = 1;                   ///< channels on which two of them exchange messages …
  int nChannels = 1;                 ///< … of so many
  std::uint64_t llMessageBytes = 0;  ///< messages up to so many bytes per channel go by LL
};
/// The same where connections share the slots of the Simple protocol (NCCL_NET_SHARED_BUFFERS): those of LL, which they
/// do not share, are small to begin with, for messages that go by LL, and all together take a sixteenth of `most`.
device::SlotBytes sharedMeshSlots(const device::SlotBytes& mesh, const MeshWorld& world, std::uint64_t most);
/// What a rank has for all its connections for messages over a network, once it has them to and from all those peers.
/// `sharedSlots`: 0, each connection has its own.
std::uint64_t meshBytesOf(const device::SlotBytes& slots, const MeshWorld& world, std::uint32_t sharedSlots);
/// Slots of the Simple protocol where nobody asks for their size: shared ones are no larger than this …
inline constexpr std::uint32_t kUsualSharedSlot = 128 << 10;
/// … but where messages are sent and received in place. There a step is what the network carries at once: pieces of 128
/// KB took a third longer over TCP, and 2 MB no less.
inline constexpr std::uint32_t kUsualStepInPlace = 512 << 10;
/// Whether they do: messages lie `inPlace` (see messagesInPlace in net_options.h), and nobody asks for smaller slots or
/// steps. As it works out: a rank that is given what the others have anyway does as they do. The same on all ranks.
bool takesLongSteps(const CommSettings& settings, const device::Policy& policy, bool inPlace);
/// What a step of a message over the network carries, the same on all ranks. `slot`: of connections that do not share
/// theirs.
std::uint32_t netMessageStep(std::uint32_t slot, const CommSettings& settings, bool longSteps);
/// How many slots of such a step the connections of a channel share in one direction; 0: each has its own. Little goes
/// through long ones, so they take no more memory than short ones would, but for the first: there is at least one.
std::uint32_t sharedNetSlots(const CommSettings& settings, bool longSteps);

/// By the settings: either of the above. The same on all ranks.
device::SlotBytes chooseMeshSlots(const device::SlotBytes& mesh, const MeshWorld& world, const CommSettings& settings);
/// An INFO line of what they take; none where they are as wished. `shared`: sharedNetSlots().
void logMeshSlots(const device::SlotBytes& slots, const device::SlotBytes& mesh, const MeshWorld& world,
                  const CommSettings& settings, std::uint32_t shared);

}  // namespace tutti::comm
