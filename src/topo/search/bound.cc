#include "topo/search/bound.h"

#include <algorithm>
#include <map>

namespace tutti::topo {

namespace {

constexpr double kUnlimited = 1e9;
/// With more GPUs than this, cuts around single GPUs and around all NICs are all that is computed.
constexpr int kFlowGpus = 16;

/// The links that ways of the model use, with a source before the NICs and a sink behind them.
class MachineFlow {
 public:
  MachineFlow(const SearchModel& model, bool collectiveOnly);
  double between(int gpuA, int gpuB) { return network_.maxFlow(model_.gpuNode(gpuA), model_.gpuNode(gpuB)); }
  double intoGpu(int gpu) { return network_.maxFlow(source(), model_.gpuNode(gpu)); }
  double outOfGpu(int gpu) { return network_.maxFlow(model_.gpuNode(gpu), sink()); }
  /// The smaller of what NICs can bring to any GPUs, and take from them.
  double throughNets();
  /// The links into or out of a GPU's device (its own, if it shares it), added up: all of them, or those that lead to
  /// GPUs.
  double around(int gpu, bool outwards) const { return around(gpu, outwards, all_); }
  double aroundToGpus(int gpu, bool outwards) const { return around(gpu, outwards, hops_); }

 private:
  int source() const { return model_.machine().nodeCount(); }
  int sink() const { return source() + 1; }
  int gpus() const { return source() + 2; }
  void addNets(bool collectiveOnly);
  void lowerCapacities();
  double around(int gpu, bool outwards, const std::vector<double>& capacities) const;

  const SearchModel& model_;
  std::vector<double> all_;   ///< of each link: what flows over it at most, with what ways make it cost; 0: unused
  std::vector<double> hops_;  ///< likewise if only hops between GPUs use it
  FlowNetwork network_;
};

MachineFlow::MachineFlow(const SearchModel& model, bool collectiveOnly)
    : model_(model),
      all_(static_cast<std::size_t>(model.machine().linkCount())),
      hops_(all_.size()),
      network_(model.machine().nodeCount() + 3 + 2 * model.netCount()) {
  lowerCapacities();
  const Machine& machine = model.machine();
  for (int l = 0; l < machine.linkCount(); ++l) {
    const Link& link = machine.link(l);
    const double capacity = all_[static_cast<std::size_t>(l)];
    if (capacity > 0) network_.addEdge(link.from, link.to, capacity);
    if (isViewOfDevice(machine, link)) network_.addEdge(link.from, link.to, kUnlimited);
  }
  addNets(collectiveOnly);
}

/// Where every way that uses a link takes more than one GB/s of it for each GB/s, less flows over it.
void MachineFlow::lowerCapacities() {
  const auto raise = [&](const SearchWay& way, std::vector<double>& capacities) {
    for (const ResourceUse& use : model_.uses(way)) {
      const int link = model_.linkOf(use.resource);
      if (link < 0) continue;
      const double capacity =
          static_cast<double>(model_.capacities()[static_cast<std::size_t>(use.resource)]) / std::max(use.factor, 1.0f);
      double& highest = capacities[static_cast<std::size_t>(link)];
      highest = std::max(highest, capacity);
    }
  };
  for (int a = 0; a < model_.gpuCount(); ++a) {
    for (int b = 0; b < model_.gpuCount(); ++b) {
      if (a != b) raise(model_.hop(a, b), hops_);
    }
  }
  all_ = hops_;
  for (int gpu = 0; gpu < model_.gpuCount(); ++gpu) {
    for (int net = 0; net < model_.netCount(); ++net) {
      raise(model_.entry(net, gpu), all_);
      raise(model_.exit(gpu, net), all_);
    }
  }
}

void MachineFlow::addNets(bool collectiveOnly) {
  std::map<int, int> doorsOfPort;
  int next = gpus() + 1;
  for (int net = 0; net < model_.netCount(); ++net) {
    const int node = model_.netNode(net);
    if (collectiveOnly && !model_.machine().facts<NetFacts>(node).collective) continue;
    const int port = model_.portOf(net);
    if (port < 0) {
      network_.addEdge(source(), node, kUnlimited);
      network_.addEdge(node, sink(), kUnlimited);
      continue;
    }
    const auto [end, isNew] = doorsOfPort.try_emplace(port, next);
    if (isNew) {
      const double speed = model_.capacities()[static_cast<std::size_t>(port)];
      network_.addEdge(source(), next, speed);
      network_.addEdge(next + 1, sink(), speed);
      next += 2;
    }
    network_.addEdge(end->second, node, kUnlimited);
    network_.addEdge(node, end->second + 1, kUnlimited);
  }
}

double MachineFlow::throughNets() {
  FlowNetwork in = network_;
  FlowNetwork out = network_;
  for (int g = 0; g < model_.gpuCount(); ++g) {
    in.addEdge(model_.gpuNode(g), gpus(), kUnlimited);
    out.addEdge(gpus(), model_.gpuNode(g), kUnlimited);
  }
  return std::min(in.maxFlow(source(), gpus()), out.maxFlow(gpus(), sink()));
}

double MachineFlow::around(int gpu, bool outwards, const std::vector<double>& capacities) const {
  const Machine& machine = model_.machine();
  const int device = machine.facts<GpuFacts>(model_.gpuNode(gpu)).device;
  const int node = device < 0 || isShared(machine, device) ? model_.gpuNode(gpu) : device;
  double sum = 0;
  for (std::size_t l = 0; l < capacities.size(); ++l) {
    const Link& link = machine.link(static_cast<int>(l));
    if ((outwards ? link.from : link.to) == node) sum += capacities[l];
  }
  return sum > 0 ? sum : kUnlimited;
}

/// A cycle passes every cut between two GPUs in both directions.
double cycleBound(const SearchModel& model, MachineFlow& flow) {
  double bound = kUnlimited;
  for (int g = 0; g < model.gpuCount(); ++g) {
    bound = std::min({bound, flow.around(g, true), flow.around(g, false)});
    if (g == 0 || model.gpuCount() > kFlowGpus) continue;
    bound = std::min({bound, flow.between(0, g), flow.between(g, 0)});
  }
  return bound;
}

/// A chain leaves all GPUs but one towards GPUs, and enters all but one from GPUs.
double hopsBound(const SearchModel& model, const MachineFlow& flow) {
  const int n = model.gpuCount();
  if (n < 2) return kUnlimited;
  double out = 0;
  double in = 0;
  for (int g = 0; g < n; ++g) {
    out += flow.aroundToGpus(g, true);
    in += flow.aroundToGpus(g, false);
  }
  return std::min(in, out) / (n - 1);
}

/// A chain also passes between any two GPUs in one direction.
double chainBound(const SearchModel& model, MachineFlow& flow) {
  double bound = hopsBound(model, flow);
  for (int g = 1; g < model.gpuCount() && model.gpuCount() <= kFlowGpus; ++g) {
    bound = std::min(bound, flow.between(0, g) + flow.between(g, 0));
  }
  return bound;
}

/// A ring over several machines comes from the NICs to every GPU, and gets from it to the NICs.
double passBound(const SearchModel& model, MachineFlow& flow) {
  double bound = std::min(flow.throughNets(), hopsBound(model, flow));
  for (int g = 0; g < model.gpuCount(); ++g) {
    bound = std::min({bound, flow.around(g, true), flow.around(g, false)});
    if (model.gpuCount() <= kFlowGpus) bound = std::min({bound, flow.intoGpu(g), flow.outOfGpu(g)});
  }
  return bound;
}

}  // namespace

void FlowNetwork::addEdge(int from, int to, double capacity) {
  edgesOf_[static_cast<std::size_t>(from)].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({to, capacity, capacity});
  edgesOf_[static_cast<std::size_t>(to)].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({from, 0, 0});
}

double FlowNetwork::maxFlow(int from, int to) {
  for (Edge& edge : edges_) edge.left = edge.capacity;
  double flow = 0;
  while (layer(from, to)) {
    next_.assign(edgesOf_.size(), 0);
    for (double more = push(from, to, kUnlimited); more > 1e-6; more = push(from, to, kUnlimited)) flow += more;
  }
  return flow;
}

/// Distances from `from` over edges with something left, by breadth-first search.
bool FlowNetwork::layer(int from, int to) {
  depth_.assign(edgesOf_.size(), -1);
  depth_[static_cast<std::size_t>(from)] = 0;
  std::vector<int> queue{from};
  for (std::size_t head = 0; head < queue.size(); ++head) {
    for (int e : edgesOf_[static_cast<std::size_t>(queue[head])]) {
      const Edge& edge = edges_[static_cast<std::size_t>(e)];
      int& depth = depth_[static_cast<std::size_t>(edge.to)];
      if (depth >= 0 || edge.left <= 1e-6) continue;
      depth = depth_[static_cast<std::size_t>(queue[head])] + 1;
      queue.push_back(edge.to);
    }
  }
  return depth_[static_cast<std::size_t>(to)] >= 0;
}

/// Sends up to `amount` from `node` along the layers; recursion is as deep as the network has layers.
double FlowNetwork::push(int node, int to, double amount) {
  if (node == to) return amount;
  const auto& edges = edgesOf_[static_cast<std::size_t>(node)];
  for (std::size_t& i = next_[static_cast<std::size_t>(node)]; i < edges.size(); ++i) {
    const auto e = static_cast<std::size_t>(edges[i]);
    const bool further = depth_[static_cast<std::size_t>(edges_[e].to)] == depth_[static_cast<std::size_t>(node)] + 1;
    if (!further || edges_[e].left <= 1e-6) continue;
    const double sent = push(edges_[e].to, to, std::min(amount, edges_[e].left));
    if (sent <= 1e-6) continue;
    edges_[e].left -= sent;
    edges_[e ^ 1].left += sent;
    return sent;
  }
  return 0;
}

float headBound(const SearchModel& model, Pattern pattern, int heads, bool collectiveOnly) {
  MachineFlow flow(model, collectiveOnly);
  const int n = model.gpuCount();
  double sum = 0;
  double least = kUnlimited;
  for (int g = 0; g < n; ++g) {
    const double around = std::min(flow.around(g, true), flow.around(g, false));
    sum += around;
    least = std::min(least, around);
  }
  // NVLS: every GPU carries each channel once, the heads theirs once more. Direct: every channel passes two GPUs.
  double bound = pattern == Pattern::Nvls ? std::min(least, sum * heads / (n * heads + heads)) : sum / 2;
  if (model.interNode()) bound = std::min(bound, flow.throughNets());
  return static_cast<float>(bound);
}

ChannelCuts channelCuts(const SearchModel& model, bool isRing, bool collectiveOnly) {
  MachineFlow flow(model, collectiveOnly);
  ChannelCuts cuts{kUnlimited, kUnlimited};
  if (model.interNode()) {
    cuts.whole = isRing ? passBound(model, flow) : flow.throughNets();
    if (!isRing) cuts.inside = chainBound(model, flow);
  } else if (model.gpuCount() > 1) {
    cuts.whole = isRing ? cycleBound(model, flow) : chainBound(model, flow);
  }
  return cuts;
}

float ChannelCuts::bound(float inProportion) const {
  constexpr double kAlone = 5000;  // what nothing limits: machineBandwidth says that of a GPU to itself
  const double bound = std::min(whole, inside / inProportion);
  return static_cast<float>(bound < kUnlimited / 100 ? bound : kAlone);
}

float channelBound(const SearchModel& model, Pattern pattern, bool collectiveOnly, float inside) {
  return channelCuts(model, pattern == Pattern::Ring, collectiveOnly).bound(inside);
}

}  // namespace tutti::topo
