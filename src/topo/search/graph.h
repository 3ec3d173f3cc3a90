// What a search finds: the channels of one algorithm on one machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topo/machine/path_type.h"

namespace tutti::topo {

class Machine;

/// Numbers are those of graph XML.
enum class GraphId : std::uint8_t { Ring = 0, Tree = 1, CollNetChain = 2, Nvls = 3, CollNetDirect = 4 };

/// Most channels of a graph, and of a communicator.
inline constexpr int kMostChannels = 64;
/// Whether it is of reductions in the network.
constexpr bool isCollNet(GraphId id) {
  return id == GraphId::CollNetChain || id == GraphId::CollNetDirect;
}

enum class Pattern : std::uint8_t { BalancedTree = 1, SplitTree = 2, Tree = 3, Ring = 4, Nvls = 5, CollNetDirect = 6 };

/// "RING", "BALANCED_TREE", …
const char* patternName(Pattern pattern);
/// "ring", "tree", "collnetChain", "nvls", "collnetDirect".
const char* graphName(GraphId id);

/// One channel on one machine; node numbers of a Machine.
///   Ring            all GPUs in order; one machine: closes to the first; several: from netIn to gpus.front(), from
///                   gpus.back() to netOut
///   Tree patterns   all GPUs in order of the chain; netIn: what the first GPU receives from, netOut: what it sends
///                   through (balanced and split tree: half of each at the first GPU, half at the second)
///   Nvls            gpus.front() is the head, the others follow in the machine's order
///   CollNetDirect   likewise
struct GraphChannel {
  std::vector<int> gpus;
  int netIn = -1;  ///< -1 on one machine
  int netOut = -1;
};

/// nChannels() x bandwidth is what the machine carries. GB/s per channel and direction.
struct Graph {
  GraphId id = GraphId::Ring;
  Pattern pattern = Pattern::Ring;
  int crossNic = 0;           ///< 0: one rail, 1: any, 2: channels in pairs, the odd one with the NICs swapped
  bool sameChannels = false;  ///< all channels have the same order
  float bwIntra = 0;
  float bwInter = 0;
  float latencyInter = 0;              ///< microseconds, of the last NIC the search started at
  PathType typeIntra = PathType::Loc;  ///< longest path used between GPUs
  PathType typeInter = PathType::Pix;  ///< longest path used between a GPU and a NIC
  std::vector<GraphChannel> channels;

  int nChannels() const { return static_cast<int>(channels.size()); }
};

/// "Pattern 4, crossNic 0, nChannels 8, bw 30.000000/30.000000, type NVL/PIX, sameChannels 1" and a line per channel,
/// as NCCL_DEBUG_SUBSYS=GRAPH prints them.
std::vector<std::string> graphLines(const Machine& machine, const Graph& graph);

}  // namespace tutti::topo
