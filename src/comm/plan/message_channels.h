// On how many channels messages run, on which of them those between two ranks do, and how large their slots are: pure
// functions of values that are equal on all ranks concerned.
#pragma once

#include <cstdint>

#include "device/policy.h"

namespace tutti::comm {

struct MessageSettings;

/// What the ranks have agreed on: the smallest wish for each, but of `peers` the largest. Equal on all of them.
struct MessageLimits {
  int fewest = 1;       ///< channels for messages, as far as the communicator has so many
  int most = 64;        ///< channels for messages
  int perNetPeer = 64;  ///< channels towards one rank of another node
  int peers = 0;        ///< others that a rank exchanges messages with, at most, as far as is known before it does
  friend bool operator==(const MessageLimits&, const MessageLimits&) = default;
};

/// Channels lo..hi.
struct ChannelRange {
  unsigned lo;
  unsigned hi;
  friend bool operator==(const ChannelRange&, const ChannelRange&) = default;
};

/// Channels that a rank wishes for towards one rank of another node: `asked` by configuration or environment, if that
/// is above 0; else two, one for each NIC, or one for each 14 GB/s of their bandwidth, whatever is most. A power of 2,
/// so that the channels of a communicator come out even, and at most 64.
int wishedPerNetPeer(int asked, int nNics, double gigabytesPerSecond);

/// Others that a rank of `nRanks` exchanges messages with at most: `asked` by configuration or environment, if that is
/// above 0, and all there are.
int wishedPeers(int asked, int nRanks);

/// Channels for messages: `usual` as far as the limits allow, of the `all` that the communicator has. At least one.
unsigned channelsForMessages(const MessageLimits& limits, unsigned usual, unsigned all);

/// Those that messages to or from one rank may use, of `messages`.
unsigned channelsPerPeer(const MessageLimits& limits, unsigned messages, bool sameNode);

/// Where they lie: neighbouring rounds of the schedule use different ones where there are several such places.
ChannelRange peerChannels(unsigned messages, unsigned perPeer, int round);

/// Which of them a message takes that is worth `wanted` channels, 1..perPeer; rounds that share the place of a peer
/// take turns within it.
ChannelRange messageChannels(unsigned messages, unsigned perPeer, int round, unsigned wanted);

/// Slots of Mesh connections with the Simple protocol, in bytes, by the way they take. A chunk of a message is what one
/// slot carries.
struct MessageSlots {
  std::uint32_t nvl = 0;
  std::uint32_t pci = 0;
  std::uint32_t net = 0;
};

/// `graph`: the slots of Graph connections, which no other slot exceeds; `usual`: of Mesh connections where nothing is
/// asked for. Whole grains; an INFO line says what was bent.
MessageSlots messageSlots(const MessageSettings& settings, std::uint32_t graph, std::uint32_t usual);

}  // namespace tutti::comm
