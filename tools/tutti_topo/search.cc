// `tutti-topo search`: what was found, for readers and for programs.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "topo/xml/values.h"
#include "tutti_topo/draw_channels.h"
#include "tutti_topo/draw_tree.h"
#include "tutti_topo/text.h"

namespace tutti::tool {
namespace {

using nlohmann::ordered_json;

std::string netName(const topo::Machine& machine, int net) {
  if (machine.systems() == 1) return netLabel(machine, net);
  return fmt::format("{}@host{}", netLabel(machine, net), machine.node(net).system);
}

std::string channelText(const topo::Machine& machine, const topo::Graph& graph, const topo::GraphChannel& channel) {
  std::string text;
  if (channel.netIn >= 0) text += netName(machine, channel.netIn) + " > ";
  const bool headed = graph.pattern == topo::Pattern::Nvls || graph.pattern == topo::Pattern::CollNetDirect;
  if (headed && !channel.gpus.empty()) {
    text += "head " + gpuLabel(machine, channel.gpus.front());
  } else {
    text += orderText(machine, channel.gpus);
  }
  if (channel.netOut >= 0) text += " > " + netName(machine, channel.netOut);
  return text;
}

std::string headline(const Found& found, bool interNode) {
  const topo::Graph& graph = found.graph;
  const int n = graph.nChannels();
  std::string text = fmt::format("{} ({}): {} channel{} x {} GB/s between GPUs over {}", topo::graphName(graph.id),
                                 topo::patternName(graph.pattern), n, n == 1 ? "" : "s", bandwidthText(graph.bwIntra),
                                 topo::pathTypeName(graph.typeIntra));
  if (interNode) {
    text +=
        fmt::format(", x {} through NICs over {}", bandwidthText(graph.bwInter), topo::pathTypeName(graph.typeInter));
  }
  text += fmt::format("\n  total {} GB/s", bandwidthText(static_cast<double>(graph.bwIntra) * n));
  if (interNode) text += fmt::format(", {} through NICs", bandwidthText(static_cast<double>(graph.bwInter) * n));
  if (found.bound > 0) text += fmt::format("; bound {}", bandwidthText(found.bound));
  text += fmt::format("; {}", graph.sameChannels ? "all channels alike" : "channels differ");
  if (interNode) text += fmt::format("; crossNic {}", graph.crossNic);
  return text + fmt::format("; found in {:.2f} ms\n", found.milliseconds);
}

ordered_json gpuJson(const topo::Machine& machine, int gpu) {
  const topo::GpuFacts& facts = machine.facts<topo::GpuFacts>(gpu);
  return {{"rank", facts.rank},
          {"dev", facts.dev},
          {"host", machine.node(gpu).system},
          {"sm", facts.sm},
          {"busId", facts.device < 0 ? "" : topo::busIdText(machine.node(facts.device).id)}};
}

ordered_json netJson(const topo::Machine& machine, int net) {
  if (net < 0) return nullptr;
  const topo::NetFacts& facts = machine.facts<topo::NetFacts>(net);
  return {{"name", facts.name}, {"dev", facts.dev}, {"host", machine.node(net).system}};
}

/// As written: 0.1f is 0.1, not 0.10000000149.
double shortest(float value) {
  return std::round(static_cast<double>(value) * 1e4) / 1e4;
}

ordered_json graphJson(const topo::Machine& machine, const Found& found) {
  const topo::Graph& graph = found.graph;
  ordered_json json{{"graph", topo::graphName(graph.id)},
                    {"pattern", topo::patternName(graph.pattern)},
                    {"nChannels", graph.nChannels()},
                    {"bwIntra", shortest(graph.bwIntra)},
                    {"bwInter", shortest(graph.bwInter)},
                    {"typeIntra", topo::pathTypeName(graph.typeIntra)},
                    {"typeInter", topo::pathTypeName(graph.typeInter)},
                    {"sameChannels", graph.sameChannels},
                    {"crossNic", graph.crossNic},
                    {"bound", shortest(found.bound)},
                    {"searchMilliseconds", std::round(found.milliseconds * 1e3) / 1e3},
                    {"channels", ordered_json::array()}};
  for (const topo::GraphChannel& channel : graph.channels) {
    ordered_json ranks = ordered_json::array();
    ordered_json gpus = ordered_json::array();
    for (const int gpu : channel.gpus) {
      ranks.push_back(machine.facts<topo::GpuFacts>(gpu).rank);
      gpus.push_back(machine.facts<topo::GpuFacts>(gpu).dev);
    }
    json["channels"].push_back({{"gpus", gpus},
                                {"ranks", ranks},
                                {"netIn", netJson(machine, channel.netIn)},
                                {"netOut", netJson(machine, channel.netOut)}});
  }
  return json;
}

}  // namespace

std::string searchText(const topo::Machine& machine, const std::vector<Found>& found, bool interNode) {
  std::string text;
  for (const Found& one : found) {
    if (!text.empty()) text += '\n';
    const topo::Graph& graph = one.graph;
    if (graph.channels.empty()) {
      text += fmt::format("{}: none ({:.2f} ms)\n", topo::graphName(graph.id), one.milliseconds);
      continue;
    }
    text += headline(one, interNode);
    for (const Bundle& bundle :
         bundlesOf(graph, {}, graph.channels.size() * machine.nodes(topo::NodeKind::Gpu).size())) {
      text += fmt::format("  {:>3}: {}\n", rangesText(bundle.channels), channelText(machine, graph, *bundle.order));
    }
  }
  return text;
}

std::string searchJson(const topo::Machine& machine, const std::vector<Found>& found, bool interNode) {
  ordered_json json{{"interNode", interNode},
                    {"gpus", ordered_json::array()},
                    {"nets", ordered_json::array()},
                    {"graphs", ordered_json::array()}};
  for (const int gpu : machine.nodes(topo::NodeKind::Gpu)) json["gpus"].push_back(gpuJson(machine, gpu));
  for (const int net : machine.nodes(topo::NodeKind::Net)) json["nets"].push_back(netJson(machine, net));
  for (const Found& one : found) json["graphs"].push_back(graphJson(machine, one));
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace tutti::tool
