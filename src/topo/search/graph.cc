#include "topo/search/graph.h"

#include "base/log.h"
#include "topo/machine/machine.h"

namespace tutti::topo {

const char* patternName(Pattern pattern) {
  switch (pattern) {
    case Pattern::BalancedTree:
      return "BALANCED_TREE";
    case Pattern::SplitTree:
      return "SPLIT_TREE";
    case Pattern::Tree:
      return "TREE";
    case Pattern::Ring:
      return "RING";
    case Pattern::Nvls:
      return "NVLS";
    case Pattern::CollNetDirect:
      return "COLLNET_DIRECT";
  }
  return "?";
}

const char* graphName(GraphId id) {
  switch (id) {
    case GraphId::Ring:
      return "ring";
    case GraphId::Tree:
      return "tree";
    case GraphId::CollNetChain:
      return "collnetChain";
    case GraphId::Nvls:
      return "nvls";
    case GraphId::CollNetDirect:
      return "collnetDirect";
  }
  return "?";
}

std::vector<std::string> graphLines(const Machine& machine, const Graph& graph) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("Pattern {}, crossNic {}, nChannels {}, bw {:f}/{:f}, type {}/{}, sameChannels {}",
                              static_cast<int>(graph.pattern), graph.crossNic, graph.nChannels(), graph.bwIntra,
                              graph.bwInter, pathTypeName(graph.typeIntra), pathTypeName(graph.typeInter),
                              graph.sameChannels ? 1 : 0));
  for (std::size_t c = 0; c < graph.channels.size(); ++c) {
    const GraphChannel& channel = graph.channels[c];
    std::string line = fmt::format("{:2} :", c);
    if (channel.netIn >= 0) (line += ' ') += nodeName(machine, channel.netIn);
    for (const int gpu : channel.gpus) (line += ' ') += nodeName(machine, gpu);
    if (channel.netOut >= 0) (line += ' ') += nodeName(machine, channel.netOut);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace tutti::topo
