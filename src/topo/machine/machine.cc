#include "topo/machine/machine.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace tutti::topo {

namespace {

/// A switch is added after what it hangs under, so its uplink leads to a lower number.
bool isUplink(const Machine& machine, int link) {
  const Link& l = machine.link(link);
  return machine.node(l.from).kind() == NodeKind::Switch && l.kind == LinkKind::Pci && l.to < l.from;
}

const char* kindName(NodeKind kind) {
  switch (kind) {
    case NodeKind::Cpu:
      return "CPU";
    case NodeKind::Switch:
      return "PCI";
    case NodeKind::Device:
      return "DEV";
    case NodeKind::Gpu:
      return "GPU";
    case NodeKind::NvSwitch:
      return "NVS";
    case NodeKind::Nic:
      return "NIC";
    case NodeKind::Net:
      return "NET";
  }
  return "?";
}

}  // namespace

int Machine::addNode(int system, std::uint64_t id, NodeFacts facts) {
  const int number = nodeCount();
  byKind_[facts.index()].push_back(number);
  nodes_.push_back({.system = system, .id = id, .facts = std::move(facts), .links = {}});
  systems_ = std::max(systems_, system + 1);
  return number;
}

int Machine::findLink(int from, int to, LinkKind kind) const {
  for (const int number : node(from).links) {
    if (link(number).to == to && link(number).kind == kind) return number;
  }
  return -1;
}

void Machine::connect(int from, int to, LinkKind kind, float bandwidth, bool oneWay) {
  int there = findLink(from, to, kind);
  if (there < 0) {
    there = linkCount();
    links_.push_back({.from = from, .to = to, .kind = kind, .bandwidth = 0, .reverse = findLink(to, from, kind)});
    nodes_[static_cast<std::size_t>(from)].links.push_back(there);
    if (const int back = link(there).reverse; back >= 0) links_[static_cast<std::size_t>(back)].reverse = there;
  }
  links_[static_cast<std::size_t>(there)].bandwidth += bandwidth;
  if (!oneWay) connect(to, from, kind, bandwidth, true);
}

void Machine::sortLinks() {
  for (Node& node : nodes_) {
    std::stable_sort(node.links.begin(), node.links.end(), [this](int a, int b) {
      const bool upA = isUplink(*this, a);
      const bool upB = isUplink(*this, b);
      return upA != upB ? upB : link(a).bandwidth > link(b).bandwidth;
    });
  }
}

CpuKind Machine::cpuKind() const {
  const auto cpus = nodes(NodeKind::Cpu);
  return cpus.empty() ? CpuKind::OtherX86 : facts<CpuFacts>(cpus.front()).kind;
}

std::string nodeName(const Machine& machine, int node) {
  const Node& n = machine.node(node);
  return fmt::format("{}/{:x}-{:x}", kindName(n.kind()), n.system, n.id);
}

}  // namespace tutti::topo
