// The most that a machine can carry, by cuts: what the search works towards, and where it may stop. Pure.
#pragma once

#include <vector>

#include "topo/search/model.h"

namespace tutti::topo {

/// Maximum flow between nodes of a network with capacities (Dinic). A value; flows are computed afresh each time.
class FlowNetwork {
 public:
  explicit FlowNetwork(int nodes) : edgesOf_(static_cast<std::size_t>(nodes)) {}
  void addEdge(int from, int to, double capacity);
  /// The flow from one node to another, which is the smallest cut between the two.
  double maxFlow(int from, int to);

 private:
  struct Edge {
    int to;
    double capacity;
    double left;
  };
  bool layer(int from, int to);
  double push(int node, int to, double amount);

  std::vector<Edge> edges_;  ///< each is followed by its reverse
  std::vector<std::vector<int>> edgesOf_;
  std::vector<int> depth_;
  std::vector<std::size_t> next_;
};

/// GB/s in sum over channels that no rings or chains of this machine exceed, if chains' bandwidth inside is to be
/// `inside` times that to the network. docs/topology.md, "Bound".
float channelBound(const SearchModel& model, Pattern pattern, bool collectiveOnly, float inside = 1);

/// What bounds of channels come from: the smallest cut that all of a channel's bandwidth passes, and that of the inside
/// alone. GB/s.
struct ChannelCuts {
  double whole = 0;
  double inside = 0;

  /// channelBound()
  float bound(float inProportion) const;
};
ChannelCuts channelCuts(const SearchModel& model, bool isRing, bool collectiveOnly);

/// Likewise of graphs with one head per channel (NVLS, CollNetDirect) and at most `heads` of them.
float headBound(const SearchModel& model, Pattern pattern, int heads, bool collectiveOnly);

}  // namespace tutti::topo
