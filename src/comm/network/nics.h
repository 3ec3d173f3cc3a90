// Which device of the network serves which connection of a rank: plain facts -> numbers.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "comm/network/own_nics.h"
#include "device/conn_view.h"
#include "device/direction.h"

namespace tutti::comm {

/// The device for a connection of `channel` in that direction; -1 where there is no device. What follows a graph takes
/// the graph's NIC, repeated where there are more channels; anything else one of the nearest, another one for each
/// channel. Without knowledge all `devices` take turns, beginning at `turn` (the rank within its node).
struct NicQuestion {
  std::span<const int> devices;  ///< the network's numbers of those there are
  int turn = 0;
  int channel = 0;
  device::ConnKind kind = device::ConnKind::Graph;
  device::Direction direction = device::Direction::Send;
};
int nicFor(const OwnNics& nics, const NicQuestion& question);

/// What the machine says of the NIC for that connection; empty: nothing.
std::optional<NicAccess> accessFor(const OwnNics& nics, const NicQuestion& question);

/// The same for a NIC by its number in the machine; -1: nothing is known.
std::optional<NicAccess> accessTo(const OwnNics& nics, int nic);

/// Where a connection's NIC is; -1: not known.
struct RailPlace {
  int nic = -1;
  int rail = -1;
};
RailPlace placeOf(const OwnNics& nics, const NicQuestion& question);

/// Whether the rank sends to any NIC through another rank.
bool sendsThroughOthers(const OwnNics& nics);

/// How a sender's connection to another host goes.
struct RouteQuestion {
  NicQuestion nic;
  RailPlace receiver;
  int level = 2;  ///< NCCL_P2P_PXN_LEVEL
};
struct Route {
  int device = -1;  ///< of the network
  int nic = -1;     ///< its number in the machine; -1: nothing is known
  int relay = -1;   ///< rank within the node that sends in our stead; -1: we send ourselves
};
/// What follows a graph takes the graph's NIC, and another rank that is nearer to it where the way is PXN. Messages
/// take the NIC on the receiver's rail (level 2), if our GPU is near to it or a rank is that relays; else (and at level
/// 1) one of the nearest, likewise; at level 0 by ourselves.
Route routeFor(const OwnNics& nics, const RouteQuestion& question);

}  // namespace tutti::comm
