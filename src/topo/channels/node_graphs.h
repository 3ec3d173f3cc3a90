// What one rank tells the others of its node's graphs: in a few fixed words what they carry, and where the rank stands
// in the order of each of their channels. From everybody's words the orders of all nodes can be put together again, so
// nobody sends whole graphs round.
#pragma once

#include <array>
#include <cstdint>

#include "topo/machine/machine.h"
#include "topo/search/graph.h"

namespace tutti::topo {

struct GraphSet;

inline constexpr int kGraphs = 5;
/// Channels of a graph that ranks tell each other of: as many as a graph file may have.
inline constexpr int kMostGraphChannels = 64;
/// Ranks of a node whose places fit into a GraphReport.
inline constexpr int kMostLocalRanks = 255;

/// A graph without its orders. Trivially copyable. Bandwidths in GB/s per channel and direction.
struct GraphSummary {
  std::uint8_t channels = 0;  ///< 0: there is no such graph
  Pattern pattern = Pattern::Ring;
  std::uint8_t crossNic = 0;
  std::uint8_t sameChannels = 0;
  PathType typeIntra = PathType::Loc;
  PathType typeInter = PathType::Loc;
  float bwIntra = 0;
  float bwInter = 0;
  float latencyInter = 0;  ///< microseconds

  friend bool operator==(const GraphSummary&, const GraphSummary&) = default;
};

/// Places of one rank in the orders of its node, by channel.
using PlaceOnNode = std::array<std::uint8_t, kMostGraphChannels>;

/// What one rank tells of its node's graphs. Trivially copyable: travels through ControlChannel::allGather as it is.
/// Without a ring's channels: the rank knows of no topology.
struct GraphReport {
  std::array<GraphSummary, kGraphs> graphs;  ///< by GraphId
  PlaceOnNode ringPlace{};
  PlaceOnNode treePlace{};
  std::uint64_t hash = 0;  ///< of all graphs with their orders and NICs: ranks of one node have the same
  CpuKind cpu = CpuKind::OtherX86;

  const GraphSummary& of(GraphId id) const { return graphs[static_cast<std::size_t>(id)]; }
};

/// The words of the rank whose Gpu on `machine` has GpuFacts::rank == `gpuRank`. A ring or tree that does not pass
/// every GPU once, or more than kMostLocalRanks of them, tells of no topology.
GraphReport describeGraphs(const Machine& machine, const GraphSet& graphs, int gpuRank);

}  // namespace tutti::topo
