// One graph on a machine as it is given, with every way that the model allows. Pure.
#pragma once

#include <utility>

#include "topo/search/graph.h"
#include "topo/search/memory.h"
#include "topo/search/model.h"
#include "topo/search/search.h"

namespace tutti::topo {

inline constexpr int kMaxDirectHeads = 8;
inline constexpr int kMaxNvlsHeads = 32;
/// A tree's GPUs pass on what they get to two others: that much more inside than to the network is of use.
inline constexpr float kUsefulInside = 2;

/// Whether the pattern is a chain of all GPUs that stays open.
bool isChain(Pattern pattern);

/// A model and what was found on it.
struct SearchPlace {
  explicit SearchPlace(SearchModel of) : model(std::move(of)), memory(model) {}
  SearchPlace(const SearchPlace&) = delete;
  SearchPlace& operator=(const SearchPlace&) = delete;

  const SearchModel model;
  SearchMemory memory;
};

/// The best graph found with so much of the usual work; no channels where the graph is not wanted, or is optional and
/// not possible.
Graph searchOnce(SearchPlace& place, const GraphRequest& request, const SearchSettings& settings, float effort);

/// bandwidthBound() of a model.
float boundOf(SearchPlace& place, const GraphRequest& request);

}  // namespace tutti::topo
