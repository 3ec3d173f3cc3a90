#include "comm/tuning/speeds.h"

#include <algorithm>

#include "comm/tuning/costs.h"
#include "topo/channels/costs.h"

namespace tutti::comm {

Speeds assumedSpeeds(const RankFacts& ranks, unsigned nChannels, bool meshed) {
  const topo::costs::Generation generation = topo::costs::generationOf(ranks.computeCapability);
  const bool nvlink = ranks.path == PathClass::NVLink;
  const double total = nvlink ? costs::kNvlinkTotal[generation] : costs::kPciTotal[generation];
  const double channels = std::max(nChannels, 1U);
  topo::GraphSpeed graph;
  graph.intra = std::min(total / channels, costs::kPerBlock[generation]);
  if (ranks.nNodes > 1) graph.inter = std::min(graph.intra, costs::kNetworkTotal / channels);
  const double share = nvlink ? costs::kMeshNvlinkShare : costs::kMeshPciShare;
  return {.ring = graph, .tree = graph, .pat = graph, .mesh = meshed ? total * share : 0};
}

Speeds knownSpeeds(const RankFacts& ranks, const topo::GraphSpeeds& graphs, unsigned nChannels, bool meshed) {
  Speeds speeds{.ring = graphs.ring, .tree = graphs.tree, .pat = graphs.pat};
  // A search that found no path to a NIC says so, but nodes may still be joined.
  for (topo::GraphSpeed* graph : {&speeds.ring, &speeds.tree, &speeds.pat}) {
    if (ranks.nNodes > 1 && graph->inter <= 0) graph->inter = costs::kUnknownNetwork;
  }
  const double share = ranks.path == PathClass::NVLink ? costs::kMeshNvlinkShare : costs::kMeshPciShare;
  if (meshed) speeds.mesh = speeds.ring.intra * speeds.ring.lanes(nChannels) * share;
  return speeds;
}

}  // namespace tutti::comm
