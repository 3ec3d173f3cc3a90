#include "comm/collnet/node_heads.h"

#include <algorithm>
#include <variant>

#include "device/collnet_view.h"
#include "topo/machine/machine.h"
#include "topo/search/graph.h"
#include "topo/search/search.h"

namespace tutti::comm {

namespace {

constexpr auto kMostHeads = static_cast<std::size_t>(device::kMaxCollNetLocals);

int localRankOf(const topo::Machine& machine, int gpu) {
  return machine.facts<topo::GpuFacts>(gpu).rank;
}

int nicOf(const topo::Machine& machine, int node) {
  if (node < 0) return -1;
  const auto* net = std::get_if<topo::NetFacts>(&machine.node(node).facts);
  return net != nullptr ? net->dev : -1;
}

bool isHead(const std::vector<NodeHead>& heads, int localRank) {
  return std::any_of(heads.begin(), heads.end(), [&](const NodeHead& head) { return head.localRank == localRank; });
}

}  // namespace

NodeHeads headsOfGraphs(const topo::Machine& machine, const topo::GraphSet& graphs) {
  NodeHeads node;
  for (const topo::GraphChannel& channel : graphs.collNetDirect.channels) {
    const int localRank = localRankOf(machine, channel.gpus.front());
    if (isHead(node.heads, localRank) || node.heads.size() == kMostHeads) continue;
    node.heads.push_back({localRank, nicOf(machine, channel.netOut)});
  }
  for (const topo::GraphChannel& channel : graphs.collNetChain.channels) {
    if (!isHead(node.heads, localRankOf(machine, channel.gpus.front()))) continue;
    std::vector<int>& chain = node.chains.emplace_back();
    for (const int gpu : channel.gpus) chain.push_back(localRankOf(machine, gpu));
  }
  node.switched = !machine.nodes(topo::NodeKind::NvSwitch).empty() || machine.nodes(topo::NodeKind::Gpu).size() == 1;
  return node;
}

NodeHeads headsByRank(int localRanks, std::span<const int> devices) {
  NodeHeads node;
  const std::size_t heads = std::min({static_cast<std::size_t>(localRanks), devices.size(), kMostHeads});
  for (std::size_t h = 0; h < heads; ++h) {
    node.heads.push_back({static_cast<int>(h), devices[h]});
    std::vector<int>& chain = node.chains.emplace_back();
    for (int i = 0; i < localRanks; ++i) chain.push_back((static_cast<int>(h) + i) % localRanks);
  }
  return node;
}

}  // namespace tutti::comm
