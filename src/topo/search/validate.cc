#include "topo/search/validate.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "topo/search/validate_loads.h"

namespace tutti::topo {
namespace {

constexpr float kLastResort = 0.1001F;  ///< GB/s, all channels together

bool hasHeads(Pattern pattern) {
  return pattern == Pattern::Nvls || pattern == Pattern::CollNetDirect;
}

/// docs/topology.md, "Graph files": one GPU alone has no other pattern than a tree.
bool patternFits(GraphId id, Pattern pattern) {
  const bool tree = pattern == Pattern::Tree;
  switch (id) {
    case GraphId::Ring:
      return pattern == Pattern::Ring;
    case GraphId::Tree:
      return tree || pattern == Pattern::BalancedTree || pattern == Pattern::SplitTree;
    case GraphId::CollNetChain:
      return tree;
    case GraphId::CollNetDirect:
      return tree || pattern == Pattern::CollNetDirect;
    case GraphId::Nvls:
      return tree || pattern == Pattern::Nvls;
  }
  return false;
}

/// Rail ids where both have one, otherwise one and the same port.
bool sameRail(const Machine& machine, int a, int b) {
  const NetFacts& left = machine.facts<NetFacts>(a);
  const NetFacts& right = machine.facts<NetFacts>(b);
  if (a == b) return true;
  if (left.rail >= 0 && right.rail >= 0) return left.rail == right.rail;
  return left.guid == right.guid && left.port == right.port;
}

class Validator {
 public:
  Validator(const Machine& machine, const PathTable& paths, const Graph& graph, bool interNode)
      : machine_(machine), paths_(paths), graph_(graph), interNode_(interNode) {}

  std::vector<std::string> faults() {
    if (graph_.channels.empty() && (isCollNet(graph_.id) || graph_.id == GraphId::Nvls)) return {};
    checkNumbers();
    for (int channel = 0; channel < graph_.nChannels(); ++channel) checkChannel(channel);
    if (!faults_.empty()) return faults_;  // streams need channels that are well formed
    checkHeads();
    checkSameChannels();
    if (interNode_ && !withoutNetwork()) checkNics();
    checkLoads();
    return faults_;
  }

 private:
  void add(std::string sentence) { faults_.push_back(fmt::format("{}: {}", graphName(graph_.id), sentence)); }
  void addOf(int channel, const std::string& sentence) { add(fmt::format("channel {}: {}", channel, sentence)); }
  std::string name(int node) const { return nodeName(machine_, node); }
  const GraphChannel& at(int channel) const { return graph_.channels[static_cast<std::size_t>(channel)]; }

  /// What a search says that found no NIC to use.
  bool withoutNetwork() const {
    return graph_.bwInter == 0 && graph_.typeInter == PathType::Dis &&
           std::all_of(graph_.channels.begin(), graph_.channels.end(),
                       [](const GraphChannel& channel) { return channel.netIn < 0 && channel.netOut < 0; });
  }

  /// What a search says that found nothing: channels with hardly any bandwidth.
  bool lastResort() const { return static_cast<float>(graph_.nChannels()) * graph_.bwIntra <= kLastResort; }

  void checkNumbers() {
    if (graph_.channels.empty()) add("has no channels");
    if (graph_.nChannels() > kMostChannels) {
      add(fmt::format("has {} channels, more than {}", graph_.nChannels(), kMostChannels));
    }
    if (!(graph_.bwIntra > 0)) add(fmt::format("bandwidth inside the machine is {}", graph_.bwIntra));
    if (!patternFits(graph_.id, graph_.pattern)) {
      add(fmt::format("cannot have the pattern {}", patternName(graph_.pattern)));
    }
    if (graph_.pattern == Pattern::Nvls && machine_.nodes(NodeKind::NvSwitch).empty()) {
      add("needs an NVSwitch, and the machine has none");
    }
    if (interNode_ && !withoutNetwork() && !(graph_.bwInter > 0)) {
      add(fmt::format("bandwidth to the network is {}", graph_.bwInter));
    }
    if (interNode_ && withoutNetwork()) checkNoNicReached();
  }

  bool reach(int from, int to) const { return paths_.of(from, to).type < PathType::Net; }

  /// Whether a ring that comes in from a NIC at one GPU can leave at another (the same, if there is but one).
  bool leavesElsewhere(int in, int first) const {
    const auto gpus = machine_.nodes(NodeKind::Gpu);
    const int plane = machine_.facts<NetFacts>(in).plane;
    for (const int gpu : gpus) {
      if (gpu == first && gpus.size() > 1) continue;
      for (const int out : machine_.nodes(NodeKind::Net)) {
        const int other = machine_.facts<NetFacts>(out).plane;
        const bool meet = plane == other || plane < 0 || other < 0;
        if (meet && reach(gpu, out)) return true;
      }
    }
    return false;
  }

  /// A ring enters and leaves at different GPUs, so that one that reaches a NIC is not enough for it.
  void checkNoNicReached() {
    for (const int gpu : machine_.nodes(NodeKind::Gpu)) {
      for (const int net : machine_.nodes(NodeKind::Net)) {
        if (!reach(net, gpu)) continue;
        const bool leaves = graph_.pattern == Pattern::Ring ? leavesElsewhere(net, gpu) : reach(gpu, net);
        if (!leaves) continue;
        add(fmt::format("uses no NIC, though {} reaches {}", name(gpu), name(net)));
        return;
      }
    }
  }

  bool isA(int node, NodeKind kind) const {
    return node >= 0 && node < machine_.nodeCount() && machine_.node(node).kind() == kind;
  }

  void checkChannel(int channel) {
    std::set<int> seen;
    for (const int gpu : at(channel).gpus) {
      if (!isA(gpu, NodeKind::Gpu)) {
        addOf(channel, fmt::format("node {} is not a GPU of the machine", gpu));
      } else if (!seen.insert(gpu).second) {
        addOf(channel, fmt::format("{} stands twice, which closes a circle", name(gpu)));
      }
    }
    for (const int gpu : machine_.nodes(NodeKind::Gpu)) {
      if (!seen.contains(gpu)) addOf(channel, fmt::format("{} is missing", name(gpu)));
    }
    for (const int net : {at(channel).netIn, at(channel).netOut}) checkNet(channel, net);
  }

  void checkNet(int channel, int net) {
    if (!interNode_) {
      if (net >= 0) addOf(channel, fmt::format("uses NIC {} on a single machine", net));
    } else if (net < 0 ? !withoutNetwork() : !isA(net, NodeKind::Net)) {
      addOf(channel, fmt::format("node {} is not a NIC of the machine", net));
    }
  }

  void checkHeads() {
    if (!hasHeads(graph_.pattern)) return;
    std::set<int> heads;
    for (int channel = 0; channel < graph_.nChannels(); ++channel) {
      const int head = at(channel).gpus.front();
      if (!heads.insert(head).second) addOf(channel, fmt::format("its head {} is another channel's, too", name(head)));
    }
  }

  void checkSameChannels() {
    if (!graph_.sameChannels || hasHeads(graph_.pattern)) return;
    for (int channel = 1; channel < graph_.nChannels(); ++channel) {
      if (at(channel).gpus != at(0).gpus)
        addOf(channel, "has another order than channel 0, and all are called the same");
    }
  }

  void checkNics() {
    for (int channel = 0; channel < graph_.nChannels(); ++channel) checkNicsOf(channel);
    for (const std::string& fault : overloadedNics(machine_, graph_)) add(fault);
  }

  void checkNicsOf(int channel) {
    const int in = at(channel).netIn;
    const int out = at(channel).netOut;
    const std::string both = fmt::format("receives through {} and sends through {}", name(in), name(out));
    const NetFacts& left = machine_.facts<NetFacts>(in);
    const NetFacts& right = machine_.facts<NetFacts>(out);
    if (left.plane >= 0 && right.plane >= 0 && left.plane != right.plane) addOf(channel, both + ", of another plane");
    if (graph_.pattern == Pattern::Tree && in != out) addOf(channel, both + ", a tree's must be one");
    if (graph_.crossNic == 0 && !sameRail(machine_, in, out)) addOf(channel, both + ", of another rail");
    if (graph_.crossNic == 2 && channel % 2 == 1) checkPair(channel);
    if (isCollNet(graph_.id) && !(left.collective && right.collective)) {
      addOf(channel, both + ", not both capable of collectives");
    }
  }

  void checkPair(int odd) {
    const GraphChannel& even = at(odd - 1);
    if (sameRail(machine_, at(odd).netIn, even.netOut) && sameRail(machine_, at(odd).netOut, even.netIn)) return;
    addOf(odd, fmt::format("{} and {} are not the NICs of channel {} swapped, {} and {}", name(at(odd).netIn),
                           name(at(odd).netOut), odd - 1, name(even.netOut), name(even.netIn)));
  }

  void checkLoads() {
    std::vector<Stream> streams = streamsOf(machine_, graph_, interNode_);
    if (lastResort()) std::erase_if(streams, [this](const Stream& stream) { return overNetwork(stream); });
    bool routed = true;
    for (const Stream& stream : streams) routed = checkStream(stream) && routed;
    if (!routed) return;
    for (const std::string& fault : overloadedLinks(machine_, linkUse(machine_, paths_, streams))) add(fault);
  }

  bool overNetwork(const Stream& stream) const {
    return !stream.viaNet && paths_.of(stream.from, stream.to).type == PathType::Net;
  }

  /// Whether its way can be charged.
  bool checkStream(const Stream& stream) {
    const std::string ends = fmt::format("from {} to {}", name(stream.from), name(stream.to));
    if (const std::string fault = routeFault(machine_, paths_, stream); !fault.empty()) {
      addOf(stream.channel, fmt::format("{}: {}", ends, fault));
      return false;
    }
    const PathType used = paths_.of(stream.from, stream.to).type;
    const PathType allowed = stream.viaNet ? graph_.typeInter : graph_.typeIntra;
    if (used > allowed) {
      addOf(stream.channel, fmt::format("{} is {}, further than the {} that the graph states", ends, pathTypeName(used),
                                        pathTypeName(allowed)));
    }
    return true;
  }

  const Machine& machine_;
  const PathTable& paths_;
  const Graph& graph_;
  bool interNode_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> validateGraph(const Machine& machine, const PathTable& paths, const Graph& graph,
                                       bool interNode) {
  return Validator(machine, paths, graph, interNode).faults();
}

}  // namespace tutti::topo
