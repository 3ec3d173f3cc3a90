// A rank's line in the table of ranks, with nothing in it that matters.
#pragma once

#include "nccl.h"
#include "topo/machine/peer_info.h"

namespace tutti::test {

inline topo::PeerInfo plainPeer(int rank, int nRanks) {
  topo::PeerInfo peer;
  peer.rank = rank;
  peer.nRanks = nRanks;
  peer.version = NCCL_VERSION_CODE;
  peer.hostName = {'n', 'o', 'd', 'e'};
  return peer;
}

}  // namespace tutti::test
