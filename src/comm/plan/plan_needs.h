// Which connections a plan runs over, as far as the plan knows them.
#pragma once

#include <vector>

#include "comm/plan/channel_mask.h"

namespace tutti::comm {

/// A rank that messages go to or come from, and the channels that such messages may use: more than these use as yet, so
/// that both ends open the same ones whatever comes first.
struct MessagePeer {
  int rank = -1;
  ChannelMask channels = ~ChannelMask{0};  ///< those above the communicator's do not count
  friend bool operator==(const MessagePeer&, const MessagePeer&) = default;
};

struct PlanNeeds {
  bool usesRing = false;               ///< some launch goes round the ring: it must be connected
  bool usesTree = false;               ///< the same for the trees
  bool usesPat = false;                ///< the same for the neighbours in PAT
  bool usesCollNetDirect = false;      ///< the same for the ranks of a node and its heads
  bool usesCollNetChain = false;       ///< the same for the neighbours in a node's chains
  std::vector<int> meshPeers;          ///< ranks that direct algorithms exchange data with, both ways, ascending
  std::vector<MessagePeer> sendPeers;  ///< ranks that get messages from us, ascending, without ourselves
  std::vector<MessagePeer> recvPeers;  ///< ranks we get messages from, ascending, without ourselves
};

}  // namespace tutti::comm
