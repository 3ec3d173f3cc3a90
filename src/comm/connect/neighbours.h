// Whom a rank is joined with by the rings, trees and other structures that algorithms follow.
#pragma once

#include <vector>

#include "comm/connect/link_types.h"
#include "topo/channels/rank_channels.h"

namespace tutti::comm {

/// Whom a rank is joined with in each structure that algorithms follow; made once, asked at every operation.
struct Neighbours {
  int rank = 0;
  std::vector<topo::RankChannel> channels;
  /// Links to these neighbours; a peer once in each, on the channels that have it.
  std::vector<LinkRequest> ring;
  std::vector<LinkRequest> tree;
  std::vector<LinkRequest> pat;
  std::vector<LinkRequest> collNetDirect;
  std::vector<LinkRequest> collNetChain;
};

/// Adds a link to others, or its channels to the same link. Not where it leads to `self`.
void addLink(std::vector<LinkRequest>& links, int self, const LinkRequest& link);

Neighbours neighboursOf(int rank, int nRanks, std::vector<topo::RankChannel> channels);

}  // namespace tutti::comm
