#include "tutti_topo/draw_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>

#include "tutti_topo/draw_text.h"

namespace tutti {
namespace {

bool hangsUnder(const Machine& machine, const Link& link) {
  const NodeKind from = machine.node(link.from).kind();
  const NodeKind to = machine.node(link.to).kind();
  if (to == NodeKind::Cpu || to == NodeKind::NvSwitch) return false;
  if (link.kind == LinkKind::Pci || link.kind == LinkKind::Net) return true;
  return link.kind == LinkKind::Local && !(from == NodeKind::Switch && to == NodeKind::Switch);
}

bool indicesNameGpus(const Machine& machine) {
  std::set<int> seen;
  for (const int gpu : machine.nodes(NodeKind::Gpu)) {
    if (!seen.insert(machine.facts<GpuFacts>(gpu).dev).second) return false;
  }
  return true;
}

}  // namespace

MachineTree treeOf(const Machine& machine) {
  MachineTree tree;
  const auto count = static_cast<std::size_t>(machine.nodeCount());
  tree.parent.assign(count, -1);
  tree.children.resize(count);
  std::deque<int> waiting(machine.nodes(NodeKind::Cpu).begin(), machine.nodes(NodeKind::Cpu).end());
  while (!waiting.empty()) {
    const int node = waiting.front();
    waiting.pop_front();
    for (const int number : machine.node(node).links) {
      const Link& link = machine.link(number);
      if (!hangsUnder(machine, link) || tree.parent[static_cast<std::size_t>(link.to)] >= 0) continue;
      if (tree.parent[static_cast<std::size_t>(node)] == link.to) continue;
      tree.parent[static_cast<std::size_t>(link.to)] = node;
      tree.children[static_cast<std::size_t>(node)].push_back(link.to);
      waiting.push_back(link.to);
    }
  }
  for (std::vector<int>& children : tree.children) std::sort(children.begin(), children.end());
  return tree;
}

const char* cpuKindText(CpuKind kind) {
  switch (kind) {
    case CpuKind::IntelBroadwell:
      return "Intel Broadwell";
    case CpuKind::IntelSkylake:
      return "Intel Skylake";
    case CpuKind::IntelSapphireRapids:
      return "Intel Sapphire Rapids";
    case CpuKind::IntelEmeraldRapids:
      return "Intel Emerald Rapids";
    case CpuKind::Amd:
      return "AMD";
    case CpuKind::Zhaoxin:
      return "Zhaoxin";
    case CpuKind::ZhaoxinYongfeng:
      return "Zhaoxin Yongfeng";
    case CpuKind::OtherX86:
      return "x86";
    case CpuKind::Arm:
      return "Arm";
    case CpuKind::Power:
      return "POWER";
  }
  return "?";
}

std::string gpuLabel(const Machine& machine, int gpu) {
  const GpuFacts& facts = machine.facts<GpuFacts>(gpu);
  return std::to_string(indicesNameGpus(machine) ? facts.dev : facts.rank);
}

std::string netLabel(const Machine& machine, int net) {
  const NetFacts& facts = machine.facts<NetFacts>(net);
  return facts.name.empty() ? fmt::format("net {}", facts.dev) : cleanText(facts.name);
}

std::string orderText(const Machine& machine, const std::vector<int>& gpus, std::size_t most) {
  const bool shortened = gpus.size() > most && most > 2;
  const std::size_t head = shortened ? most - 2 : gpus.size();
  std::string text;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (i >= head && i + 2 < gpus.size()) {
      if (i == head) text += " …";
      continue;
    }
    if (!text.empty()) text += ' ';
    text += gpuLabel(machine, gpus[i]);
  }
  return text;
}

float linkBandwidth(const Machine& machine, int from, int to, LinkKind kind) {
  for (const int number : machine.node(from).links) {
    const Link& link = machine.link(number);
    if (link.to == to && link.kind == kind) return link.bandwidth;
  }
  return 0;
}

std::string bandwidthText(double gigabytes) {
  const double rounded = std::round(gigabytes * 100) / 100;
  return fmt::format("{:g}", rounded >= 100 ? std::round(rounded * 10) / 10 : rounded);
}

const char* linkKindText(LinkKind kind) {
  switch (kind) {
    case LinkKind::Local:
      return "local";
    case LinkKind::NvLink:
      return "NVLink";
    case LinkKind::C2c:
      return "C2C";
    case LinkKind::Pci:
      return "PCI";
    case LinkKind::Sys:
      return "CPU to CPU";
    case LinkKind::Net:
      return "network";
  }
  return "?";
}

}  // namespace tutti
