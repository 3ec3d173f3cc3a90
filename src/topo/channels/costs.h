// What graphs carry, for whoever weighs algorithms: bandwidth and latency of every algorithm and protocol on GPUs.
//
//   agreed graphs --speedsOf()--> GraphSpeeds --costTable()--> a HopCost for each algorithm and protocol
//
// The tables and formulae follow NCCL's published tuning constants, so that switch points feel familiar. Pure
// functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "topo/channels/costs_constants.h"
#include "topo/channels/graph_speed.h"

namespace tutti::topo {

struct AgreedGraphs;

/// Numbers are those of NCCL's cost tables.
enum class CostAlgorithm : std::uint8_t { Tree, Ring, CollNetDirect, CollNetChain, Nvls, NvlsTree, Pat };
inline constexpr int kCostAlgorithms = static_cast<int>(costs::kAlgorithms);
enum class CostProtocol : std::uint8_t { LL, LL128, Simple };
inline constexpr int kCostProtocols = 3;

/// All graphs; without `intra`: there is none.
struct GraphSpeeds {
  GraphSpeed ring;
  GraphSpeed tree;
  GraphSpeed pat;
  GraphSpeed collNetChain;
  GraphSpeed collNetDirect;
  GraphSpeed nvls;
};

GraphSpeeds speedsOf(const AgreedGraphs& agreed);

/// What the costs depend on besides the graphs; equal on all ranks.
struct CostFacts {
  int nRanks = 1;
  int nNodes = 1;
  int computeCapability = 0;  ///< major * 10 + minor, the lowest of all ranks
  bool nvlink = false;        ///< the longest path between GPUs of a node is NVLink (NVL or NVB), else PCI
  bool amdOrMixedCpus = false;
  int nChannels = 1;  ///< of the communicator
};

/// One algorithm with one protocol. Microseconds and GB/s.
struct HopCost {
  double base = 0;       ///< of an operation, whatever the number of hops
  double intra = 0;      ///< a hop within a node
  double inter = 0;      ///< a hop between nodes, with what the network and a flush add
  double bandwidth = 0;  ///< on all channels together; 0: the combination does not exist, or its graph does not
};

using CostTable = std::array<std::array<HopCost, kCostProtocols>, kCostAlgorithms>;

/// For an all-reduce where functions differ (CollNetDirect, NVLS).
CostTable costTable(const CostFacts& facts, const GraphSpeeds& speeds,
                    const costs::Constants& constants = costs::kPublished);

inline const HopCost& costOf(const CostTable& table, CostAlgorithm algorithm, CostProtocol protocol) {
  return table[static_cast<std::size_t>(algorithm)][static_cast<std::size_t>(protocol)];
}

/// GB/s that the LL protocol reaches at most, however many channels it has.
double mostLlBandwidth(const CostFacts& facts, const costs::Constants& constants = costs::kPublished);

}  // namespace tutti::topo
