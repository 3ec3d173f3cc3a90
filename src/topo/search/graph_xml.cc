#include "topo/search/graph_xml.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "base/log.h"
#include "topo/xml/scan.h"
#include "topo/xml/values.h"

namespace tutti::topo {

namespace {

constexpr int kSystemShift = 56;
/// What is left of 64 bits above kSystemShift.
constexpr int kMaxSystems = 256;

/// The graphs in the order in which they are written.
constexpr std::array<std::pair<GraphId, Graph GraphSet::*>, 5> kGraphs = {{
    {GraphId::Ring, &GraphSet::ring},
    {GraphId::Tree, &GraphSet::tree},
    {GraphId::CollNetDirect, &GraphSet::collNetDirect},
    {GraphId::CollNetChain, &GraphSet::collNetChain},
    {GraphId::Nvls, &GraphSet::nvls},
}};

/// The pattern of a graph that nobody computed.
Pattern usualPattern(GraphId id) {
  switch (id) {
    case GraphId::Ring:
      return Pattern::Ring;
    case GraphId::Tree:
      return Pattern::BalancedTree;
    case GraphId::CollNetChain:
      return Pattern::Tree;
    case GraphId::Nvls:
      return Pattern::Nvls;
    case GraphId::CollNetDirect:
      return Pattern::CollNetDirect;
  }
  return Pattern::Ring;
}

bool canUse(GraphId id, Pattern pattern) {
  if (pattern == usualPattern(id)) return true;
  // One GPU alone has no other pattern than a tree.
  if (id != GraphId::Ring && pattern == Pattern::Tree) return true;
  return id == GraphId::Tree && pattern == Pattern::SplitTree;
}

/// As C's %#x: no mark on zero.
std::string deviceText(const Node& node, int dev) {
  const std::uint64_t value = static_cast<std::uint64_t>(node.system) << kSystemShift | static_cast<std::uint64_t>(dev);
  return value == 0 ? "0" : fmt::format("{:#x}", value);
}

/// Names of devices have room for so many hosts; those beyond would have the names of the first ones.
Status checkHosts(const Machine& machine, const std::string& where) {
  if (machine.systems() <= kMaxSystems) return {};
  return fail(
      ncclInvalidUsage,
      "{}: graph files name devices of up to {} hosts, and NVLink joins {} here: do without NCCL_GRAPH_FILE and "
      "NCCL_GRAPH_DUMP_FILE",
      where, kMaxSystems, machine.systems());
}

class Writing {
 public:
  explicit Writing(const Machine& machine) : machine_(machine) {}

  XmlElement graph(const Graph& from, GraphId id) const {
    XmlElement element{.name = "graph"};
    const bool any = from.nChannels() > 0;
    element.set("id", std::to_string(static_cast<int>(id)));
    element.set("pattern", std::to_string(static_cast<int>(any ? from.pattern : usualPattern(id))));
    element.set("crossnic", std::to_string(from.crossNic));
    element.set("nchannels", std::to_string(from.nChannels()));
    element.set("speedintra", fmt::format("{:g}", from.bwIntra));
    element.set("speedinter", fmt::format("{:g}", from.bwInter));
    element.set("latencyinter", fmt::format("{:g}", from.latencyInter));
    element.set("typeintra", pathTypeName(from.typeIntra));
    element.set("typeinter", pathTypeName(from.typeInter));
    element.set("samechannels", from.sameChannels ? "1" : "0");
    for (const GraphChannel& channel : from.channels) {
      XmlElement& to = element.children.emplace_back(XmlElement{.name = "channel"});
      if (channel.netIn >= 0) to.children.push_back(net(channel.netIn));
      // Of NVLS only the head matters; the others are all others.
      const std::size_t gpus = from.pattern == Pattern::Nvls ? 1 : channel.gpus.size();
      for (const int node : std::span(channel.gpus).first(gpus)) to.children.push_back(gpu(node));
      if (channel.netOut >= 0) to.children.push_back(net(channel.netOut));
    }
    return element;
  }

 private:
  XmlElement net(int node) const {
    XmlElement element{.name = "net"};
    element.set("dev", deviceText(machine_.node(node), machine_.facts<NetFacts>(node).dev));
    return element;
  }

  XmlElement gpu(int node) const {
    const GpuFacts& facts = machine_.facts<GpuFacts>(node);
    XmlElement element{.name = "gpu"};
    element.set("dev", deviceText(machine_.node(node), facts.dev));
    element.set("rank", std::to_string(facts.rank));
    return element;
  }

  const Machine& machine_;
};

/// Reads the graphs of one file.
class Reading {
 public:
  Reading(const Machine& machine, bool interNode) : machine_(machine), interNode_(interNode) {}

  Status graph(const XmlElement& element, GraphId id, Graph& to) const {
    to.id = id;
    TRY(header(element, to));
    for (const XmlElement& child : element.children) {
      if (child.name != "channel") continue;
      if (to.nChannels() >= kMostChannels) {
        return fail(ncclInvalidUsage, "{}: the graph has more than {} channels", child.where(), kMostChannels);
      }
      TRY(channel(child, to));
    }
    if (to.channels.empty()) return {};
    if (!(to.bwIntra > 0)) {
      return fail(ncclInvalidUsage, "{}: speedintra=\"0\" of a graph with channels", element.where());
    }
    if (usesNics(to) && !(to.bwInter > 0)) {
      return fail(
          ncclInvalidUsage,
          "{}: speedinter=\"0\" of a graph for several nodes: set what a channel carries between nodes, in GB/s",
          element.where());
    }
    return {};
  }

 private:
  static Status header(const XmlElement& element, Graph& to) {
    ASSIGN(const int pattern, intAttribute(element, "pattern", {}, {1, 6}));
    to.pattern = static_cast<Pattern>(pattern);
    if (!canUse(to.id, to.pattern)) {
      return fail(ncclInvalidUsage, "{}: the {} graph cannot have the pattern {} ({})", element.where(),
                  graphName(to.id), pattern, patternName(to.pattern));
    }
    ASSIGN(to.crossNic, intAttribute(element, "crossnic", {}, {0, 2}));
    TRY(intAttribute(element, "nchannels", {}, {.least = 0}));
    ASSIGN(to.bwIntra, floatAttribute(element, "speedintra"));
    ASSIGN(to.bwInter, floatAttribute(element, "speedinter"));
    ASSIGN(to.latencyInter, floatAttribute(element, "latencyinter", 0.0f));
    ASSIGN(to.typeIntra, pathType(element, "typeintra"));
    ASSIGN(to.typeInter, pathType(element, "typeinter"));
    ASSIGN(const int same, intAttribute(element, "samechannels", {}, {0, 1}));
    to.sameChannels = same == 1;
    return {};
  }

  static Result<PathType> pathType(const XmlElement& element, std::string_view name) {
    ASSIGN(const std::string word, textAttribute(element, name));
    if (const std::optional<PathType> type = parsePathType(word)) return *type;
    info(kGraph, "{}: {}=\"{}\" is no type of a way, LOC is taken", element.where(), name, shownText(word));
    return PathType::Loc;
  }

  Status channel(const XmlElement& element, Graph& graph) const {
    GraphChannel channel;
    std::vector<int> nets;
    for (const XmlElement& child : element.children) {
      if (child.name == "net") {
        ASSIGN(const int node, net(child));
        nets.push_back(node);
      } else if (child.name == "gpu") {
        ASSIGN(const int node, gpu(child, channel.gpus));
        channel.gpus.push_back(node);
      }
    }
    if (!nets.empty()) {
      if (nets.size() != 2) {
        return fail(ncclInvalidUsage, "{}: {} <net>: a channel has none, or one in and one out", element.where(),
                    nets.size());
      }
      channel.netIn = nets[0];
      channel.netOut = nets[1];
    }
    TRY(complete(element, graph.pattern, channel.gpus));
    TRY(checkNets(element, graph, channel));
    graph.channels.push_back(std::move(channel));
    return {};
  }

  /// Between nodes channels lead from NIC to NIC; a search that reaches none says so in this way.
  bool usesNics(const Graph& graph) const {
    const bool nothingReached = graph.bwInter == 0 && graph.typeInter == PathType::Dis;
    return interNode_ && !nothingReached;
  }

  Status checkNets(const XmlElement& element, const Graph& graph, const GraphChannel& channel) const {
    if ((channel.netIn >= 0) == usesNics(graph)) return {};
    if (usesNics(graph)) {
      return fail(ncclInvalidUsage,
                  "{}: the channel has no <net>, and the communicator spans several nodes: name the NICs it enters and "
                  "leaves by, or take a file that NCCL_GRAPH_DUMP_FILE wrote on several nodes",
                  element.where());
    }
    if (interNode_) {
      return fail(
          ncclInvalidUsage,
          "{}: the channel has <net>, and the graph's typeinter=\"DIS\" and speedinter=\"0\" say that no NIC is "
          "reached: set them, or remove <net>",
          element.where());
    }
    return fail(ncclInvalidUsage,
                "{}: the channel has <net>, and the communicator has a single node: remove them, or take a file that "
                "NCCL_GRAPH_DUMP_FILE wrote on one node",
                element.where());
  }

  /// Every GPU of the machine must be there; behind the head of an NVLS channel all others are meant.
  Status complete(const XmlElement& element, Pattern pattern, std::vector<int>& gpus) const {
    const std::span<const int> all = machine_.nodes(NodeKind::Gpu);
    if (gpus.size() == all.size()) return {};
    if (pattern != Pattern::Nvls || gpus.size() != 1) {
      return fail(ncclInvalidUsage,
                  "{}: the channel has {} of {} GPUs: is the file for another machine or communicator?",
                  element.where(), gpus.size(), all.size());
    }
    std::copy_if(all.begin(), all.end(), std::back_inserter(gpus), [head = gpus[0]](int n) { return n != head; });
    return {};
  }

  static bool hasDevice(const Node& node, int dev, std::uint64_t device) {
    constexpr std::uint64_t kDeviceMask = (std::uint64_t{1} << kSystemShift) - 1;
    return static_cast<std::uint64_t>(node.system) == device >> kSystemShift &&
           static_cast<std::uint64_t>(dev) == (device & kDeviceMask);
  }

  Result<int> net(const XmlElement& element) const {
    ASSIGN(const std::uint64_t device, hexAttribute(element, "dev"));
    for (const int node : machine_.nodes(NodeKind::Net)) {
      if (hasDevice(machine_.node(node), machine_.facts<NetFacts>(node).dev, device)) return node;
    }
    return fail(ncclInvalidUsage, "{}: there is no network device with dev {:#x}", element.where(), device);
  }

  Result<int> gpu(const XmlElement& element, const std::vector<int>& used) const {
    ASSIGN(const int rank, intAttribute(element, "rank", -1));
    ASSIGN(const std::uint64_t device,
           hexAttribute(element, "dev", rank >= 0 ? std::optional<std::uint64_t>(0) : std::nullopt));
    bool known = false;
    for (const int node : machine_.nodes(NodeKind::Gpu)) {
      const GpuFacts& facts = machine_.facts<GpuFacts>(node);
      if (rank >= 0 ? facts.rank != rank : !hasDevice(machine_.node(node), facts.dev, device)) continue;
      known = true;
      // Several ranks may share a device.
      if (std::find(used.begin(), used.end(), node) == used.end()) return node;
    }
    const std::string name = rank >= 0 ? fmt::format("rank {}", rank) : fmt::format("dev {:#x}", device);
    if (known) return fail(ncclInvalidUsage, "{}: the channel has the GPU of {} twice", element.where(), name);
    return fail(ncclInvalidUsage, "{}: there is no GPU of {} in use on this machine", element.where(), name);
  }

  const Machine& machine_;
  bool interNode_;
};

Graph emptyGraph(GraphId id) {
  Graph graph;
  graph.id = id;
  graph.pattern = usualPattern(id);
  return graph;
}

}  // namespace

Result<XmlElement> writeGraphs(const Machine& machine, const GraphSet& graphs) {
  XmlElement root{.name = "graphs"};
  TRY(checkHosts(machine, root.where()));
  root.set("version", "1");
  for (const auto& [id, member] : kGraphs) root.children.push_back(Writing(machine).graph(graphs.*member, id));
  return root;
}

Result<GraphSet> readGraphs(const Machine& machine, const XmlElement& graphs, bool interNode) {
  if (graphs.name != "graphs") {
    return fail(ncclInvalidUsage, "{}: the root of a graph file is <graphs>{}", graphs.where(),
                graphs.name == "system" ? "; this is a topology file (NCCL_TOPO_FILE)" : "");
  }
  TRY(checkHosts(machine, graphs.where()));
  ASSIGN(const int version, intAttribute(graphs, "version"));
  if (version != 1) {
    return fail(ncclInvalidUsage, "{}: version=\"{}\": files of version 1 are read", graphs.where(), version);
  }
  GraphSet set;
  for (const auto& [id, member] : kGraphs) set.*member = emptyGraph(id);
  std::array<const XmlElement*, kGraphs.size()> seen{};
  for (const XmlElement& element : graphs.children) {
    if (element.name != "graph") continue;
    ASSIGN(const int number, intAttribute(element, "id"));
    const auto known = std::find_if(kGraphs.begin(), kGraphs.end(),
                                    [&](const auto& entry) { return static_cast<int>(entry.first) == number; });
    if (known == kGraphs.end()) continue;
    const XmlElement*& first = seen[static_cast<std::size_t>(known - kGraphs.begin())];
    if (first != nullptr) {
      return fail(ncclInvalidUsage, "{}: id=\"{}\" is already that of {}", element.where(), number, first->where());
    }
    first = &element;
    TRY(Reading(machine, interNode).graph(element, known->first, set.*(known->second)));
  }
  return set;
}

Result<GraphSet> readGraphFile(const std::string& path, const Machine& machine, bool interNode,
                               std::string_view asked) {
  ASSIGN(const XmlElement graphs, readXmlFile(path, {}, asked));
  return readGraphs(machine, graphs, interNode);
}

bool replacesSearch(const Graph& fromFile, int crossNic) {
  return fromFile.nChannels() > 0 && !(fromFile.crossNic == 1 && crossNic == 0);
}

}  // namespace tutti::topo
