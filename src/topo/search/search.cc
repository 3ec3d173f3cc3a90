#include "topo/search/search.h"

#include <algorithm>
#include <list>
#include <utility>
#include <vector>

#include "topo/search/model.h"
#include "topo/search/once.h"

namespace tutti::topo {

namespace {

/// So much more have NICs to give for which a channel goes further.
constexpr float kWorthGoingFar = 1.04f;
/// Parts of the usual work on rings, the most there is, where more than one search is needed.
constexpr float kNearEffort = 0.3f;
constexpr float kFarEffort = 0.5f;
/// Less than that inside is worth trying more channels.
constexpr float kLittleInside = 1.25f;

/// Tries of a tree with a multiple of the ring's channels.
constexpr int kCopies[] = {2, 3};

bool isMuchMore(float a, float b) {
  return a > b * 1.05f;
}

/// More to the network, or as much and considerably more inside.
bool isMoreThan(const Graph& a, const Graph& b) {
  const auto n = static_cast<float>(a.nChannels());
  const auto m = static_cast<float>(b.nChannels());
  if (isMuchMore(n * a.bwInter, m * b.bwInter)) return true;
  return !isMuchMore(m * b.bwInter, n * a.bwInter) && n * a.bwIntra > m * b.bwIntra * 1.2f;
}

/// Whether more than the tree has is possible and of use: inside of the machine up to twice what leaves it.
bool mayGain(const Graph& tree, float bound) {
  const float lesser = std::min(tree.bwIntra, tree.bwInter) * static_cast<float>(tree.nChannels());
  return isMuchMore(bound, lesser) || tree.bwIntra < kLittleInside * tree.bwInter;
}

/// Each channel that many times, each copy with its part of the bandwidth.
void repeatChannels(Graph& graph, int times) {
  const std::vector<GraphChannel> once = graph.channels;
  for (int i = 1; i < times; ++i) graph.channels.insert(graph.channels.end(), once.begin(), once.end());
  if (times <= 1) return;
  graph.bwIntra /= static_cast<float>(times);
  graph.bwInter /= static_cast<float>(times);
}

/// Searches with the NICs near the GPUs, and takes farther ones if they give considerably more: what a link could carry
/// is not what NICs do to memory that lies behind several bridges.
class NearFirst {
 public:
  NearFirst(SearchPlace& whole, const SearchSettings& settings) : whole_(whole), settings_(settings) {
    const std::vector<PathType> limits = whole.model.reaches();
    for (std::size_t i = 0; i + 1 < limits.size(); ++i) nearer_.emplace_back(whole.model.within(limits[i]));
  }

  Graph search(const GraphRequest& request) {
    const bool isRing = request.pattern == Pattern::Ring;
    std::vector<Graph> found;
    for (SearchPlace& nearer : nearer_) {
      found.push_back(searchOnce(nearer, request, settings_, isRing ? kNearEffort : 1));
      if (suffices(found.back(), request)) return std::move(found.back());
    }
    found.push_back(searchOnce(whole_, request, settings_, isRing && !nearer_.empty() ? kFarEffort : 1));
    const auto good = std::find_if(found.begin(), found.end(), [&](const Graph& graph) {
      return std::none_of(found.begin(), found.end(),
                          [&](const Graph& other) { return isWorthGoingFar(graph, other); });
    });
    return good != found.end() ? std::move(*good) : std::move(found.back());
  }

 private:
  /// Whether going further cannot be worth it.
  bool suffices(const Graph& near, const GraphRequest& request) {
    // NVLink is not shared with ways to NICs.
    const bool mayHaveMoreInside = near.typeIntra > PathType::Nvb && near.bwIntra < kLittleInside * near.bwInter;
    if (isChain(request.pattern) && mayHaveMoreInside) return false;
    return static_cast<float>(near.nChannels()) * near.bwInter * kWorthGoingFar >= boundOf(whole_, request);
  }
  /// To the network, or inside as far as that is of use.
  static bool isWorthGoingFar(const Graph& near, const Graph& far) {
    const auto n = static_cast<float>(near.nChannels());
    const auto m = static_cast<float>(far.nChannels());
    if (n * near.bwInter * kWorthGoingFar < m * far.bwInter) return true;
    return n * usefulInside(near) * kWorthGoingFar < m * usefulInside(far);
  }
  static float usefulInside(const Graph& graph) { return std::min(graph.bwIntra, graph.bwInter * kUsefulInside); }

  SearchPlace& whole_;
  const SearchSettings& settings_;
  std::list<SearchPlace> nearer_;  ///< from the nearest
};

}  // namespace

GraphSet searchGraphs(const Machine& machine, const PathTable& paths, const SearchSettings& settings,
                      const GraphSearched& searched) {
  SearchPlace whole(SearchModel(machine, paths, settings));
  NearFirst near(whole, settings);
  const auto done = [&](GraphId id) {
    if (searched) searched(id);
  };
  GraphSet set;
  set.ring = near.search({GraphId::Ring, Pattern::Ring, settings.minChannels, settings.maxChannels});
  done(GraphId::Ring);
  const int once = set.ring.nChannels();
  set.tree = near.search({GraphId::Tree, Pattern::BalancedTree, once, once});
  // Chains run in one direction and start at one GPU: more of them can be spread better.
  const float bound = whole.memory.channelBound(Pattern::Tree, false);
  for (int copies : kCopies) {
    if (copies * once > settings.maxChannels || !mayGain(set.tree, bound)) break;
    Graph tree = near.search({GraphId::Tree, Pattern::BalancedTree, copies * once, copies * once});
    if (isMoreThan(tree, set.tree)) set.tree = std::move(tree);
  }
  repeatChannels(set.ring, set.tree.nChannels() / std::max(once, 1));
  done(GraphId::Tree);
  const int n = set.ring.nChannels();
  set.collNetChain = near.search({GraphId::CollNetChain, Pattern::Tree, n, n});
  done(GraphId::CollNetChain);
  set.collNetDirect = near.search({GraphId::CollNetDirect, Pattern::CollNetDirect, 1, kMaxDirectHeads});
  done(GraphId::CollNetDirect);
  set.nvls = near.search({GraphId::Nvls, Pattern::Nvls, 1, kMaxNvlsHeads});
  done(GraphId::Nvls);
  return set;
}

float bandwidthBound(const Machine& machine, const PathTable& paths, const GraphRequest& request,
                     const SearchSettings& settings) {
  SearchPlace whole(SearchModel(machine, paths, settings));
  return boundOf(whole, request);
}

}  // namespace tutti::topo
