#include "tutti_topo/draw_legend.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tutti_topo/draw_text.h"
#include "tutti_topo/draw_tree.h"

namespace tutti::tool {
namespace {

constexpr double kWidth = 420;
constexpr double kSide = 24;
constexpr double kWideMachine = 1250;  // wider ones have the legend below
constexpr std::size_t kMostLinks = 9;

using Rows = std::vector<LegendRow>;

void addText(Rows& rows, LegendKind kind, const std::string& text) {
  LegendRow row{.kind = kind};
  row.text = fittingText({text}, kWidth - 8, legendTextSize(kind), kind != LegendKind::Text);
  if (row.text != text) row.tip = text;
  rows.push_back(std::move(row));
}

std::string counted(std::size_t count, const std::string& one, const std::string& many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

void addMachine(Rows& rows, const topo::Machine& machine, const DrawOptions& options) {
  addText(rows, LegendKind::Title, options.title.empty() ? "machine" : options.title);
  const auto gpus = machine.nodes(topo::NodeKind::Gpu);
  std::string text = machine.systems() > 1 ? fmt::format("{} hosts, ", machine.systems()) : "";
  text += counted(gpus.size(), "GPU", "GPUs");
  if (!gpus.empty()) text += fmt::format(" (sm {})", machine.facts<topo::GpuFacts>(gpus[0]).sm);
  text += ", " + counted(machine.nodes(topo::NodeKind::Net).size(), "NIC", "NICs");
  addText(rows, LegendKind::Text, text);
  const auto cpus = machine.nodes(topo::NodeKind::Cpu);
  if (cpus.empty()) return;
  addText(rows, LegendKind::Text,
          fmt::format("{}, {}", counted(cpus.size(), "NUMA node", "NUMA nodes"), cpuKindText(machine.cpuKind())));
}

void addParts(Rows& rows, const topo::Machine& machine, const Layout& layout) {
  if (layout.metrics.column >= 60) return;  // the boxes themselves say it
  LegendRow gpu{.kind = LegendKind::Part, .text = "GPU, number: rank", .part = BoxKind::Gpu};
  rows.push_back(gpu);
  if (machine.nodes(topo::NodeKind::Net).empty()) return;
  const float speed = machine.facts<topo::NetFacts>(machine.nodes(topo::NodeKind::Net)[0]).speed;
  LegendRow nic{.kind = LegendKind::Part, .part = BoxKind::Net};
  nic.text = fmt::format("NIC, {} GB/s, n: number on its host", bandwidthText(speed));
  rows.push_back(nic);
}

void addLinks(Rows& rows, const topo::Machine& machine) {
  std::map<std::pair<int, float>, int> seen;  // by kind, and more bandwidth first
  for (int i = 0; i < machine.linkCount(); ++i) {
    const topo::Link& link = machine.link(i);
    if (link.kind == topo::LinkKind::Local || link.kind == topo::LinkKind::Net) continue;
    ++seen[{static_cast<int>(link.kind), -link.bandwidth}];
  }
  if (seen.empty()) return;
  addText(rows, LegendKind::Heading, "Links, GB/s per direction");
  std::size_t shown = 0;
  for (const auto& [key, count] : seen) {
    if (++shown > kMostLinks) break;
    const auto kind = static_cast<topo::LinkKind>(key.first);
    const char* what = kind == topo::LinkKind::NvLink && !machine.nodes(topo::NodeKind::NvSwitch).empty()
                           ? "NVLinks of a GPU"
                           : linkKindText(kind);
    rows.push_back({.kind = LegendKind::Link,
                    .text = fmt::format("{}  {}", bandwidthText(-key.second), what),
                    .tip = fmt::format("{} directions", count),
                    .link = kind,
                    .bandwidth = -key.second});
  }
}

std::string wayText(const topo::Machine& machine, const topo::Graph& graph, const topo::GraphChannel& channel,
                    std::size_t most) {
  std::string text = orderText(machine, channel.gpus, most);
  if (graph.pattern == topo::Pattern::Nvls || graph.pattern == topo::Pattern::CollNetDirect) {
    text = fmt::format("head {}", gpuLabel(machine, channel.gpus.front()));
  } else if (graph.pattern == topo::Pattern::Ring && channel.netIn < 0 && channel.gpus.size() > 1 && most > 16) {
    text += fmt::format(" {}", gpuLabel(machine, channel.gpus.front()));
  }
  const auto net = [&](int n) {
    if (machine.systems() == 1) return netLabel(machine, n);
    return fmt::format("host {} {}", machine.node(n).system, netLabel(machine, n));
  };
  if (channel.netIn >= 0) text = fmt::format("{} → {}", net(channel.netIn), text);
  if (channel.netOut >= 0) text += fmt::format(" → {}", net(channel.netOut));
  return text;
}

void addGraph(Rows& rows, const topo::Machine& machine, const DrawOptions& options,
              const std::vector<Bundle>& bundles) {
  const topo::Graph& graph = *options.graph;
  addText(rows, LegendKind::Heading,
          fmt::format("{}: {}", topo::graphName(graph.id),
                      counted(static_cast<std::size_t>(graph.nChannels()), "channel", "channels")));
  const bool inter = !graph.channels.empty() && graph.channels[0].netIn >= 0;
  std::string sum = fmt::format("{} × {} = {} GB/s between GPUs", graph.nChannels(), bandwidthText(graph.bwIntra),
                                bandwidthText(static_cast<double>(graph.bwIntra) * graph.nChannels()));
  addText(rows, LegendKind::Text, sum + fmt::format(" ({})", topo::pathTypeName(graph.typeIntra)));
  if (inter) {
    addText(rows, LegendKind::Text,
            fmt::format("{} × {} = {} GB/s through NICs ({})", graph.nChannels(), bandwidthText(graph.bwInter),
                        bandwidthText(static_cast<double>(graph.bwInter) * graph.nChannels()),
                        topo::pathTypeName(graph.typeInter)));
  }
  if (options.bound > 0) {
    addText(rows, LegendKind::Text, fmt::format("bound: at most {} GB/s", bandwidthText(options.bound)));
  }
  for (std::size_t b = 0; b < bundles.size(); ++b) {
    const std::string name = rangesText(bundles[b].channels) + ":  ";
    const double width = kWidth - kSwatch - 8;
    LegendRow row{.kind = LegendKind::Channel, .bandwidth = bundles[b].bandwidth, .bundle = b};
    std::vector<std::string> candidates;
    for (const std::size_t most :
         {std::size_t{1} << 20, std::size_t{16}, std::size_t{8}, std::size_t{6}, std::size_t{4}}) {
      candidates.push_back(name + wayText(machine, graph, *bundles[b].order, most));
    }
    row.text = fittingText(candidates, width, legendTextSize(row.kind));
    row.tip = fmt::format("{}: {} GB/s", candidates[0], bandwidthText(row.bandwidth));
    rows.push_back(std::move(row));
  }
  const bool hidden = std::any_of(bundles.begin(), bundles.end(), [](const Bundle& bundle) { return !bundle.shown; });
  if (hidden) addText(rows, LegendKind::Text, "Pale: hidden; in a browser a click shows them.");
}

double rowHeight(LegendKind kind) {
  switch (kind) {
    case LegendKind::Title:
      return 36;
    case LegendKind::Heading:
      return 40;
    case LegendKind::Text:
    case LegendKind::Link:
    case LegendKind::Part:
    case LegendKind::Channel:
      return 23;
  }
  return 23;
}

void placeBeside(Layout& layout, Rows& rows) {
  const double x = layout.width + kSide - 16;
  double y = 24;
  for (LegendRow& row : rows) {
    row.at = {x, y, kWidth, rowHeight(row.kind)};
    y = row.at.bottom();
  }
  layout.width = x + kWidth + kSide;
  layout.height = std::max(layout.height, y + kSide);
}

void placeBelow(Layout& layout, Rows& rows) {
  double total = 0;
  for (const LegendRow& row : rows) total += rowHeight(row.kind);
  const double columns = std::max(1.0, std::floor((layout.width - kSide) / (kWidth + kSide)));
  const double tall = std::max(total / columns + 40, 150.0);
  double x = kSide;
  const double top = layout.height + 4;
  double y = top;
  double lowest = y;
  for (LegendRow& row : rows) {
    const double height = rowHeight(row.kind);
    const bool section = row.kind == LegendKind::Heading && y + 3 * height > top + tall;
    if (y > top && (section || y + height > top + tall)) {
      x += kWidth + kSide;
      y = row.kind == LegendKind::Heading ? top - 4 : top + 13;  // first lines of columns level with the title
    }
    row.at = {x, y, kWidth, height};
    y += height;
    lowest = std::max(lowest, y);
  }
  layout.height = lowest + kSide;
  layout.width = std::max(layout.width, x + kWidth + kSide);
}

}  // namespace

double legendTextSize(LegendKind kind) {
  switch (kind) {
    case LegendKind::Title:
      return 22;
    case LegendKind::Heading:
      return 16;
    case LegendKind::Text:
    case LegendKind::Link:
    case LegendKind::Part:
    case LegendKind::Channel:
      return 14;
  }
  return 14;
}

std::vector<LegendRow> placeLegend(Layout& layout, const topo::Machine& machine, const DrawOptions& options,
                                   const std::vector<Bundle>& bundles) {
  Rows rows;
  addMachine(rows, machine, options);
  addParts(rows, machine, layout);
  addLinks(rows, machine);
  if (options.graph != nullptr) addGraph(rows, machine, options, bundles);
  if (layout.width > kWideMachine) {
    placeBelow(layout, rows);
  } else {
    placeBeside(layout, rows);
  }
  return rows;
}

}  // namespace tutti::tool
