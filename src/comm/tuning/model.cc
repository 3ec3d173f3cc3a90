#include "comm/tuning/model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "comm/tuning/costs.h"
#include "device/kernels/kernel_name.h"

namespace tutti {

namespace {

using device::Algorithm;
using device::Func;
using device::Protocol;

/// Times a rank passes something on, one after another.
double stepsOf(Func func, double n) {
  switch (func) {
    case Func::AllReduce: return 2 * (n - 1);
    case Func::AllGather:
    case Func::ReduceScatter: return n - 1;
    case Func::Broadcast:
    case Func::Reduce:
    case Func::SendRecv: break;
  }
  return n;
}

/// Whether there is such a thing at all; algorithms that need hardware tutti has no code for are not.
bool combinationExists(Func func, Algorithm algorithm, Protocol protocol) {
  const bool blocks = func == Func::AllGather || func == Func::ReduceScatter;
  switch (algorithm) {
    case Algorithm::Ring: return true;
    case Algorithm::Tree: return func == Func::AllReduce;
    case Algorithm::Pat: return blocks && protocol == Protocol::Simple;
    case Algorithm::OneShot: return func == Func::AllReduce && protocol != Protocol::LL128;
    case Algorithm::Direct: return (func == Func::AllReduce || blocks) && protocol != Protocol::LL128;
    case Algorithm::CollNetDirect:
    case Algorithm::CollNetChain:
    case Algorithm::Nvls:
    case Algorithm::NvlsTree: break;
  }
  return false;
}

static_assert(kCostProtocols == device::kProtocols);
static_assert(static_cast<int>(CostAlgorithm::Pat) == static_cast<int>(Algorithm::Pat));

CostFacts costFactsOf(const TuningInput& input) {
  return {.nRanks = input.ranks.nRanks,
          .nNodes = input.ranks.nNodes,
          .computeCapability = input.ranks.computeCapability,
          .nvlink = input.ranks.path == PathClass::NVLink,
          .amdOrMixedCpus = input.ranks.amdOrMixedCpus,
          .nChannels = static_cast<int>(input.nChannels)};
}

/// The model for GPUs, after NCCL's published one: what a hop costs comes from the graphs (topo/channels/costs.h), how many hops
/// an operation makes is counted here. Times of direct algorithms are tutti's own.
class GpuModel {
 public:
  explicit GpuModel(const TuningInput& input)
      : in_(input), facts_(costFactsOf(input)),
        table_(costTable(facts_, {.ring = input.speeds.ring, .tree = input.speeds.tree, .pat = input.speeds.pat})),
        n_(input.ranks.nRanks), m_(input.ranks.nNodes) {}

  Cost cost(Func func, Algorithm algorithm, Protocol protocol) const {
    if (isMesh(algorithm)) return mesh(func, algorithm, protocol);
    const HopCost& hop = table_[static_cast<std::size_t>(algorithm)][static_cast<std::size_t>(protocol)];
    if (algorithm == Algorithm::Ring) return ring(func, protocol, hop);
    return algorithm == Algorithm::Tree ? tree(hop) : pat(hop);
  }

 private:
  Cost ring(Func func, Protocol protocol, const HopCost& hop) const {
    const double steps = stepsOf(func, n_);
    const double between = m_ == 1 ? 0 : func == Func::AllReduce ? 2 * (m_ - 1) : m_ - 1;
    const double post = in_.ranks.amdOrMixedCpus ? 2.0 : 1.0;
    const double overhead = m_ == 1 ? 0 : post * (protocol == Protocol::Simple ? 3 : 1);
    const double latency = hop.base + (steps - between) * std::max(hop.intra, overhead) + between * hop.inter;
    return {latency, hop.bandwidth * n_ / steps};
  }

  Cost tree(const HopCost& hop) const {
    const double latency = hop.base + 2 * ((n_ / m_ - 1) * hop.intra + std::log2(m_) * hop.inter);
    return {latency, hop.bandwidth * 0.5};
  }

  Cost pat(const HopCost& hop) const {
    const double hops = m_ == 1 ? std::log2(n_) * hop.intra : std::log2(m_) * hop.inter / 3.5;
    return {hop.base + hops + 2.8 * n_, hop.bandwidth};
  }

  Cost mesh(Func func, Algorithm algorithm, Protocol protocol) const {
    const auto p = static_cast<std::size_t>(protocol);
    const auto link = facts_.nvlink ? costs::kNvlink : costs::kPci;
    const double most = mostLlBandwidth(facts_);
    const double total = protocol == Protocol::LL ? std::min(most, in_.speeds.mesh * 0.5) : in_.speeds.mesh;
    const bool twice = algorithm == Algorithm::Direct && func == Func::AllReduce;
    const double shots = twice ? 2 : 1;
    const double latency = costs::kRingBase[p] + shots * (costs::kRingHop[link][p] + (n_ - 1) * costs::kMeshPeer);
    const double sent = algorithm == Algorithm::OneShot ? n_ - 1 : shots * (n_ - 1) / n_;
    return {latency, total / sent};
  }

  const TuningInput& in_;
  CostFacts facts_;
  CostTable table_;
  double n_;
  double m_;
};

/// The software GPU: hops cost switches between threads, bytes cost reads and writes of memory.
class HostModel {
 public:
  explicit HostModel(const TuningInput& input) : n_(input.ranks.nRanks), m_(input.ranks.nNodes) {}

  Cost cost(Func func, Algorithm algorithm, Protocol protocol) const {
    const auto p = static_cast<std::size_t>(protocol);
    const costs::HostCost& c = isMesh(algorithm) ? costs::kHostMesh[p] : costs::kHostGraph[p];
    const double shots = isMesh(algorithm) ? hops(func, algorithm) : 0;
    const double touched = protocol == Protocol::Simple ? pulledTouches(func, algorithm) : touches(func, algorithm);
    return {c.base + hops(func, algorithm) * c.hop + shots * (n_ - 1) * c.peer, c.touch / touched};
  }

 private:
  double hops(Func func, Algorithm algorithm) const {
    switch (algorithm) {
      case Algorithm::Tree: return 2 * ((n_ / m_ - 1) + std::ceil(std::log2(m_)));
      case Algorithm::Pat: return std::ceil(std::log2(n_));
      case Algorithm::OneShot: return 1;
      case Algorithm::Direct: return func == Func::AllReduce ? 2 : 1;
      case Algorithm::Ring:
      case Algorithm::CollNetDirect:
      case Algorithm::CollNetChain:
      case Algorithm::Nvls:
      case Algorithm::NvlsTree: break;
    }
    return stepsOf(func, n_);
  }

  /// How often a rank reads or writes memory per byte of the operation: counted in the algorithms' verbs (a send reads
  /// and writes, recvReduceSend reads twice and writes, …).
  double touches(Func func, Algorithm algorithm) const {
    if (algorithm == Algorithm::Tree) return 6;
    if (algorithm == Algorithm::OneShot) return 3 * n_ - 1;
    if (algorithm == Algorithm::Pat) return (4 * n_ - 4) / n_;
    switch (func) {
      case Func::AllReduce: return (6 * n_ - 4) / n_;
      case Func::ReduceScatter: return (3 * n_ - 1) / n_;
      case Func::AllGather: return (3 * n_ - 2) / n_;
      case Func::Broadcast:
      case Func::Reduce:
      case Func::SendRecv: break;
    }
    return 3;
  }

  /// The same where receivers read the senders' buffers (docs/protocols.md): nothing is copied into slots but partial
  /// sums on their way round a ring, and what trees and PAT carry.
  double pulledTouches(Func func, Algorithm algorithm) const {
    if (algorithm == Algorithm::Tree || algorithm == Algorithm::Pat) return touches(func, algorithm);
    if (algorithm == Algorithm::OneShot) return 2 * n_;   // n + 1 out of place, 3 n - 1 in place, which pushes
    const bool direct = algorithm == Algorithm::Direct;
    switch (func) {
      case Func::AllReduce: return (direct ? 3 * n_ - 1 : 5 * n_ - 5) / n_;
      case Func::ReduceScatter: return (direct ? n_ + 1 : 3 * n_ - 3) / n_;
      case Func::AllGather:
      case Func::Broadcast:
      case Func::Reduce:
      case Func::SendRecv: break;
    }
    return 2;
  }

  double n_;
  double m_;
};

bool connected(const TuningInput& input, Algorithm algorithm) {
  const Speeds& speeds = input.speeds;
  const auto usable = [&](const GraphSpeed& graph) {
    return graph.connected() && (input.ranks.nNodes == 1 || graph.inter > 0);
  };
  if (isMesh(algorithm)) return speeds.mesh > 0;
  if (algorithm == Algorithm::Tree) return usable(speeds.tree);
  return usable(algorithm == Algorithm::Pat ? speeds.pat : speeds.ring);
}

/// Ranks that an algorithm's kernels can keep in view: those of direct ones in shared memory, a block of each in one of
/// PAT's slots.
int mostRanks(Algorithm algorithm, std::uint32_t slotBytes) {
  constexpr std::uint32_t kPatBlock = 16;
  if (isMesh(algorithm)) return device::kMaxDirectRanks;
  return algorithm == Algorithm::Pat ? static_cast<int>(slotBytes / kPatBlock) : std::numeric_limits<int>::max();
}

Verdict verdictOf(const TuningInput& input, Func func, Algorithm algorithm, Protocol protocol) {
  const auto f = static_cast<std::size_t>(func);
  const auto p = static_cast<std::size_t>(protocol);
  if (!combinationExists(func, algorithm, protocol)) return Verdict::NoKernel;
  const Permission algorithmAllowed = input.filter.algorithms[f][static_cast<std::size_t>(algorithm)];
  const Permission protocolAllowed = input.filter.protocols[f][p];
  if (algorithmAllowed == Permission::No || protocolAllowed == Permission::No) return Verdict::NotAllowed;
  if (!connected(input, algorithm)) return Verdict::NoConnections;
  const auto kind = static_cast<std::size_t>(isMesh(algorithm) ? device::ConnKind::Mesh : device::ConnKind::Graph);
  if (input.slotBytes[kind][p] == 0) return Verdict::NoBuffers;
  if (input.ranks.nRanks > mostRanks(algorithm, input.slotBytes[kind][p])) return Verdict::TooManyRanks;
  // PAT saves network steps at the price of more copies: between ranks of one node it only costs.
  const bool patPays = input.ranks.nNodes == input.ranks.nRanks && input.ranks.computeCapability >= 60;
  if (algorithm == Algorithm::Pat && algorithmAllowed == Permission::Auto && !patPays) return Verdict::NotAllowed;
  const bool safe = protocol != Protocol::LL128 || protocolAllowed == Permission::Yes || input.ranks.ll128Safe;
  return safe ? Verdict::Possible : Verdict::Unsafe;
}

}  // namespace

Tuning makeTuning(TuningInput input) {
  Tuning tuning;
  tuning.input = std::move(input);
  const TuningInput& in = tuning.input;
  const GpuModel gpu(in);
  const HostModel host(in);
  for (std::size_t f = 0; f < kTunedFuncs; ++f) {
    for (std::size_t a = 0; a < device::kAlgorithms; ++a) {
      for (std::size_t p = 0; p < device::kProtocols; ++p) {
        const auto func = static_cast<Func>(f);
        const auto algorithm = static_cast<Algorithm>(a);
        const auto protocol = static_cast<Protocol>(p);
        const Verdict verdict = verdictOf(in, func, algorithm, protocol);
        tuning.verdicts[f][a][p] = verdict;
        if (verdict == Verdict::NoKernel || verdict == Verdict::NoConnections || in.ranks.nRanks < 2) continue;
        const bool onHost = in.policy.world == device::World::Host;
        tuning.costs[f][a][p] = onHost ? host.cost(func, algorithm, protocol) : gpu.cost(func, algorithm, protocol);
      }
    }
  }
  return tuning;
}

Speeds assumedSpeeds(const RankFacts& ranks, unsigned nChannels, bool meshed) {
  const costs::Generation generation = costs::generationOf(ranks.computeCapability);
  const bool nvlink = ranks.path == PathClass::NVLink;
  const double total = nvlink ? costs::kNvlinkTotal[generation] : costs::kPciTotal[generation];
  const double channels = std::max(nChannels, 1U);
  GraphSpeed graph;
  graph.intra = std::min(total / channels, costs::kPerBlock[generation]);
  if (ranks.nNodes > 1) graph.inter = std::min(graph.intra, costs::kNetworkTotal / channels);
  const double share = nvlink ? costs::kMeshNvlinkShare : costs::kMeshPciShare;
  return {.ring = graph, .tree = graph, .pat = graph, .mesh = meshed ? total * share : 0};
}

Speeds knownSpeeds(const RankFacts& ranks, const GraphSpeeds& graphs, unsigned nChannels, bool meshed) {
  Speeds speeds{.ring = graphs.ring, .tree = graphs.tree, .pat = graphs.pat};
  // A search that found no way to a NIC says so, but nodes may still be joined.
  for (GraphSpeed* graph : {&speeds.ring, &speeds.tree, &speeds.pat}) {
    if (ranks.nNodes > 1 && graph->inter <= 0) graph->inter = costs::kUnknownNetwork;
  }
  const double share = ranks.path == PathClass::NVLink ? costs::kMeshNvlinkShare : costs::kMeshPciShare;
  if (meshed) speeds.mesh = speeds.ring.intra * speeds.ring.lanes(nChannels) * share;
  return speeds;
}

bool ll128IsSafe(const RankFacts& ranks, int highestComputeCapability, bool netKeepsOrder) {
  if (ranks.path != PathClass::NVLink || ranks.computeCapability < 70) return false;
  if (ranks.computeCapability != highestComputeCapability && ranks.computeCapability < 90) return false;
  return ranks.nNodes == 1 || netKeepsOrder;
}

}  // namespace tutti
