#include "tutti_topo/searched.h"

#include <algorithm>
#include <ctime>

namespace tutti::tool {
namespace {

constexpr int kMostHeads = 64;  // the search itself knows lower limits

/// What searchGraphs() asks for each graph once the ring has `channels`; not `all`: without those that are not wanted.
std::vector<GraphRequest> requestsOf(const Loaded& loaded, int channels, bool all = false) {
  std::vector<GraphRequest> requests{
      {GraphId::Ring, Pattern::Ring, loaded.settings.minChannels, loaded.settings.maxChannels},
      {GraphId::Tree, Pattern::BalancedTree, channels, channels}};
  if (all || loaded.settings.collNet) {
    requests.push_back({GraphId::CollNetChain, Pattern::Tree, channels, channels});
    requests.push_back({GraphId::CollNetDirect, Pattern::CollNetDirect, 1, kMostHeads});
  }
  if (all || (loaded.settings.nvls && !loaded.topology.machine.nodes(NodeKind::NvSwitch).empty())) {
    requests.push_back({GraphId::Nvls, Pattern::Nvls, 1, kMostHeads});
  }
  return requests;
}

/// Of this thread: what others do on the machine does not count.
double processorMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

float boundOf(const Loaded& loaded, const GraphRequest& request) {
  return bandwidthBound(loaded.topology.machine, loaded.topology.paths, request, loaded.settings);
}

const Graph& graphOf(const GraphSet& graphs, GraphId id) {
  switch (id) {
    case GraphId::Ring:
      return graphs.ring;
    case GraphId::Tree:
      return graphs.tree;
    case GraphId::CollNetChain:
      return graphs.collNetChain;
    case GraphId::CollNetDirect:
      return graphs.collNetDirect;
    case GraphId::Nvls:
      return graphs.nvls;
  }
  return graphs.ring;
}

}  // namespace

std::vector<Found> searchAll(const Loaded& loaded) {
  std::vector<Found> found;
  int channels = 1;
  for (std::size_t i = 0; i < requestsOf(loaded, channels).size(); ++i) {
    const GraphRequest request = requestsOf(loaded, channels)[i];
    const double start = processorMilliseconds();
    Found one{.graph = searchGraph(loaded.topology.machine, loaded.topology.paths, request, loaded.settings)};
    one.milliseconds = processorMilliseconds() - start;
    one.bound = boundOf(loaded, request);
    if (i == 0) channels = one.graph.nChannels();
    found.push_back(std::move(one));
  }
  return found;
}

std::vector<Found> withBounds(const Loaded& loaded, const GraphSet& graphs) {
  std::vector<Found> found;
  for (const GraphRequest& request : requestsOf(loaded, std::max(1, graphs.ring.nChannels()), true)) {
    const Graph& graph = graphOf(graphs, request.id);
    if (!graph.channels.empty()) found.push_back({.graph = graph, .bound = boundOf(loaded, request)});
  }
  return found;
}

}  // namespace tutti::tool
