#include "topo/channels/node_graphs.h"

#include <algorithm>
#include <span>
#include <type_traits>
#include <vector>

#include "base/hash.h"
#include "topo/search/search.h"

namespace tutti::topo {

namespace {

static_assert(std::is_trivially_copyable_v<GraphReport>);

template <class T>
void mix(std::uint64_t& hash, const T& value) {
  static_assert(std::has_unique_object_representations_v<T> || std::is_floating_point_v<T>);
  hash = hashBytes(std::as_bytes(std::span(&value, 1)), hash);
}

void mixGraph(std::uint64_t& hash, const Graph& graph) {
  mix(hash, static_cast<std::uint8_t>(graph.id));
  mix(hash, static_cast<std::uint8_t>(graph.pattern));
  mix(hash, graph.crossNic);
  mix(hash, graph.bwIntra);
  mix(hash, graph.bwInter);
  for (const GraphChannel& channel : graph.channels) {
    mix(hash, channel.gpus.size());
    for (const int gpu : channel.gpus) mix(hash, gpu);
    mix(hash, channel.netIn);
    mix(hash, channel.netOut);
  }
}

GraphSummary summaryOf(const Graph& graph) {
  return {
      .channels = static_cast<std::uint8_t>(std::min(graph.nChannels(), kMostGraphChannels)),
      .pattern = graph.pattern,
      .crossNic = static_cast<std::uint8_t>(graph.crossNic),
      .sameChannels = static_cast<std::uint8_t>(graph.sameChannels ? 1 : 0),
      .typeIntra = graph.typeIntra,
      .typeInter = graph.typeInter,
      .bwIntra = graph.bwIntra,
      .bwInter = graph.bwInter,
      .latencyInter = graph.latencyInter,
  };
}

/// Writes the rank's place in every channel; whether each channel has all GPUs, and each once.
bool findPlaces(const Machine& machine, const Graph& graph, int gpuRank, PlaceOnNode& places) {
  const std::span<const int> all = machine.nodes(NodeKind::Gpu);
  if (all.size() > static_cast<std::size_t>(kMostLocalRanks)) return false;
  std::vector<int> sorted(all.begin(), all.end());
  std::sort(sorted.begin(), sorted.end());
  for (int c = 0; c < std::min(graph.nChannels(), kMostGraphChannels); ++c) {
    const std::vector<int>& order = graph.channels[static_cast<std::size_t>(c)].gpus;
    std::vector<int> passed = order;
    std::sort(passed.begin(), passed.end());
    if (passed != sorted) return false;
    const auto self =
        std::find_if(order.begin(), order.end(), [&](int gpu) { return machine.facts<GpuFacts>(gpu).rank == gpuRank; });
    if (self == order.end()) return false;
    places[static_cast<std::size_t>(c)] = static_cast<std::uint8_t>(self - order.begin());
  }
  return true;
}

}  // namespace

GraphReport describeGraphs(const Machine& machine, const GraphSet& graphs, int gpuRank) {
  GraphReport words;
  words.hash = kHashSeed;
  for (const Graph* graph : {&graphs.ring, &graphs.tree, &graphs.collNetChain, &graphs.collNetDirect, &graphs.nvls}) {
    words.graphs[static_cast<std::size_t>(graph->id)] = summaryOf(*graph);
    mixGraph(words.hash, *graph);
  }
  words.cpu = machine.cpuKind();
  const bool placed = findPlaces(machine, graphs.ring, gpuRank, words.ringPlace) &&
                      findPlaces(machine, graphs.tree, gpuRank, words.treePlace);
  return placed ? words : GraphReport{};
}

}  // namespace tutti::topo
