// What the connections along a graph carry, as plain values.
#pragma once

#include <algorithm>

namespace tutti::topo {

/// Speed of the connections along one graph, by channel.
struct GraphSpeed {
  double intra = 0;              ///< GB/s within a node; 0: there are no such connections
  double inter = 0;              ///< GB/s between nodes
  double latencyInter = 0;       ///< microseconds that the network adds
  int channels = 0;              ///< of the graph: `intra` and `inter` times this is all; 0: those of the communicator
  bool oneGpuAtNetwork = false;  ///< a tree whose nodes reach the network through one GPU each

  bool connected() const { return intra > 0; }
  /// Channels that carry these bandwidths in a communicator of `nChannels`: others share the same links.
  double lanes(double nChannels) const { return channels > 0 ? std::min<double>(channels, nChannels) : nChannels; }
};

}  // namespace tutti::topo
