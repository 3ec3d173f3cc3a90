#include "topo/search/known_machines.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "topo/machine/path_settings.h"

namespace tutti::test {
namespace {

constexpr std::size_t kColumns = 15;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

/// Takes the row into the last use, or a new one.
void takeRow(const std::vector<std::string>& cells, std::vector<KnownUse>& uses) {
  if (uses.empty() || uses.back().machine != cells[0] || uses.back().name != cells[1]) {
    KnownUse use{cells[0], cells[1], {}, cells[2], std::atoi(cells[3].c_str()), std::atoi(cells[4].c_str()), {}};
    for (const std::string& gpu : split(cells[2], ',')) use.gpus.push_back(std::atoi(gpu.c_str()));
    uses.push_back(use);
  }
  Expectation row;
  row.graph = cells[5];
  for (std::size_t i = 6; i <= 11; ++i) row.found += (i > 6 ? "\t" : "") + cells[i];
  row.floorText[0] = cells[12];
  row.floorText[1] = cells[13];
  row.floorIntra = std::atof(cells[12].c_str());
  row.floorInter = std::atof(cells[13].c_str());
  row.referenceMs = cells[14];
  uses.back().graphs.push_back(row);
}

}  // namespace

KnownTable readKnownTable(const std::string& folder) {
  const std::string path = folder + "/expected.tsv";
  KnownTable table;
  std::ifstream in(path);
  if (!in) table.error = path + " cannot be read";
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.starts_with("#") || line.starts_with("machine\t")) {
      table.head += line + "\n";
      continue;
    }
    const std::vector<std::string> cells = split(line, '\t');
    if (cells.size() != kColumns) {
      table.error = fmt::format("{}:{}: {} columns, not {}", path, number, cells.size(), kColumns);
      break;
    }
    takeRow(cells, table.uses);
  }
  if (!table.error.empty()) table.uses.clear();
  return table;
}

Result<topo::Topology> buildKnown(const topo::XmlElement& xml, const KnownUse& use) {
  const topo::TopologyUse wanted{use.gpus, use.hosts, use.interNode(), use.collNet()};
  return topo::buildTopology(xml, wanted, {});
}

Result<topo::Topology> buildKnown(const std::string& folder, const KnownUse& use) {
  ASSIGN(const topo::XmlElement xml, topo::readXmlFile(folder + "/" + use.machine + ".xml"));
  return buildKnown(xml, use);
}

topo::SearchSettings searchSettingsOf(const KnownUse& use, const topo::Topology& topology) {
  topo::SearchSettings settings;
  settings.interNode = topology.interNode;
  settings.collNet = use.collNet();
  return settings;
}

std::vector<const topo::Graph*> foundGraphs(const topo::GraphSet& graphs) {
  std::vector<const topo::Graph*> found{&graphs.ring, &graphs.tree};
  for (const topo::Graph* graph : {&graphs.collNetChain, &graphs.collNetDirect, &graphs.nvls}) {
    if (graph->nChannels() > 0) found.push_back(graph);
  }
  return found;
}

const topo::Graph* graphNamed(const topo::GraphSet& graphs, const std::string& name) {
  if (name == "ring") return &graphs.ring;
  if (name == "tree") return &graphs.tree;
  if (name == "collnetChain") return &graphs.collNetChain;
  if (name == "collnetDirect") return &graphs.collNetDirect;
  return name == "nvls" ? &graphs.nvls : nullptr;
}

std::string foundText(const topo::Graph& graph) {
  return fmt::format("{}\t{}\t{:.6g}\t{:.6g}\t{}\t{}", topo::patternName(graph.pattern), graph.nChannels(),
                     graph.bwIntra, graph.bwInter, topo::pathTypeName(graph.typeIntra),
                     topo::pathTypeName(graph.typeInter));
}

std::string rowText(const KnownUse& use, const topo::Graph& graph, const Expectation* expected) {
  const std::string name = expected != nullptr ? expected->graph : topo::graphName(graph.id);
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}", use.machine, use.name, use.gpusText, use.nodes,
                     use.hosts, name, foundText(graph), expected != nullptr ? expected->floorText[0] : "0",
                     expected != nullptr ? expected->floorText[1] : "0",
                     expected != nullptr ? expected->referenceMs : "0");
}

std::string rowsText(const KnownUse& use, const topo::GraphSet& graphs) {
  std::string text;
  std::vector<const topo::Graph*> written;
  for (const Expectation& row : use.graphs) {
    const topo::Graph* graph = graphNamed(graphs, row.graph);
    if (graph == nullptr) continue;
    text += rowText(use, *graph, &row) + "\n";
    written.push_back(graph);
  }
  for (const topo::Graph* graph : foundGraphs(graphs)) {
    if (std::find(written.begin(), written.end(), graph) == written.end()) text += rowText(use, *graph, nullptr) + "\n";
  }
  return text;
}

}  // namespace tutti::test
