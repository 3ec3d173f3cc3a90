#include "topo/channels/costs.h"

#include "topo/channels/costs_constants.h"
#include "topo/channels/graph_agreement.h"

namespace tutti::topo {

namespace {

GraphSpeed speedOf(const GraphSummary& graph) {
  if (graph.channels == 0) return {};
  return {.intra = graph.bwIntra,
          .inter = graph.bwInter,
          .latencyInter = graph.latencyInter,
          .channels = graph.channels,
          .oneGpuAtNetwork = graph.pattern == Pattern::Tree};
}

/// The rows of one communicator.
class Costs {
 public:
  Costs(const CostFacts& facts, const GraphSpeeds& speeds, const costs::Constants& constants)
      : facts_(facts),
        speeds_(speeds),
        constants_(constants),
        generation_(costs::generationOf(facts.computeCapability)),
        column_(costs::columnOf(facts.nNodes)),
        link_(facts.nvlink ? costs::kNvlink : costs::kPci) {}

  HopCost ring(CostProtocol protocol) const {
    const GraphSpeed& graph = speeds_.ring;
    double bus = busOf(graph);
    if (protocol == CostProtocol::LL) bus = std::min(mostLl(), bus * 0.5);
    if (protocol == CostProtocol::LL128) {
      bus = std::min(bus * 0.92, lanes(graph) * constants_.ringLl128PerChannel[generation_][column_]);
    }
    // With one rank per node a ring's hops overlap no others, as a tree's.
    const bool alone = facts_.nNodes == facts_.nRanks;
    const double net = hop(costs::kNetwork, alone ? CostAlgorithm::Tree : CostAlgorithm::Ring, protocol);
    return {base(CostAlgorithm::Ring, protocol), hop(link_, CostAlgorithm::Ring, protocol),
            throughNet(net, graph, protocol), bus};
  }

  HopCost tree(CostProtocol protocol) const {
    const GraphSpeed& graph = speeds_.tree;
    const double channels = lanes(graph);
    double bus = std::min(busOf(graph) * 0.92, channels * constants_.treePerChannel[generation_][column_]);
    if (protocol == CostProtocol::LL) bus = std::min(bus / 3.8, mostLl());
    if (protocol == CostProtocol::LL128) {
      bus = std::min(bus * (facts_.nNodes == 1 ? 7.0 / 9 : 120.0 / 128),
                     channels * constants_.treeLl128PerChannel[generation_][column_]);
    }
    if (graph.oneGpuAtNetwork) bus *= 0.85;
    return {base(CostAlgorithm::Tree, protocol), hop(link_, CostAlgorithm::Tree, protocol),
            throughNet(hop(costs::kNetwork, CostAlgorithm::Tree, protocol), graph, protocol), bus};
  }

  /// The algorithms that have the Simple protocol only.
  HopCost simple(CostAlgorithm algorithm) const {
    switch (algorithm) {
      case CostAlgorithm::Pat:
        return hops(algorithm, speeds_.pat, busOf(speeds_.pat) * 0.75);
      case CostAlgorithm::CollNetDirect:
        return hops(algorithm, speeds_.collNetDirect, collNetDirectBus());
      case CostAlgorithm::CollNetChain:
        return hops(algorithm, speeds_.collNetChain, lanes(speeds_.collNetChain) * speeds_.collNetChain.intra);
      case CostAlgorithm::Nvls:
        return hops(algorithm, speeds_.nvls, nvlsBus(false));
      case CostAlgorithm::NvlsTree:
        return hops(algorithm, speeds_.nvls, nvlsBus(true));
      case CostAlgorithm::Tree:
      case CostAlgorithm::Ring:
        break;
    }
    return {};
  }

 private:
  double lanes(const GraphSpeed& graph) const { return graph.lanes(facts_.nChannels); }
  double busOf(const GraphSpeed& graph) const {
    return lanes(graph) * (facts_.nNodes <= 2 ? graph.intra : graph.inter);
  }
  /// A hop through the network; Simple needs a flush on top.
  static double throughNet(double hop, const GraphSpeed& graph, CostProtocol protocol) {
    return hop + (protocol == CostProtocol::Simple ? 2 * graph.latencyInter : graph.latencyInter);
  }
  double base(CostAlgorithm algorithm, CostProtocol protocol) const {
    return constants_.base[static_cast<std::size_t>(algorithm)][static_cast<std::size_t>(protocol)];
  }
  double hop(costs::Link link, CostAlgorithm algorithm, CostProtocol protocol) const {
    return constants_.hop[link][static_cast<std::size_t>(algorithm)][static_cast<std::size_t>(protocol)];
  }
  double mostLl() const { return mostLlBandwidth(facts_, constants_); }
  HopCost hops(CostAlgorithm algorithm, const GraphSpeed& graph, double bus) const {
    constexpr CostProtocol kSimple = CostProtocol::Simple;
    return {base(algorithm, kSimple), hop(link_, algorithm, kSimple),
            throughNet(hop(costs::kNetwork, algorithm, kSimple), graph, kSimple), graph.connected() ? bus : 0};
  }

  /// Heads are fewer than ranks: each carries what the ranks that share it have.
  double collNetDirectBus() const {
    const GraphSpeed& graph = speeds_.collNetDirect;
    if (!graph.connected()) return 0;
    const double perNode = static_cast<double>(facts_.nRanks) / facts_.nNodes;
    const double perHead = perNode / lanes(graph);
    const double bus = lanes(graph) * graph.intra / (perHead - (perHead - 1) / 2);
    return facts_.computeCapability >= 90 ? bus * 0.85 : bus;
  }

  double nvlsBus(bool tree) const {
    const GraphSpeed& graph = speeds_.nvls;
    const double channels = lanes(graph);
    if (!graph.connected() || channels < 2 || (tree && facts_.nNodes < 2)) return 0;
    double each = 2 * graph.intra * costs::kNvlsShare[generation_] * (channels - 1) / channels;
    if (facts_.nNodes > 1) each = std::min(each, graph.inter * (tree && facts_.nNodes <= 2 ? 2 : 1));
    if (tree) each = std::min(each, constants_.nvlsTreePerChannel[generation_][column_]);
    return channels * each;
  }

  const CostFacts& facts_;
  const GraphSpeeds& speeds_;
  const costs::Constants& constants_;
  costs::Generation generation_;
  std::size_t column_;
  costs::Link link_;
};

}  // namespace

GraphSpeeds speedsOf(const AgreedGraphs& agreed) {
  const GraphSpeed tree = speedOf(agreed.of(GraphId::Tree));
  return {.ring = speedOf(agreed.of(GraphId::Ring)),
          .tree = tree,
          .pat = tree,
          .collNetChain = speedOf(agreed.of(GraphId::CollNetChain)),
          .collNetDirect = speedOf(agreed.of(GraphId::CollNetDirect)),
          .nvls = speedOf(agreed.of(GraphId::Nvls))};
}

double mostLlBandwidth(const CostFacts& facts, const costs::Constants& constants) {
  const costs::Generation generation = costs::generationOf(facts.computeCapability);
  // Between nodes it is the CPU that sets the pace.
  const costs::Generation row = facts.nNodes == 1 ? generation : facts.amdOrMixedCpus ? costs::kAmpere : costs::kVolta;
  return constants.llMost[row][costs::columnOf(facts.nNodes)];
}

CostTable costTable(const CostFacts& facts, const GraphSpeeds& speeds, const costs::Constants& constants) {
  const Costs rows(facts, speeds, constants);
  CostTable table{};
  for (std::size_t p = 0; p < kCostProtocols; ++p) {
    const auto protocol = static_cast<CostProtocol>(p);
    table[static_cast<std::size_t>(CostAlgorithm::Tree)][p] = rows.tree(protocol);
    table[static_cast<std::size_t>(CostAlgorithm::Ring)][p] = rows.ring(protocol);
  }
  constexpr auto kSimple = static_cast<std::size_t>(CostProtocol::Simple);
  for (const CostAlgorithm algorithm : {CostAlgorithm::CollNetDirect, CostAlgorithm::CollNetChain, CostAlgorithm::Nvls,
                                        CostAlgorithm::NvlsTree, CostAlgorithm::Pat}) {
    table[static_cast<std::size_t>(algorithm)][kSimple] = rows.simple(algorithm);
  }
  return table;
}

}  // namespace tutti::topo
