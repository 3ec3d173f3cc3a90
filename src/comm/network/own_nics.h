// Devices of the network near one rank, as plain values.
#pragma once

#include <vector>

#include "topo/machine/path_type.h"

namespace tutti::topo {
struct Graph;
struct PathSettings;
struct Topology;
}  // namespace tutti::topo

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

}  // namespace tutti::comm
