// Which device of the network serves which connection of a rank: plain facts -> numbers.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "comm/connect/link_types.h"
#include "topo/search/graph.h"
#include "topo/search/topology.h"

namespace tutti::comm {

/// What the machine says of the rank's GPU and one NIC: whether the NIC may read and write its memory.
struct NicAccess {
  int device = -1;            ///< the NIC's number in the machine
  bool reads = false;         ///< for sending
  bool writes = false;        ///< for receiving
  bool apartFromCpu = false;  ///< the NIC's writes take another way to the GPU than the CPU's
};

/// How the rank's GPU sends to a NIC of its host.
struct NicWay {
  int device = -1;  ///< the NIC's number in the machine
  topo::PathType type = topo::PathType::Dis;
  int relay = -1;  ///< PXN: the rank within the node through which; else -1
  int rail = -1;   ///< the NIC's, as the network has it; without one its number
};

/// Devices of the network near one rank, by the network's own numbers. Empty vectors: nothing is known.
struct OwnNics {
  std::vector<int> ringIn;        ///< by channel of the node's ring graph: where the node receives
  std::vector<int> ringOut;       ///< and where it sends
  std::vector<int> nearest;       ///< to the rank's GPU
  std::vector<NicAccess> access;  ///< of every NIC
  std::vector<NicWay> ways;       ///< to every NIC
  bool relaysForOthers = false;   ///< other ranks of the node may send through this one
};

/// `gpu`: node number of the rank's GPU in the machine.
OwnNics nicsOf(const topo::Topology& topology, const topo::Graph& ring, int gpu, const topo::PathSettings& settings);

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
