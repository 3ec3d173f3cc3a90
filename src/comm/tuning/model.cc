#include "comm/tuning/model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "comm/tuning/constants.h"
#include "comm/tuning/costs.h"
#include "device/kernels/kernel_name.h"
#include "topo/channels/costs.h"

namespace tutti::comm {

namespace {

/// Times a rank passes something on, one after another.
double stepsOf(device::Func func, double n) {
  switch (func) {
    case device::Func::AllReduce:
      return 2 * (n - 1);
    case device::Func::AllGather:
    case device::Func::ReduceScatter:
      return n - 1;
    case device::Func::Broadcast:
    case device::Func::Reduce:
    case device::Func::SendRecv:
      break;
  }
  return n;
}

/// Whether there is such a thing at all; algorithms that need hardware tutti has no code for are not.
bool combinationExists(device::Func func, device::Algorithm algorithm, device::Protocol protocol) {
  const bool blocks = func == device::Func::AllGather || func == device::Func::ReduceScatter;
  switch (algorithm) {
    case device::Algorithm::Ring:
      return true;
    case device::Algorithm::Tree:
      return func == device::Func::AllReduce;
    case device::Algorithm::Pat:
      return blocks && protocol == device::Protocol::Simple;
    case device::Algorithm::OneShot:
      return func == device::Func::AllReduce && protocol != device::Protocol::LL128;
    case device::Algorithm::Direct:
      return (func == device::Func::AllReduce || blocks) && protocol != device::Protocol::LL128;
    case device::Algorithm::CollNetDirect:
      return (func == device::Func::AllReduce || blocks) && protocol == device::Protocol::Simple;
    case device::Algorithm::CollNetChain:
      return func == device::Func::AllReduce && protocol == device::Protocol::Simple;
    case device::Algorithm::Nvls:
    case device::Algorithm::NvlsTree:
      break;
  }
  return false;
}

static_assert(topo::kCostProtocols == device::kProtocols);
static_assert(static_cast<int>(topo::CostAlgorithm::Pat) == static_cast<int>(device::Algorithm::Pat));

topo::CostFacts costFactsOf(const TuningInput& input) {
  return {.nRanks = input.ranks.nRanks,
          .nNodes = input.ranks.nNodes,
          .computeCapability = input.ranks.computeCapability,
          .nvlink = input.ranks.path == PathClass::NVLink,
          .amdOrMixedCpus = input.ranks.amdOrMixedCpus,
          .nChannels = static_cast<int>(input.nChannels)};
}

/// The model for GPUs, after NCCL's published one: what a hop costs comes from the graphs (topo/channels/costs.h), how
/// many hops an operation makes is counted here. Times of direct algorithms are tutti's own.
class GpuModel {
 public:
  explicit GpuModel(const TuningInput& input)
      : in_(input),
        facts_(costFactsOf(input)),
        table_(topo::costTable(facts_,
                               {.ring = input.speeds.ring,
                                .tree = input.speeds.tree,
                                .pat = input.speeds.pat,
                                .collNetChain = input.collNet.chainSpeed,
                                .collNetDirect = input.collNet.directSpeed},
                               constantsOf(input))),
        n_(input.ranks.nRanks),
        m_(input.ranks.nNodes) {}

  Cost cost(device::Func func, device::Algorithm algorithm, device::Protocol protocol) const {
    Cost cost = ofLinks(func, algorithm, protocol);
    if (func == device::Func::AllReduce && in_.ranks.mostOnOneDevice > 1) {
      cost.bandwidth = std::min(cost.bandwidth, ofSharedMemory(algorithm));
    }
    return cost;
  }

 private:
  Cost ofLinks(device::Func func, device::Algorithm algorithm, device::Protocol protocol) const {
    if (isMesh(algorithm)) return mesh(func, algorithm, protocol);
    const topo::HopCost& hop = table_[static_cast<std::size_t>(algorithm)][static_cast<std::size_t>(protocol)];
    if (algorithm == device::Algorithm::Ring) return ring(func, protocol, hop);
    if (isCollNet(algorithm)) return collNet(func, algorithm, hop);
    return algorithm == device::Algorithm::Tree ? tree(hop) : pat(hop);
  }

  /// The bandwidth of an AllReduce whose ranks wait for the memory that they share: how often each byte of a rank's
  /// vector is read or written there, in input, output and slots. One shot reads the input, writes n - 1 slots, reads
  /// them and the input again, and writes the output. A ring and two shots come to (6n - 4)/n; nothing else takes less.
  double ofSharedMemory(device::Algorithm algorithm) const {
    const double touches = algorithm == device::Algorithm::OneShot ? 2 * n_ + 1 : 6 - 4 / n_;
    const auto generation = topo::costs::generationOf(in_.ranks.computeCapability);
    return costs::kDeviceMemory[generation] / (in_.ranks.mostOnOneDevice * touches);
  }

  Cost ring(device::Func func, device::Protocol protocol, const topo::HopCost& hop) const {
    const double steps = stepsOf(func, n_);
    const double between = m_ == 1 ? 0 : func == device::Func::AllReduce ? 2 * (m_ - 1) : m_ - 1;
    const double post = in_.ranks.amdOrMixedCpus ? 2.0 : 1.0;
    const double overhead = m_ == 1 ? 0 : post * (protocol == device::Protocol::Simple ? 3 : 1);
    const double latency = hop.base + (steps - between) * std::max(hop.intra, overhead) + between * hop.inter;
    return {latency, hop.bandwidth * n_ / steps};
  }

  Cost tree(const topo::HopCost& hop) const {
    const double latency = hop.base + 2 * ((n_ / m_ - 1) * hop.intra + std::log2(m_) * hop.inter);
    return {latency, hop.bandwidth * 0.5};
  }

  /// docs/tuning.md, "CollNet".
  Cost collNet(device::Func func, device::Algorithm algorithm, const topo::HopCost& hop) const {
    constexpr double kPeer = 0.4;
    const double others = in_.collNet.mostLocals - 1;
    if (algorithm == device::Algorithm::CollNetChain) {
      return {hop.base + 2 * others * hop.intra + hop.inter, hop.bandwidth};
    }
    const double latency = hop.base + 2 * (std::min(1.0, others) * hop.intra + others * kPeer) + hop.inter;
    if (func == device::Func::AllReduce) return {latency, hop.bandwidth};
    const topo::GraphSpeed& graph = in_.collNet.directSpeed;
    return {latency, in_.collNet.mostLocals * std::min(graph.intra, 0.9 * graph.inter)};
  }

  Cost pat(const topo::HopCost& hop) const {
    const double hops = m_ == 1 ? std::log2(n_) * hop.intra : std::log2(m_) * hop.inter / 3.5;
    return {hop.base + hops + 2.8 * n_, hop.bandwidth};
  }

  Cost mesh(device::Func func, device::Algorithm algorithm, device::Protocol protocol) const {
    const auto p = static_cast<std::size_t>(protocol);
    const auto link = facts_.nvlink ? topo::costs::kNvlink : topo::costs::kPci;
    const topo::costs::Constants& constants = constantsOf(in_);
    constexpr auto kRing = static_cast<std::size_t>(device::Algorithm::Ring);
    const double most = topo::mostLlBandwidth(facts_, constants);
    const double total = protocol == device::Protocol::LL ? std::min(most, in_.speeds.mesh * 0.5) : in_.speeds.mesh;
    const bool twice = algorithm == device::Algorithm::Direct && func == device::Func::AllReduce;
    const double shots = twice ? 2 : 1;
    const double latency = constants.base[kRing][p] + costs::kMeshOpen +
                           shots * (constants.hop[link][kRing][p] + (n_ - 1) * costs::kMeshPeer);
    const double sent = algorithm == device::Algorithm::OneShot ? n_ - 1 : shots * (n_ - 1) / n_;
    return {latency, total / sent};
  }

  const TuningInput& in_;
  topo::CostFacts facts_;
  topo::CostTable table_;
  double n_;
  double m_;
};

/// The software GPU: hops cost switches between threads, bytes cost reads and writes of memory.
class HostModel {
 public:
  explicit HostModel(const TuningInput& input)
      : constants_(constantsOf(input)),
        n_(input.ranks.nRanks),
        m_(input.ranks.nNodes),
        locals_(input.collNet.mostLocals),
        heads_(input.collNet.heads) {}

  Cost cost(device::Func func, device::Algorithm algorithm, device::Protocol protocol) const {
    const auto p = static_cast<std::size_t>(protocol);
    const costs::HostCost& c = isMesh(algorithm) ? costs::kHostMesh[p] : costs::kHostGraph[p];
    // tutti's own algorithms are in no plugin's table: their latencies are a ring's.
    const auto row = static_cast<std::size_t>(isMesh(algorithm) ? device::Algorithm::Ring : algorithm);
    const double base = constants_.base[row][p];
    const double hop = constants_.hop[topo::costs::kPci][row][p];
    const double shots = isMesh(algorithm) ? hops(func, algorithm) : 0;
    const double touched =
        protocol == device::Protocol::Simple ? pulledTouches(func, algorithm) : touches(func, algorithm);
    return {base + hops(func, algorithm) * hop + shots * (n_ - 1) * c.peer, c.touch / touched};
  }

 private:
  double hops(device::Func func, device::Algorithm algorithm) const {
    switch (algorithm) {
      case device::Algorithm::Tree:
        return 2 * ((n_ / m_ - 1) + std::ceil(std::log2(m_)));
      case device::Algorithm::Pat:
        return std::ceil(std::log2(n_));
      case device::Algorithm::OneShot:
        return 1;
      case device::Algorithm::Direct:
        return func == device::Func::AllReduce ? 2 : 1;
      case device::Algorithm::CollNetDirect:
        return 1 + (locals_ > 1 ? 2 : 0);
      case device::Algorithm::CollNetChain:
        return 1 + 2 * (locals_ - 1);
      case device::Algorithm::Ring:
      case device::Algorithm::Nvls:
      case device::Algorithm::NvlsTree:
        break;
    }
    return stepsOf(func, n_);
  }

  /// How often a rank reads or writes memory per byte of the operation: counted in the algorithms' verbs (a send reads
  /// and writes, recvReduceSend reads twice and writes, …).
  double touches(device::Func func, device::Algorithm algorithm) const {
    if (algorithm == device::Algorithm::Tree || algorithm == device::Algorithm::CollNetChain) return 6;
    // Its own share of a head: what the ranks of the node send and get, and what goes to and comes from the network.
    if (algorithm == device::Algorithm::CollNetDirect) return 4 + 4 / std::max(heads_, 1.0);
    if (algorithm == device::Algorithm::OneShot) return 3 * n_ - 1;
    if (algorithm == device::Algorithm::Pat) return (4 * n_ - 4) / n_;
    switch (func) {
      case device::Func::AllReduce:
        return (6 * n_ - 4) / n_;
      case device::Func::ReduceScatter:
        return (3 * n_ - 1) / n_;
      case device::Func::AllGather:
        return (3 * n_ - 2) / n_;
      case device::Func::Broadcast:
      case device::Func::Reduce:
      case device::Func::SendRecv:
        break;
    }
    return 3;
  }

  /// The same where receivers read the senders' buffers (docs/protocols.md): nothing is copied into slots but partial
  /// sums on their way round a ring, and what trees and PAT carry.
  double pulledTouches(device::Func func, device::Algorithm algorithm) const {
    const bool byTouches = algorithm == device::Algorithm::Tree || algorithm == device::Algorithm::Pat;
    if (byTouches || isCollNet(algorithm)) return touches(func, algorithm);
    if (algorithm == device::Algorithm::OneShot) return 2 * n_;  // n + 1 out of place, 3 n - 1 in place, which pushes
    const bool direct = algorithm == device::Algorithm::Direct;
    switch (func) {
      case device::Func::AllReduce:
        return (direct ? 3 * n_ - 1 : 5 * n_ - 5) / n_;
      case device::Func::ReduceScatter:
        return (direct ? n_ + 1 : 3 * n_ - 3) / n_;
      case device::Func::AllGather:
      case device::Func::Broadcast:
      case device::Func::Reduce:
      case device::Func::SendRecv:
        break;
    }
    return 2;
  }

  const topo::costs::Constants& constants_;
  double n_;
  double m_;
  double locals_;
  double heads_;
};

bool connected(const TuningInput& input, device::Algorithm algorithm) {
  const Speeds& speeds = input.speeds;
  const auto usable = [&](const topo::GraphSpeed& graph) {
    return graph.connected() && (input.ranks.nNodes == 1 || graph.inter > 0);
  };
  if (algorithm == device::Algorithm::CollNetDirect) return input.collNet.direct;
  if (algorithm == device::Algorithm::CollNetChain) return input.collNet.chain;
  if (isMesh(algorithm)) return speeds.mesh > 0;
  if (algorithm == device::Algorithm::Tree) return usable(speeds.tree);
  return usable(algorithm == device::Algorithm::Pat ? speeds.pat : speeds.ring);
}

/// Which types it takes only a call can tell.
bool doneByNetwork(const CollNetFacts& collNet, device::Func func) {
  if (func == device::Func::AllGather) return collNet.gathers;
  return func != device::Func::ReduceScatter || collNet.scatters;
}

/// Ranks that an algorithm's kernels can keep in view: those of direct ones in shared memory, a block of each in one of
/// PAT's slots.
int mostRanks(device::Algorithm algorithm, std::uint32_t slotBytes) {
  constexpr std::uint32_t kPatBlock = 16;
  if (isMesh(algorithm)) return device::kMaxDirectRanks;
  return algorithm == device::Algorithm::Pat ? static_cast<int>(slotBytes / kPatBlock)
                                             : std::numeric_limits<int>::max();
}

}  // namespace

Verdict verdictOf(const TuningInput& input, device::Func func, device::Algorithm algorithm, device::Protocol protocol,
                  const Selection& selection) {
  const auto f = static_cast<std::size_t>(func);
  const auto a = static_cast<std::size_t>(algorithm);
  const auto p = static_cast<std::size_t>(protocol);
  if (!combinationExists(func, algorithm, protocol)) return Verdict::NoKernel;
  if (selection.given() && !selection.allows(a, p)) return Verdict::NotAllowed;
  const auto permission = [](unsigned named, std::size_t index, Permission usual) {
    return (named >> index & 1U) != 0 ? Permission::Yes : usual;
  };
  const Permission algorithmAllowed = permission(selection.namedAlgorithms, a, input.filter.algorithms[f][a]);
  const Permission protocolAllowed = permission(selection.namedProtocols, p, input.filter.protocols[f][p]);
  if (algorithmAllowed == Permission::No || protocolAllowed == Permission::No) return Verdict::NotAllowed;
  if (!connected(input, algorithm)) return Verdict::NoConnections;
  if (isCollNet(algorithm)) return doneByNetwork(input.collNet, func) ? Verdict::Possible : Verdict::NotInNetwork;
  const auto kind = static_cast<std::size_t>(isMesh(algorithm) ? device::ConnKind::Mesh : device::ConnKind::Graph);
  if (input.slotBytes[kind][p] == 0) return Verdict::NoBuffers;
  if (input.ranks.nRanks > mostRanks(algorithm, input.slotBytes[kind][p])) return Verdict::TooManyRanks;
  // PAT saves network steps at the price of more copies: between ranks of one node it only costs.
  const bool patPays = input.ranks.nNodes == input.ranks.nRanks && input.ranks.computeCapability >= 60;
  if (algorithm == device::Algorithm::Pat && algorithmAllowed == Permission::Auto && !patPays)
    return Verdict::NotAllowed;
  const bool safe = protocol != device::Protocol::LL128 || protocolAllowed == Permission::Yes || input.ranks.ll128Safe;
  return safe ? Verdict::Possible : Verdict::Unsafe;
}

Tuning makeTuning(TuningInput input) {
  Tuning tuning;
  tuning.input = std::move(input);
  const TuningInput& in = tuning.input;
  const GpuModel gpu(in);
  const HostModel host(in);
  for (std::size_t f = 0; f < kTunedFuncs; ++f) {
    for (std::size_t a = 0; a < device::kAlgorithms; ++a) {
      for (std::size_t p = 0; p < device::kProtocols; ++p) {
        const auto func = static_cast<device::Func>(f);
        const auto algorithm = static_cast<device::Algorithm>(a);
        const auto protocol = static_cast<device::Protocol>(p);
        const Verdict verdict = verdictOf(in, func, algorithm, protocol, {});
        tuning.verdicts[f][a][p] = verdict;
        if (verdict == Verdict::NoKernel || verdict == Verdict::NoConnections || in.ranks.nRanks < 2) continue;
        const bool onHost = in.policy.world == device::World::Host;
        tuning.costs[f][a][p] = onHost ? host.cost(func, algorithm, protocol) : gpu.cost(func, algorithm, protocol);
      }
    }
  }
  return tuning;
}

bool ll128IsSafe(const RankFacts& ranks, int highestComputeCapability, bool netKeepsOrder) {
  if (ranks.path != PathClass::NVLink || ranks.computeCapability < 70) return false;
  if (ranks.computeCapability != highestComputeCapability && ranks.computeCapability < 90) return false;
  return ranks.nNodes == 1 || netKeepsOrder;
}

}  // namespace tutti::comm
