#include "topo/search/validate_loads.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace tutti::topo {
namespace {

constexpr double kTolerance = 1e-3;
/// A GPU's peer traffic through the host bridge of an Intel CPU costs that much of the PCI links' bandwidth.
constexpr double kIntelPeerCost = 6.0 / 5.0;
/// What a GPU older than sm 80 sends back for what a NIC writes into it.
constexpr double kOldGpuAnswer = 1.0 / 8.0;
constexpr int kAnswersNothing = 80;

bool isIntel(CpuKind kind) {
  return kind == CpuKind::IntelBroadwell || kind == CpuKind::IntelSkylake || kind == CpuKind::IntelSapphireRapids ||
         kind == CpuKind::IntelEmeraldRapids;
}

const char* kindName(LinkKind kind) {
  switch (kind) {
    case LinkKind::Local:
      return "local link";
    case LinkKind::NvLink:
      return "NVLink";
    case LinkKind::C2c:
      return "C2C link";
    case LinkKind::Pci:
      return "PCI link";
    case LinkKind::Sys:
      return "link between CPUs";
    case LinkKind::Net:
      return "NIC's port";
  }
  return "link";
}

std::string linkText(const Machine& machine, const Link& link) {
  return fmt::format("the {} {} -> {}", kindName(link.kind), nodeName(machine, link.from), nodeName(machine, link.to));
}

/// The streams of one channel, pattern by pattern.
class ChannelStreams {
 public:
  ChannelStreams(const Machine& machine, const Graph& graph, int channel)
      : machine_(machine), graph_(graph), channel_(channel), gpus_(at().gpus) {}

  std::vector<Stream> all(bool interNode) {
    const bool net = interNode && at().netIn >= 0 && at().netOut >= 0;
    switch (graph_.pattern) {
      case Pattern::Ring:
        ring(net);
        break;
      case Pattern::Tree:
        tree(net, 1);
        break;
      case Pattern::BalancedTree:
      case Pattern::SplitTree:
        tree(net, 2);
        break;
      case Pattern::Nvls:
        nvls(net);
        break;
      case Pattern::CollNetDirect:
        direct(net);
        break;
    }
    return std::move(streams_);
  }

 private:
  const GraphChannel& at() const { return graph_.channels[static_cast<std::size_t>(channel_)]; }

  void intra(int from, int to, double share) {
    streams_.push_back({channel_, from, to, graph_.bwIntra * share, false});
  }
  void inter(int from, int to, double share) { streams_.push_back({channel_, from, to, graph_.bwInter * share, true}); }

  void chain() {
    for (std::size_t i = 1; i < gpus_.size(); ++i) intra(gpus_[i - 1], gpus_[i], 1);
  }

  void ring(bool net) {
    chain();
    if (net) {
      inter(at().netIn, gpus_.front(), 1);
      inter(gpus_.back(), at().netOut, 1);
    } else if (gpus_.size() > 1) {
      intra(gpus_.back(), gpus_.front(), 1);
    }
  }

  /// `ends`: GPUs that share the network's traffic.
  void tree(bool net, std::size_t ends) {
    chain();
    ends = std::min(ends, gpus_.size());
    for (std::size_t i = 0; net && i < ends; ++i) {
      inter(at().netIn, gpus_[i], 1.0 / static_cast<double>(ends));
      inter(gpus_[i], at().netOut, 1.0 / static_cast<double>(ends));
    }
  }

  void headToNet(bool net) {
    if (!net) return;
    inter(at().netIn, gpus_.front(), 1);
    inter(gpus_.front(), at().netOut, 1);
  }

  void nvls(bool net) {
    const auto switches = machine_.nodes(NodeKind::NvSwitch);
    if (switches.empty()) return;
    for (const int gpu : gpus_) {
      const double share = gpu == gpus_.front() ? 2 : 1;
      intra(gpu, switches.front(), share);
      intra(switches.front(), gpu, share);
    }
    headToNet(net);
  }

  void direct(bool net) {
    const int head = gpus_.front();
    const double share = 1.0 / static_cast<double>(std::max<std::size_t>(gpus_.size() - 1, 1));
    for (std::size_t i = 1; i < gpus_.size(); ++i) {
      intra(head, gpus_[i], share);
      intra(gpus_[i], head, share);
    }
    headToNet(net);
  }

  const Machine& machine_;
  const Graph& graph_;
  int channel_;
  const std::vector<int>& gpus_;
  std::vector<Stream> streams_;
};

/// What the kind of a link and its ends make of a path over it.
PathType typeOf(const Machine& machine, const Link& link) {
  const NodeKind from = machine.node(link.from).kind();
  const NodeKind to = machine.node(link.to).kind();
  switch (link.kind) {
    case LinkKind::Local:
    case LinkKind::Net:
      return PathType::Loc;
    case LinkKind::NvLink:
      return PathType::Nvl;
    case LinkKind::C2c:
      return PathType::C2c;
    case LinkKind::Sys:
      return PathType::Sys;
    case LinkKind::Pci:
      break;
  }
  if (from == NodeKind::Cpu || to == NodeKind::Cpu) return PathType::Phb;
  return from == NodeKind::Switch && to == NodeKind::Switch ? PathType::Pxb : PathType::Pix;
}

int deviceOf(const Machine& machine, int node) {
  return machine.node(node).kind() == NodeKind::Gpu ? machine.facts<GpuFacts>(node).device : -1;
}

/// What is seen along a path.
struct Walk {
  PathType worst = PathType::Loc;
  bool c2c = false;
  int relay = -1;  ///< the Device in the middle
  int relays = 0;
  bool nvLinkToRelay = true;    ///< nothing but NVLink (and local links) before the relay
  bool nvLinkFromRelay = true;  ///< and behind it
  std::string fault;
};

void takeRelay(const Machine& machine, const Stream& stream, int node, Walk& walk) {
  if (machine.node(node).kind() != NodeKind::Device || node == walk.relay) return;
  if (node == deviceOf(machine, stream.from) || node == deviceOf(machine, stream.to)) return;
  walk.relay = node;
  ++walk.relays;
}

Walk walkAlong(const Machine& machine, const Path& path, const Stream& stream) {
  Walk walk;
  int at = stream.from;
  for (const int number : path.links) {
    if (number < 0 || number >= machine.linkCount() || machine.link(number).from != at) {
      walk.fault = fmt::format("its way breaks off at {}", nodeName(machine, at));
      return walk;
    }
    const Link& link = machine.link(number);
    const bool nvLink = link.kind == LinkKind::NvLink || link.kind == LinkKind::Local;
    (walk.relays == 0 ? walk.nvLinkToRelay : walk.nvLinkFromRelay) &= nvLink;
    walk.worst = std::max(walk.worst, typeOf(machine, link));
    walk.c2c = walk.c2c || link.kind == LinkKind::C2c;
    at = link.to;
    takeRelay(machine, stream, at, walk);
  }
  if (at != stream.to) walk.fault = fmt::format("its way ends at {}", nodeName(machine, at));
  return walk;
}

/// Whether a GPU in the middle may relay: NVLink on both sides (NVB), or the last GPU before the NIC (PXN).
bool mayRelay(const Machine& machine, const Path& path, const Stream& stream, const Walk& walk) {
  if (walk.relays > 1 || !walk.nvLinkToRelay) return false;
  if (path.type == PathType::Pxn) return machine.node(stream.to).kind() == NodeKind::Net;
  return path.type == PathType::Nvb && walk.nvLinkFromRelay;
}

void putOn(const Machine& machine, int link, double load, int channel, std::vector<LinkUse>& use) {
  if (link < 0 || link >= machine.linkCount()) return;
  LinkUse& at = use[static_cast<std::size_t>(link)];
  at.load += load;
  if (at.channels.empty() || at.channels.back() != channel) at.channels.push_back(channel);
}

std::string channelsText(const std::vector<int>& channels) {
  constexpr std::size_t kShown = 8;
  std::string text = channels.size() == 1 ? "channel" : "channels";
  for (std::size_t i = 0; i < std::min(channels.size(), kShown); ++i) text += fmt::format(" {}", channels[i]);
  return channels.size() > kShown ? text + fmt::format(" and {} more", channels.size() - kShown) : text;
}

bool exceeds(double load, double capacity) {
  return load > capacity * (1 + kTolerance);
}

}  // namespace

std::vector<Stream> streamsOf(const Machine& machine, const Graph& graph, bool interNode) {
  std::vector<Stream> streams;
  for (int channel = 0; channel < graph.nChannels(); ++channel) {
    for (const Stream& stream : ChannelStreams(machine, graph, channel).all(interNode)) streams.push_back(stream);
  }
  return streams;
}

std::string routeFault(const Machine& machine, const PathTable& paths, const Stream& stream) {
  const Path& path = paths.of(stream.from, stream.to);
  if (path.type >= PathType::Net) return fmt::format("no way inside the machine ({})", pathTypeName(path.type));
  const Walk walk = walkAlong(machine, path, stream);
  if (!walk.fault.empty()) return walk.fault;
  if (walk.relays > 0 && !mayRelay(machine, path, stream, walk)) {
    return fmt::format("its way of type {} passes through {}", pathTypeName(path.type), nodeName(machine, walk.relay));
  }
  const PathType real = walk.c2c && walk.worst == PathType::Phb ? PathType::P2c : walk.worst;
  if (path.type < real) {
    return fmt::format("its way is called {}, but its links make it {}", pathTypeName(path.type), pathTypeName(real));
  }
  return "";
}

std::vector<LinkUse> linkUse(const Machine& machine, const PathTable& paths, const std::vector<Stream>& streams) {
  std::vector<LinkUse> use(static_cast<std::size_t>(machine.linkCount()));
  const CpuKind cpu = machine.cpuKind();
  for (const Stream& stream : streams) {
    const Path& path = paths.of(stream.from, stream.to);
    const bool fromGpu = machine.node(stream.from).kind() == NodeKind::Gpu;
    const double pciCost = fromGpu && path.type == PathType::Phb && isIntel(cpu) ? kIntelPeerCost : 1;
    for (const int number : path.links) {
      const Link& link = machine.link(number);
      const NodeKind to = machine.node(link.to).kind();
      const double load = stream.bandwidth * (link.kind == LinkKind::Pci ? pciCost : 1);
      putOn(machine, number, load, stream.channel, use);
      if (!fromGpu && to == NodeKind::Device && machine.facts<DeviceFacts>(link.to).sm < kAnswersNothing) {
        putOn(machine, link.reverse, load * kOldGpuAnswer, stream.channel, use);
      }
      if (cpu == CpuKind::Power && to == NodeKind::Cpu && link.kind == LinkKind::NvLink) {
        putOn(machine, link.reverse, load, stream.channel, use);
      }
    }
  }
  return use;
}

std::vector<std::string> overloadedLinks(const Machine& machine, const std::vector<LinkUse>& use) {
  std::vector<std::string> faults;
  for (int number = 0; number < machine.linkCount(); ++number) {
    const LinkUse& at = use[static_cast<std::size_t>(number)];
    const Link& link = machine.link(number);
    if (!exceeds(at.load, link.bandwidth)) continue;
    faults.push_back(fmt::format("{} carries {:.3f} GB/s and can carry {:.3f} ({})", linkText(machine, link), at.load,
                                 link.bandwidth, channelsText(at.channels)));
  }
  return faults;
}

std::vector<std::string> overloadedNics(const Machine& machine, const Graph& graph) {
  struct Port {
    int net = -1;
    double speed = 0;
    double in = 0;
    double out = 0;
  };
  std::map<std::tuple<int, std::uint64_t, int>, Port> ports;
  const auto portOf = [&](int net) -> Port& {
    const NetFacts& facts = machine.facts<NetFacts>(net);
    Port& port = ports[{machine.node(net).system, facts.guid, facts.port}];
    if (port.net < 0) port.net = net;
    port.speed = std::max(port.speed, static_cast<double>(facts.speed));
    return port;
  };
  for (const GraphChannel& channel : graph.channels) {
    if (channel.netIn >= 0) portOf(channel.netIn).in += graph.bwInter;
    if (channel.netOut >= 0) portOf(channel.netOut).out += graph.bwInter;
  }
  std::vector<std::string> faults;
  const auto check = [&](const Port& port, const char* does, double load) {
    if (!exceeds(load, port.speed)) return;
    faults.push_back(fmt::format("the port of {} {} {:.3f} GB/s and can do {:.3f}", nodeName(machine, port.net), does,
                                 load, port.speed));
  };
  for (const auto& [key, port] : ports) {
    check(port, "receives", port.in);
    check(port, "sends", port.out);
  }
  return faults;
}

}  // namespace tutti::topo
