// Which device of the network serves which connection of a rank: plain facts -> numbers.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "comm/connect.h"
#include "topo/graph.h"
#include "topo/topology.h"

namespace tutti {

/// What the machine says of the rank's GPU and one NIC: whether the NIC may read and write its memory.
struct NicAccess {
  int device = -1;            ///< the NIC's number in the machine
  bool reads = false;         ///< for sending
  bool writes = false;        ///< for receiving
  bool apartFromCpu = false;  ///< the NIC's writes take another way to the GPU than the CPU's
};

/// Devices of the network near one rank, by the network's own numbers. Empty vectors: nothing is known.
struct OwnNics {
  std::vector<int> ringIn;    ///< by channel of the node's ring graph: where the node receives
  std::vector<int> ringOut;   ///< and where it sends
  std::vector<int> nearest;   ///< to the rank's GPU
  std::vector<NicAccess> access;   ///< of every NIC
};

/// `gpu`: node number of the rank's GPU in the machine.
OwnNics nicsOf(const Topology& topology, const Graph& ring, int gpu, const PathSettings& settings);

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

/// What the machine says of the NIC for that connection; empty: nothing.
std::optional<NicAccess> accessFor(const OwnNics& nics, const NicQuestion& question);

}  // namespace tutti
