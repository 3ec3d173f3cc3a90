#include "tutti_topo/searched.h"

#include <ctime>
#include <map>

namespace tutti::tool {
namespace {

constexpr int kMostHeads = 64;  // the search itself knows lower limits

/// What the bounds of the graphs go by; not `all`: without those that are not wanted.
std::vector<GraphRequest> requestsOf(const Loaded& loaded, bool all) {
  std::vector<GraphRequest> requests{{GraphId::Ring, Pattern::Ring}, {GraphId::Tree, Pattern::BalancedTree}};
  if (all || loaded.settings.collNet) {
    requests.push_back({GraphId::CollNetChain, Pattern::Tree});
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
  std::map<GraphId, double> milliseconds;
  double before = processorMilliseconds();
  const auto book = [&](GraphId id) {
    const double now = processorMilliseconds();
    milliseconds[id] = now - before;
    before = now;
  };
  const GraphSet graphs = searchGraphs(loaded.topology.machine, loaded.topology.paths, loaded.settings, book);
  std::vector<Found> found;
  for (const GraphRequest& request : requestsOf(loaded, false)) {
    found.push_back({graphOf(graphs, request.id), boundOf(loaded, request), milliseconds[request.id]});
  }
  return found;
}

std::vector<Found> withBounds(const Loaded& loaded, const GraphSet& graphs) {
  std::vector<Found> found;
  for (const GraphRequest& request : requestsOf(loaded, true)) {
    const Graph& graph = graphOf(graphs, request.id);
    if (!graph.channels.empty()) found.push_back({.graph = graph, .bound = boundOf(loaded, request)});
  }
  return found;
}

}  // namespace tutti::tool
