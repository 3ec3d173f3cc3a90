#include "tutti_topo/draw_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>

#include "tutti_topo/draw_text.h"

namespace tutti::tool {
namespace {

bool hangsUnder(const topo::Machine& machine, const topo::Link& link) {
  const topo::NodeKind from = machine.node(link.from).kind();
  const topo::NodeKind to = machine.node(link.to).kind();
  if (to == topo::NodeKind::Cpu || to == topo::NodeKind::NvSwitch) return false;
  if (link.kind == topo::LinkKind::Pci || link.kind == topo::LinkKind::Net) return true;
  return link.kind == topo::LinkKind::Local && !(from == topo::NodeKind::Switch && to == topo::NodeKind::Switch);
}

bool indicesNameGpus(const topo::Machine& machine) {
  std::set<int> seen;
  for (const int gpu : machine.nodes(topo::NodeKind::Gpu)) {
    if (!seen.insert(machine.facts<topo::GpuFacts>(gpu).dev).second) return false;
  }
  return true;
}

}  // namespace

MachineTree treeOf(const topo::Machine& machine) {
  MachineTree tree;
  const auto count = static_cast<std::size_t>(machine.nodeCount());
  tree.parent.assign(count, -1);
  tree.children.resize(count);
  std::deque<int> waiting(machine.nodes(topo::NodeKind::Cpu).begin(), machine.nodes(topo::NodeKind::Cpu).end());
  while (!waiting.empty()) {
    const int node = waiting.front();
    waiting.pop_front();
    for (const int number : machine.node(node).links) {
      const topo::Link& link = machine.link(number);
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

const char* cpuKindText(topo::CpuKind kind) {
  switch (kind) {
    case topo::CpuKind::IntelBroadwell:
      return "Intel Broadwell";
    case topo::CpuKind::IntelSkylake:
      return "Intel Skylake";
    case topo::CpuKind::IntelSapphireRapids:
      return "Intel Sapphire Rapids";
    case topo::CpuKind::IntelEmeraldRapids:
      return "Intel Emerald Rapids";
    case topo::CpuKind::Amd:
      return "AMD";
    case topo::CpuKind::Zhaoxin:
      return "Zhaoxin";
    case topo::CpuKind::ZhaoxinYongfeng:
      return "Zhaoxin Yongfeng";
    case topo::CpuKind::OtherX86:
      return "x86";
    case topo::CpuKind::Arm:
      return "Arm";
    case topo::CpuKind::Power:
      return "POWER";
  }
  return "?";
}

std::string gpuLabel(const topo::Machine& machine, int gpu) {
  const topo::GpuFacts& facts = machine.facts<topo::GpuFacts>(gpu);
  return std::to_string(indicesNameGpus(machine) ? facts.dev : facts.rank);
}

std::string netLabel(const topo::Machine& machine, int net) {
  const topo::NetFacts& facts = machine.facts<topo::NetFacts>(net);
  return facts.name.empty() ? fmt::format("net {}", facts.dev) : cleanText(facts.name);
}

std::string orderText(const topo::Machine& machine, const std::vector<int>& gpus, std::size_t most) {
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

float linkBandwidth(const topo::Machine& machine, int from, int to, topo::LinkKind kind) {
  for (const int number : machine.node(from).links) {
    const topo::Link& link = machine.link(number);
    if (link.to == to && link.kind == kind) return link.bandwidth;
  }
  return 0;
}

std::string bandwidthText(double gigabytes) {
  const double rounded = std::round(gigabytes * 100) / 100;
  return fmt::format("{:g}", rounded >= 100 ? std::round(rounded * 10) / 10 : rounded);
}

const char* linkKindText(topo::LinkKind kind) {
  switch (kind) {
    case topo::LinkKind::Local:
      return "local";
    case topo::LinkKind::NvLink:
      return "NVLink";
    case topo::LinkKind::C2c:
      return "C2C";
    case topo::LinkKind::Pci:
      return "PCI";
    case topo::LinkKind::Sys:
      return "CPU to CPU";
    case topo::LinkKind::Net:
      return "network";
  }
  return "?";
}

}  // namespace tutti::tool
