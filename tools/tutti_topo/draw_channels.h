// The channels of a graph as curves over a machine's layout. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "topo/search/graph.h"
#include "tutti_topo/draw_layout.h"

namespace tutti::tool {

/// Channels that visit the same GPUs and NICs in the same order: drawn as one.
struct Bundle {
  std::vector<int> channels;  ///< ascending
  const topo::GraphChannel* order = nullptr;
  float bandwidth = 0;  ///< GB/s of all of them
  bool shown = true;    ///< seen in the still picture
};

/// All channels of `graph`, which must outlive the value. Shown are those with a channel among `selected`; if that is
/// empty all, or the first ones where there are more than `mostHops` curves.
std::vector<Bundle> bundlesOf(const topo::Graph& graph, const std::vector<int>& selected, std::size_t mostHops);

/// Where data travels in a channel, pairs of nodes: GPU to GPU, with several machines also NIC to GPU and GPU to NIC.
/// Nvls, CollNetDirect: from the head to the others.
Hops hopsOf(const topo::Graph& graph, const topo::GraphChannel& channel);

/// Do data travel along a hop of this pattern in both directions?
bool bothWays(topo::Pattern pattern);

/// One hop of a bundle: four points of a cubic curve, and its stroke's width.
struct Curve {
  std::size_t bundle = 0;
  std::vector<Point> points;
  double width = 2;
  bool toNet = false;  ///< joins a GPU and a NIC
};

/// The curves of those bundles, `which`, that are to be told apart from each other: each end has a place of its own at
/// its GPU, so that few cross.
std::vector<Curve> curvesOf(const Layout& layout, const topo::Graph& graph, const std::vector<Bundle>& bundles,
                            const std::vector<std::size_t>& which);

/// The point of a cubic curve at 0 <= t <= 1, and the direction there (radians).
Point pointAt(const std::vector<Point>& curve, double t);
double directionAt(const std::vector<Point>& curve, double t);

/// "0", "0–11", "0 2 4".
std::string rangesText(const std::vector<int>& numbers);

/// Colours that differ for neighbouring numbers: "#rrggbb".
std::string channelColour(std::size_t index);

}  // namespace tutti::tool
