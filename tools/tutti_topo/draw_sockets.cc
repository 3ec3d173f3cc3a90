#include "tutti_topo/draw_sockets.h"

#include <fmt/format.h>

#include <algorithm>

#include "topo/xml/values.h"
#include "tutti_topo/draw_text.h"
#include "tutti_topo/draw_tree.h"

namespace tutti::tool {
namespace {

constexpr int kColumnsOfOneHalf = 4;   // so few need no second half
constexpr int kColumnsBesideGpus = 8;  // likewise where the other sockets have no GPUs

/// How many NICs of one parent have a column each; some hosts have dozens of virtual ones.
std::size_t ownColumns(std::size_t gpus) {
  return std::max<std::size_t>(gpus + 2, 4);
}

struct Planner {
  const topo::Machine& machine;
  const MachineTree& tree;
  SocketPlan plan;

  const std::vector<int>& below(int node) const { return tree.children[static_cast<std::size_t>(node)]; }

  /// The GPUs and nets that hang directly under `node`, side by side.
  void placeLeaves(int node) {
    std::vector<Column> gpus;
    std::vector<Column> nets;
    for (const int child : below(node)) {
      const topo::NodeKind kind = machine.node(child).kind();
      for (const int leaf : below(child)) {
        const topo::NodeKind leafKind = machine.node(leaf).kind();
        if (kind == topo::NodeKind::Device && leafKind == topo::NodeKind::Gpu)
          gpus.push_back({.gpu = leaf, .gpuParent = node});
        if (kind == topo::NodeKind::Nic && leafKind == topo::NodeKind::Net) {
          nets.push_back({.net = leaf, .nic = child, .netParent = node});
        }
      }
    }
    plan.nets = plan.nets || !nets.empty();
    if (const std::size_t own = ownColumns(gpus.size()); nets.size() > own + 1) {
      for (std::size_t i = own + 1; i < nets.size(); ++i) nets[own].moreNets.push_back(nets[i].net);
      nets.resize(own + 1);
    }
    for (std::size_t i = 0; i < std::max(gpus.size(), nets.size()); ++i) {
      Column column = i < gpus.size() ? gpus[i] : Column{};
      if (i < nets.size()) {
        column.net = nets[i].net;
        column.nic = nets[i].nic;
        column.netParent = node;
        column.moreNets = nets[i].moreNets;
      }
      plan.columns.push_back(column);
    }
  }

  void place(int node, int level) {
    const std::size_t first = plan.columns.size();
    placeLeaves(node);
    for (const int child : below(node)) {
      if (machine.node(child).kind() == topo::NodeKind::Switch) place(child, level + 1);
    }
    if (plan.columns.size() == first) plan.columns.emplace_back();
    if (machine.node(node).kind() != topo::NodeKind::Switch) return;
    plan.levels = std::max(plan.levels, level + 1);
    plan.switches.push_back({.node = node,
                             .parent = tree.parent[static_cast<std::size_t>(node)],
                             .level = level,
                             .first = static_cast<int>(first),
                             .columns = static_cast<int>(plan.columns.size() - first)});
  }
};

SocketPlan planOf(const topo::Machine& machine, const MachineTree& tree, int cpu) {
  Planner planner{machine, tree, {}};
  planner.plan.cpu = cpu;
  planner.place(cpu, -1);
  // A switch must have its place before what is joined to it.
  std::stable_sort(planner.plan.switches.begin(), planner.plan.switches.end(),
                   [](const SwitchSpan& a, const SwitchSpan& b) { return a.level < b.level; });
  return std::move(planner.plan);
}

int columnsOf(const Unit& unit) {
  int sum = 0;
  for (const SocketPlan& socket : unit.sockets) sum += static_cast<int>(socket.columns.size());
  return sum;
}

bool hasGpus(const Unit& unit) {
  for (const SocketPlan& socket : unit.sockets) {
    for (const Column& column : socket.columns) {
      if (column.gpu >= 0) return true;
    }
  }
  return false;
}

void chooseHalves(std::vector<Unit>& units) {
  int total = 0;
  for (const Unit& unit : units) total += columnsOf(unit);
  const auto withGpus = std::count_if(units.begin(), units.end(), hasGpus);
  if (total <= kColumnsOfOneHalf || (withGpus <= 1 && total <= kColumnsBesideGpus)) return;
  int upper = 0;
  bool full = false;
  for (Unit& unit : units) {
    full = full || (upper > 0 && upper + columnsOf(unit) > (total + 1) / 2);
    unit.upper = !full;
    upper += columnsOf(unit);
  }
}

}  // namespace

std::vector<Unit> unitsOf(const topo::Machine& machine) {
  const MachineTree tree = treeOf(machine);
  std::vector<Unit> units;
  for (const int cpu : machine.nodes(topo::NodeKind::Cpu)) {
    const int system = machine.node(cpu).system;
    const bool sameHost = machine.systems() > 1 && !units.empty() && units.back().system == system;
    if (!sameHost) units.push_back({.system = system, .sockets = {}});
    units.back().sockets.push_back(planOf(machine, tree, cpu));
  }
  chooseHalves(units);
  return units;
}

Box gpuBox(const topo::Machine& machine, int gpu, const Metrics& metrics) {
  const topo::GpuFacts& facts = machine.facts<topo::GpuFacts>(gpu);
  const std::string label = gpuLabel(machine, gpu);
  const std::string bus = topo::busIdText(facts.device < 0 ? 0 : machine.node(facts.device).id);
  Box box{.kind = BoxKind::Gpu, .node = gpu};
  const double width = metrics.gpuWidth - 6;
  if (metrics.column < 60) {
    box.title = fittingText({label}, width, metrics.titleSize, true);
  } else {
    box.title = fittingText({"GPU " + label, label}, width, metrics.titleSize, true);
    box.detail = fittingText({fmt::format("sm {}", facts.sm)}, width, metrics.textSize);
    box.more = fittingText({bus, bus.substr(5)}, width, metrics.textSize);
  }
  box.tip = fmt::format("GPU {} of host {}, rank {}, sm {}, {}{}", facts.dev, machine.node(gpu).system, facts.rank,
                        facts.sm, bus, facts.gdr ? ", GPUDirect RDMA" : "");
  return box;
}

Box netBox(const topo::Machine& machine, int net, const std::vector<int>& more, const Metrics& metrics) {
  const topo::NetFacts& facts = machine.facts<topo::NetFacts>(net);
  const std::string name = netLabel(machine, net);
  Box box{.kind = BoxKind::Net, .node = net};
  const double width = metrics.netWidth - 6;
  if (metrics.column < 60) {
    box.title = fittingText({fmt::format("n{}", facts.dev)}, width, metrics.textSize);
  } else {
    box.title = fittingText({name, fmt::format("net {}", facts.dev)}, width, metrics.textSize, true);
    box.detail =
        fittingText({bandwidthText(facts.speed) + " GB/s", bandwidthText(facts.speed)}, width, metrics.textSize);
  }
  box.tip =
      fmt::format("NIC {} (net {}) of host {}, port {}, {} GB/s{}{}", name, facts.dev, machine.node(net).system,
                  facts.port, bandwidthText(facts.speed), facts.rail >= 0 ? fmt::format(", rail {}", facts.rail) : "",
                  facts.gdr ? ", GPUDirect RDMA" : "");
  for (const int other : more) box.tip += fmt::format("; NIC {}", netLabel(machine, other));
  if (!more.empty()) {
    box.title = fittingText({fmt::format("{} more", more.size() + 1), fmt::format("n ×{}", more.size() + 1)}, width,
                            metrics.textSize, metrics.column >= 60);
    if (!box.detail.empty()) box.detail = fittingText({"NICs", "…"}, width, metrics.textSize);
  }
  return box;
}

Box cpuBox(const topo::Machine& machine, int cpu, double width, const Metrics& metrics) {
  const topo::CpuFacts& facts = machine.facts<topo::CpuFacts>(cpu);
  const std::string kind = cpuKindText(facts.kind);
  Box box{.kind = BoxKind::Cpu, .node = cpu};
  const std::string numa = facts.numa < 0 ? "CPU" : fmt::format("NUMA {}", facts.numa);  // some files do not know it
  box.title =
      fittingText({facts.numa < 0 ? "CPU · " + kind : fmt::format("CPU · {} · {}", numa, kind),
                   fmt::format("{} · {}", numa, kind), facts.numa < 0 ? "CPU" : fmt::format("CPU {}", facts.numa)},
                  width - 10, metrics.textSize + 1, true);
  box.tip = fmt::format("NUMA node {}, {}{}", facts.numa, kind,
                        facts.affinity.empty() ? "" : ", processors " + cleanText(facts.affinity));
  return box;
}

Box switchBox(const topo::Machine& machine, int node, double width, const Metrics& metrics) {
  const std::string bus = topo::busIdText(machine.node(node).id);
  Box box{.kind = BoxKind::Switch, .node = node, .tip = "PCI switch " + bus};
  box.title =
      fittingText({"PCI switch " + bus, "PCI switch " + bus.substr(5), "switch " + bus.substr(5, 2), "switch", "sw"},
                  width - 8, metrics.textSize);
  return box;
}

}  // namespace tutti::tool
