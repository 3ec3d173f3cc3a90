// `tutti-topo show`: the machine as a tree.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "topo/xml/values.h"
#include "tutti_topo/draw_tree.h"
#include "tutti_topo/text.h"

namespace tutti::tool {
namespace {

constexpr std::size_t kColumns = 118;

std::size_t lettersOf(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

/// What a line of the tree says about a node: parts that may be broken between.
using Parts = std::vector<std::string>;

class Tree {
 public:
  explicit Tree(const topo::Machine& machine) : machine_(machine), tree_(treeOf(machine)) {}

  std::string text() {
    for (int system = 0; system < machine_.systems(); ++system) host(system);
    for (const int node : machine_.nodes(topo::NodeKind::NvSwitch)) nvSwitch(node);
    return std::move(out_);
  }

 private:
  void host(int system) {
    std::vector<int> cpus;
    for (const int cpu : machine_.nodes(topo::NodeKind::Cpu)) {
      if (machine_.node(cpu).system == system) cpus.push_back(cpu);
    }
    line("", "", "", {fmt::format("host {}", system)});
    for (const int cpu : cpus) node(cpu, "", cpu == cpus.back());
  }

  void nvSwitch(int number) {
    std::size_t gpus = 0;
    for (const int link : machine_.node(number).links)
      gpus += machine_.link(link).kind == topo::LinkKind::NvLink ? 1 : 0;
    line("", "", "", {fmt::format("NVSwitch: joins {} GPUs", gpus)});
  }

  void node(int number, const std::string& indent, bool last) {
    const std::string below = indent + (last ? "   " : "│  ");
    line(indent, last ? "└─ " : "├─ ", below, partsOf(number));
    std::vector<int> children;
    for (const int child : tree_.children[static_cast<std::size_t>(number)]) {
      // A device and its GPU, a NIC and its port, are one line where there is one of them.
      const topo::NodeKind kind = machine_.node(child).kind();
      const std::vector<int>& inside = tree_.children[static_cast<std::size_t>(child)];
      if (kind == topo::NodeKind::Device || kind == topo::NodeKind::Nic) {
        children.insert(children.end(), inside.begin(), inside.end());
      } else {
        children.push_back(child);
      }
    }
    for (const int child : children) node(child, below, child == children.back());
  }

  Parts partsOf(int number) const {
    switch (machine_.node(number).kind()) {
      case topo::NodeKind::Cpu:
        return cpuParts(number);
      case topo::NodeKind::Switch:
        return {"PCI switch " + topo::busIdText(machine_.node(number).id), upText(number)};
      case topo::NodeKind::Gpu:
        return gpuParts(number);
      case topo::NodeKind::Net:
        return netParts(number);
      case topo::NodeKind::Device:
      case topo::NodeKind::Nic:
      case topo::NodeKind::NvSwitch:
        break;
    }
    return {topo::nodeName(machine_, number)};
  }

  /// "PCI 48 GB/s": the link to what the node hangs under.
  std::string upText(int number) const {
    const int parent = tree_.parent[static_cast<std::size_t>(number)];
    if (parent < 0) return "not connected";
    const float local = linkBandwidth(machine_, number, parent, topo::LinkKind::Local);
    if (local > 0) return "virtual";
    return fmt::format("PCI {} GB/s", bandwidthText(linkBandwidth(machine_, number, parent, topo::LinkKind::Pci)));
  }

  Parts cpuParts(int cpu) const {
    const topo::CpuFacts& facts = machine_.facts<topo::CpuFacts>(cpu);
    const std::string numa = facts.numa < 0 ? "" : fmt::format("NUMA node {}, ", facts.numa);
    Parts parts{fmt::format("CPU, {}{}", numa, cpuKindText(facts.kind))};
    std::vector<std::pair<float, std::string>> others;
    for (const int number : machine_.node(cpu).links) {
      const topo::Link& link = machine_.link(number);
      if (link.kind != topo::LinkKind::Sys) continue;
      const std::string name = std::to_string(machine_.facts<topo::CpuFacts>(link.to).numa);
      if (!others.empty() && others.back().first == link.bandwidth) {
        others.back().second += " " + name;
      } else {
        others.emplace_back(link.bandwidth, name);
      }
    }
    for (const auto& [bandwidth, names] : others) {
      parts.push_back(fmt::format("{} GB/s to NUMA node {}", bandwidthText(bandwidth), names));
    }
    return parts;
  }

  Parts gpuParts(int gpu) const {
    const topo::GpuFacts& facts = machine_.facts<topo::GpuFacts>(gpu);
    Parts parts{fmt::format("GPU {} (rank {})", facts.dev, facts.rank)};
    if (facts.device < 0) return parts;
    parts.push_back(topo::busIdText(machine_.node(facts.device).id));
    parts.push_back(fmt::format("sm {}", facts.sm));
    if (machine_.facts<topo::DeviceFacts>(facts.device).partition >= 0) {
      parts.push_back(fmt::format("partition {}", machine_.facts<topo::DeviceFacts>(facts.device).partition));
    }
    parts.push_back(upText(facts.device));
    if (!facts.gdr) parts.emplace_back("no GPUDirect RDMA");
    for (const int number : machine_.node(facts.device).links) {
      const topo::Link& link = machine_.link(number);
      if (link.kind == topo::LinkKind::C2c) parts.push_back(fmt::format("C2C {} GB/s", bandwidthText(link.bandwidth)));
    }
    for (const auto& [bandwidth, ends] : nvLinksOf(facts.device)) {
      parts.push_back(fmt::format("NVLink {} GB/s to {}", bandwidthText(bandwidth), ends));
    }
    return parts;
  }

  /// What is at the ends of a device's NVLinks, by bandwidth, most first: "GPU 1 2".
  std::map<float, std::string, std::greater<>> nvLinksOf(int device) const {
    std::map<float, std::string, std::greater<>> ends;
    for (const int number : machine_.node(device).links) {
      const topo::Link& link = machine_.link(number);
      if (link.kind != topo::LinkKind::NvLink) continue;
      std::string& text = ends[link.bandwidth];
      const bool another = machine_.node(link.to).kind() == topo::NodeKind::Device && text.rfind("GPU", 0) == 0;
      if (!text.empty()) text += another ? " " : ", ";
      text += another ? std::to_string(machine_.facts<topo::DeviceFacts>(link.to).dev) : farEnd(link.to);
    }
    return ends;
  }

  std::string farEnd(int number) const {
    switch (machine_.node(number).kind()) {
      case topo::NodeKind::NvSwitch:
        return "NVSwitch";
      case topo::NodeKind::Device:
        return fmt::format("GPU {}", machine_.facts<topo::DeviceFacts>(number).dev);
      case topo::NodeKind::Cpu:
        return "CPU";
      case topo::NodeKind::Switch:
      case topo::NodeKind::Gpu:
      case topo::NodeKind::Nic:
      case topo::NodeKind::Net:
        break;
    }
    return topo::nodeName(machine_, number);
  }

  Parts netParts(int net) const {
    const topo::NetFacts& facts = machine_.facts<topo::NetFacts>(net);
    Parts parts{fmt::format("NIC {} (net {})", netLabel(machine_, net), facts.dev)};
    const int nic = tree_.parent[static_cast<std::size_t>(net)];
    const std::string up = nic < 0 ? "not connected" : upText(nic);
    if (nic >= 0 && up != "virtual") parts.push_back(topo::busIdText(machine_.node(nic).id));
    parts.push_back(fmt::format("{} GB/s", bandwidthText(facts.speed)));
    parts.push_back(up);
    if (facts.port > 1) parts.push_back(fmt::format("port {}", facts.port));
    if (facts.rail >= 0) parts.push_back(fmt::format("rail {}", facts.rail));
    if (facts.plane >= 0) parts.push_back(fmt::format("plane {}", facts.plane));
    if (!facts.gdr) parts.emplace_back("no GPUDirect RDMA");
    if (facts.collective) parts.emplace_back("CollNet");
    return parts;
  }

  /// Writes the parts, in several lines where one is too narrow.
  void line(const std::string& indent, const std::string& branch, const std::string& below, const Parts& parts) {
    std::string text = indent + branch;
    bool first = true;
    for (const std::string& part : parts) {
      const std::string piece = first ? part : ", " + part;
      if (!first && lettersOf(text) + lettersOf(piece) > kColumns) {
        out_ += text + ",\n";
        text = fmt::format("{}       {}", below, part);
        continue;
      }
      text += piece;
      first = false;
    }
    out_ += text + "\n";
  }

  const topo::Machine& machine_;
  MachineTree tree_;
  std::string out_;
};

}  // namespace

std::string showText(const topo::Machine& machine) {
  return Tree(machine).text();
}

}  // namespace tutti::tool
