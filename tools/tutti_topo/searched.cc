#include "tutti_topo/searched.h"

#include <ctime>
#include <map>

namespace tutti::tool {
namespace {

constexpr int kMostHeads = 64;  // the search itself knows lower limits

/// What the bounds of the graphs go by; not `all`: without those that are not wanted.
std::vector<topo::GraphRequest> requestsOf(const Loaded& loaded, bool all) {
  std::vector<topo::GraphRequest> requests{{topo::GraphId::Ring, topo::Pattern::Ring},
                                           {topo::GraphId::Tree, topo::Pattern::BalancedTree}};
  if (all || loaded.settings.collNet) {
    requests.push_back({topo::GraphId::CollNetChain, topo::Pattern::Tree});
    requests.push_back({topo::GraphId::CollNetDirect, topo::Pattern::CollNetDirect, 1, kMostHeads});
  }
  if (all || (loaded.settings.nvls && !loaded.topology.machine.nodes(topo::NodeKind::NvSwitch).empty())) {
    requests.push_back({topo::GraphId::Nvls, topo::Pattern::Nvls, 1, kMostHeads});
  }
  return requests;
}

/// Of this thread: what others do on the machine does not count.
double processorMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

float boundOf(const Loaded& loaded, const topo::GraphRequest& request) {
  return topo::bandwidthBound(loaded.topology.machine, loaded.topology.paths, request, loaded.settings);
}

const topo::Graph& graphOf(const topo::GraphSet& graphs, topo::GraphId id) {
  switch (id) {
    case topo::GraphId::Ring:
      return graphs.ring;
    case topo::GraphId::Tree:
      return graphs.tree;
    case topo::GraphId::CollNetChain:
      return graphs.collNetChain;
    case topo::GraphId::CollNetDirect:
      return graphs.collNetDirect;
    case topo::GraphId::Nvls:
      return graphs.nvls;
  }
  return graphs.ring;
}

}  // namespace

std::vector<Found> searchAll(const Loaded& loaded) {
  std::map<topo::GraphId, double> milliseconds;
  double before = processorMilliseconds();
  const auto book = [&](topo::GraphId id) {
    const double now = processorMilliseconds();
    milliseconds[id] = now - before;
    before = now;
  };
  const topo::GraphSet graphs =
      topo::searchGraphs(loaded.topology.machine, loaded.topology.paths, loaded.settings, book);
  std::vector<Found> found;
  for (const topo::GraphRequest& request : requestsOf(loaded, false)) {
    found.push_back({graphOf(graphs, request.id), boundOf(loaded, request), milliseconds[request.id]});
  }
  return found;
}

std::vector<Found> withBounds(const Loaded& loaded, const topo::GraphSet& graphs) {
  std::vector<Found> found;
  for (const topo::GraphRequest& request : requestsOf(loaded, true)) {
    const topo::Graph& graph = graphOf(graphs, request.id);
    if (!graph.channels.empty()) found.push_back({.graph = graph, .bound = boundOf(loaded, request)});
  }
  return found;
}

}  // namespace tutti::tool
