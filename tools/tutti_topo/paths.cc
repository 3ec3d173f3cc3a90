// `tutti-topo paths`: how far everything is from everything.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tutti_topo/draw_tree.h"
#include "tutti_topo/text.h"

namespace tutti::tool {
namespace {

struct Item {
  int node = -1;
  std::string name;
};

std::vector<Item> itemsOf(const topo::Machine& machine) {
  std::vector<Item> items;
  for (const int gpu : machine.nodes(topo::NodeKind::Gpu)) items.push_back({gpu, "GPU" + gpuLabel(machine, gpu)});
  int number = 0;
  for (const int net : machine.nodes(topo::NodeKind::Net)) items.push_back({net, fmt::format("NIC{}", number++)});
  return items;
}

/// A matrix: `cell` says what stands between two nodes.
template <typename Cell>
std::string matrix(const std::vector<Item>& items, Cell cell) {
  std::vector<std::vector<std::string>> cells;
  std::size_t width = 4;
  for (const Item& row : items) {
    width = std::max(width, row.name.size());
    cells.emplace_back();
    for (const Item& column : items) {
      cells.back().push_back(cell(row.node, column.node));
      width = std::max(width, cells.back().back().size());
    }
  }
  std::string text = fmt::format("{:<{}}", "", width);
  for (const Item& item : items) text += fmt::format(" {:>{}}", item.name, width);
  text += '\n';
  for (std::size_t i = 0; i < items.size(); ++i) {
    text += fmt::format("{:<{}}", items[i].name, width);
    for (const std::string& word : cells[i]) text += fmt::format(" {:>{}}", word, width);
    text += '\n';
  }
  return text;
}

const char* meaningOf(topo::PathType type) {
  switch (type) {
    case topo::PathType::Loc:
      return "the same device";
    case topo::PathType::Nvl:
      return "NVLink and NVSwitch only";
    case topo::PathType::Nvb:
      return "NVLink through one GPU in between";
    case topo::PathType::C2c:
      return "chip-to-chip link between GPU and CPU";
    case topo::PathType::Pix:
      return "at most one PCI switch";
    case topo::PathType::Pxb:
      return "several PCI switches, no host bridge";
    case topo::PathType::P2c:
      return "GPU, chip-to-chip link, CPU, PCI, NIC";
    case topo::PathType::Pxn:
      return "NVLink to another GPU that is near the NIC";
    case topo::PathType::Phb:
      return "through a PCI host bridge: the CPU of one NUMA node";
    case topo::PathType::Sys:
      return "over the link between CPUs";
    case topo::PathType::Net:
      return "only over the network";
    case topo::PathType::Dis:
      return "not connected";
  }
  return "?";
}

}  // namespace

std::string pathsText(const topo::Topology& topology) {
  const topo::Machine& machine = topology.machine;
  const std::vector<Item> items = itemsOf(machine);
  std::set<topo::PathType> used;
  const auto bothNics = [&](int from, int to) {
    return machine.node(from).kind() == topo::NodeKind::Net && machine.node(to).kind() == topo::NodeKind::Net;
  };
  std::string text = "Types of the ways, from row to column\n\n";
  text += matrix(items, [&](int from, int to) -> std::string {
    if (from == to) return "X";
    if (bothNics(from, to)) return "-";
    used.insert(topology.paths.of(from, to).type);
    return topo::pathTypeName(topology.paths.of(from, to).type);
  });
  text += "\nBandwidths of the ways, GB/s\n\n";
  text += matrix(items, [&](int from, int to) -> std::string {
    if (from == to) return "X";
    return bothNics(from, to) ? "-" : bandwidthText(topology.paths.of(from, to).bandwidth);
  });
  text += '\n';
  for (const topo::PathType type : used) text += fmt::format("{:<4} {}\n", topo::pathTypeName(type), meaningOf(type));
  for (const Item& item : items) {
    if (machine.node(item.node).kind() != topo::NodeKind::Net) continue;
    const std::string host = machine.systems() > 1 ? fmt::format(" of host {}", machine.node(item.node).system) : "";
    text += fmt::format("{:<6} {}{}\n", item.name, netLabel(machine, item.node), host);
  }
  return text;
}

}  // namespace tutti::tool
