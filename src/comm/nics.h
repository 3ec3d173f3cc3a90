// Which device of the network serves which connection of a rank: plain facts -> numbers.
#pragma once

#include <span>
#include <vector>

#include "comm/connect.h"
#include "topo/graph.h"
#include "topo/topology.h"

namespace tutti {

/// Devices of the network near one rank, by the network's own numbers. Empty vectors: nothing is known.
struct OwnNics {
  std::vector<int> ringIn;    ///< by channel of the node's ring graph: where the node receives
  std::vector<int> ringOut;   ///< and where it sends
  std::vector<int> nearest;   ///< to the rank's GPU
};

/// `gpu`: node number of the rank's GPU in the machine.
OwnNics nicsOf(const Topology& topology, const Graph& ring, int gpu);

/// The device for a connection of `channel` in that direction; -1 where there is no device. What follows a graph takes the
/// graph's NIC, repeated where there are more channels; anything else one of the nearest, another one for each channel.
/// Without knowledge all `devices` take turns, beginning at `turn` (the rank within its node).
struct NicQuestion {
  std::span<const int> devices;   ///< the network's numbers of those there are
  int turn = 0;
  int channel = 0;
  device::ConnKind kind = device::ConnKind::Graph;
  Direction direction = Direction::Send;
};
int nicFor(const OwnNics& nics, const NicQuestion& question);

}  // namespace tutti
