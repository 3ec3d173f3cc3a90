// Where the slots lie that a head exchanges with a network that reduces.
#pragma once

#include "transport/net/lane/slot_place.h"

namespace tutti::topo {
struct PeerInfo;
}

namespace tutti::comm {

class CommNetwork;
struct CommSettings;

struct SlotPlaces {
  net::SlotPlace send;
  net::SlotPlace recv;
};

/// Of the lanes of the rank `self`, a head that uses this NIC. Device memory where the NIC reaches it in both
/// directions, for one registration serves both.
SlotPlaces slotPlacesAt(int nic, const CommNetwork& network, const topo::PeerInfo& self, const CommSettings& settings);

}  // namespace tutti::comm
