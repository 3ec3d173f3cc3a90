#include "comm/agreement/comm_graphs.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "base/log.h"
#include "base/ranks/control_channel.h"
#include "comm/agreement/host_topology.h"
#include "comm/agreement/own_machine.h"
#include "comm/settings/topology_settings.h"
#include "topo/channels/inter_node.h"
#include "topo/machine/lines.h"
#include "topo/machine/peer_info.h"
#include "topo/machine/rank_layout.h"
#include "topo/search/graph_xml.h"
#include "topo/search/search.h"
#include "topo/search/topology.h"
#include "topo/xml/xml.h"

namespace tutti::comm {

namespace {

/// Whether graphs are to be looked for at all. All ranks say the same: they see the same table.
bool everybodyKnows(const TopologyContext& context) {
  const auto silent = std::find_if(context.peers.begin(), context.peers.end(),
                                   [](const topo::PeerInfo& peer) { return peer.machineHash == 0; });
  if (silent != context.peers.end()) {
    info(kGraph, "Rank {} on host {} knows nothing of its machine: rings follow the ranks' numbers", silent->rank,
         silent->hostName.data());
    return false;
  }
  for (int node = 0; node < context.layout.nNodes(); ++node) {
    const std::size_t ranks = context.layout.ranksOnNode(node).size();
    if (ranks <= static_cast<std::size_t>(topo::kMostLocalRanks)) continue;
    const auto first = static_cast<std::size_t>(context.layout.ranksOnNode(node).front());
    info(kGraph, "Host {} has {} ranks, more than {}: rings follow the ranks' numbers",
         context.peers[first].hostName.data(), ranks, topo::kMostLocalRanks);
    return false;
  }
  return true;
}

Status writeDump(const TopologyContext& context, const DumpFile& dump, const char* setting,
                 const topo::XmlElement& root) {
  const topo::PeerInfo& self = context.peers[static_cast<std::size_t>(context.layout.rank())];
  return topo::writeXmlFile(dump.path, root,
                            fmt::format("{}, rank {} on host {}", setting, self.rank, self.hostName.data()));
}

/// Puts the graphs of NCCL_GRAPH_FILE in the place of those that were searched.
Status replaceFromFile(const TopologySettings& settings, const topo::Topology& topology, topo::GraphSet& graphs) {
  if (settings.graphFile.empty()) return {};
  ASSIGN(const topo::GraphSet given,
         topo::readGraphFile(settings.graphFile, topology.machine, topology.interNode, "NCCL_GRAPH_FILE"));
  for (topo::Graph topo::GraphSet::*graph :
       {&topo::GraphSet::ring, &topo::GraphSet::tree, &topo::GraphSet::collNetChain, &topo::GraphSet::collNetDirect,
        &topo::GraphSet::nvls}) {
    if (!topo::replacesSearch(given.*graph, settings.crossNic)) continue;
    graphs.*graph = given.*graph;
    info(kGraph | kEnv, "NCCL_GRAPH_FILE={}: its {} graph is used, with {} channels", settings.graphFile,
         topo::graphName((given.*graph).id), (given.*graph).nChannels());
  }
  return {};
}

void logGraphs(const topo::Topology& topology, const topo::GraphSet& graphs) {
  const topo::MachineBandwidth bandwidth = topo::machineBandwidth(topology.machine, topology.paths, topology.interNode);
  for (const std::string& line : topo::machineLines(topology.machine, bandwidth)) info(kGraph, "{}", line);
  for (const topo::Graph* graph :
       {&graphs.ring, &graphs.tree, &graphs.collNetChain, &graphs.collNetDirect, &graphs.nvls}) {
    if (graph->channels.empty()) continue;
    for (const std::string& line : topo::graphLines(topology.machine, *graph)) info(kGraph, "{}", line);
  }
}

/// What one rank knows of its node.
struct OwnNode {
  topo::GraphReport words;
  OwnNics nics;
  NodeHeads heads;
};

OwnNics nicsOfRank(const topo::Topology& topology, const topo::Graph& ring, int localRank,
                   const topo::PathSettings& settings) {
  for (const int gpu : topology.machine.nodes(topo::NodeKind::Gpu)) {
    if (topology.machine.facts<topo::GpuFacts>(gpu).rank == localRank) return nicsOf(topology, ring, gpu, settings);
  }
  return {};
}

/// The words about our own node; empty ones if its machine cannot be used.
Result<OwnNode> searchOwnNode(const TopologyContext& context, const OwnMachine& own) {
  const TopologySettings& settings = context.settings;
  const int rank = context.layout.rank();
  ASSIGN(const std::optional<JoinedMachine> joined, joinMachines(context, own));
  if (!joined) return OwnNode{};
  if (settings.dump.wantedBy(rank)) TRY(writeDump(context, settings.dump, "NCCL_TOPO_DUMP_FILE", joined->elements));
  const auto built = buildHostTopology(context, *joined);
  if (!built.ok() && mustWork(settings, built.status())) return built.status();
  if (!built.ok() || !built.value()) return OwnNode{};
  const topo::Topology& topology = *built.value();
  topo::SearchSettings search;
  search.interNode = topology.interNode;
  search.crossNic = settings.crossNic;
  search.collNet = context.collNet;
  topo::GraphSet graphs = topo::searchGraphs(topology.machine, topology.paths, search);
  TRY(replaceFromFile(settings, topology, graphs));
  logGraphs(topology, graphs);
  if (settings.graphDump.wantedBy(rank)) {
    ASSIGN(const topo::XmlElement written, topo::writeGraphs(topology.machine, graphs));
    TRY(writeDump(context, settings.graphDump, "NCCL_GRAPH_DUMP_FILE", written));
  }
  const int localRank = context.layout.localRank();
  return OwnNode{topo::describeGraphs(topology.machine, graphs, localRank),
                 nicsOfRank(topology, graphs.ring, localRank, settings.paths),
                 context.collNet ? headsOfGraphs(topology.machine, graphs) : NodeHeads{}};
}

/// Some rank has no graphs, so nobody uses any.
CommGraphs withoutGraphs(const TopologySettings& settings) {
  if (!settings.graphFile.empty()) {
    info(kGraph | kEnv, "NCCL_GRAPH_FILE={} is not used: rings follow the ranks' numbers", settings.graphFile);
  }
  return {};
}

void saySilent(const TopologyContext& context, std::span<const topo::GraphReport> words) {
  const auto silent = std::find_if(words.begin(), words.end(), [](const topo::GraphReport& own) {
    return own.of(topo::GraphId::Ring).channels == 0 || own.of(topo::GraphId::Tree).channels == 0;
  });
  if (silent == words.end()) return;
  const topo::PeerInfo& peer = context.peers[static_cast<std::size_t>(silent - words.begin())];
  info(kGraph, "Rank {} on host {} has no graphs: rings follow the ranks' numbers", peer.rank, peer.hostName.data());
}

}  // namespace

Result<CommGraphs> findGraphs(const TopologyContext& context, const OwnMachine& own) {
  const TopologySettings& settings = context.settings;
  const bool alone = context.peers.size() == 1;
  if (alone && !settings.dump.wantedBy(0) && !settings.graphDump.wantedBy(0)) return CommGraphs{};
  if (!everybodyKnows(context)) return withoutGraphs(settings);
  std::vector<topo::GraphReport> words(context.peers.size());
  const auto rank = static_cast<std::size_t>(context.layout.rank());
  ASSIGN(OwnNode node, searchOwnNode(context, own));
  words[rank] = node.words;
  if (alone) return CommGraphs{};  // it has nobody to be joined with
  TRY(allGatherValues(context.control, std::span(words)));
  auto agreed = topo::agreeOnGraphs(context.layout, context.peers, words);
  if (!agreed.ok()) {
    // Nobody may leave, and be taken for dead, before all have seen the difference themselves.
    context.control.barrier().ignore();
    return agreed.status();
  }
  if (!agreed.value().known()) {
    saySilent(context, words);
    return withoutGraphs(settings);
  }
  return CommGraphs{std::move(words), agreed.value(), std::move(node.nics), std::move(node.heads)};
}

Result<topo::RankChannels> channelsOf(const CommGraphs& graphs, const topo::RankLayout& layout, int nChannels) {
  if (!graphs.known()) return topo::channelsByRank(layout, nChannels);
  return topo::channelsAcross(layout, graphs.words, graphs.agreed, nChannels);
}

}  // namespace tutti::comm
