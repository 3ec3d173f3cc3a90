// Which channels are lanes of whose connection to the network, where a rank stands in the chains, and which links
// inside a node that takes. Pure.
#pragma once

#include <vector>

#include "comm/collnet/node_heads.h"
#include "comm/connect/link_types.h"
#include "device/collnet_view.h"

namespace tutti::topo {
class RankLayout;
}

namespace tutti::comm {

struct Rails;

/// One rank's part. Every collective takes channels 0..nChannels-1.
struct CollNetLanes {
  int nChannels = 0;
  int head = -1;                 ///< the rail that this rank heads; -1: none
  std::vector<int> directLanes;  ///< channels that share its connection for CollNetDirect: all of them, or none
  std::vector<int> chainLanes;   ///< for CollNetChain: those whose chain it heads, ascending
  std::vector<device::CollNetChainPlace> chainPlaces;  ///< by channel; empty: there are no chains
  std::vector<LinkRequest> directLinks;
  std::vector<LinkRequest> chainLinks;
};

/// `node`: heads and chains of the own node. Chains are repeated where there are more channels.
CollNetLanes lanesOf(const topo::RankLayout& layout, const NodeHeads& node, const Rails& rails, int nChannels);

}  // namespace tutti::comm
