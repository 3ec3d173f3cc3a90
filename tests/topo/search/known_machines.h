// The machines of tests/fixtures/topo and what is expected of the search on them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "topo/search/graph.h"
#include "topo/search/search.h"
#include "topo/search/topology.h"

namespace tutti::test {

/// One row of expected.tsv: a graph, what our search found, and what the reference reaches.
struct Expectation {
  std::string graph;         ///< as graphName() says it
  std::string found;         ///< pattern to type_inter, tab separated
  std::string floorText[2];  ///< floor_intra and floor_inter as written
  double floorIntra = 0;     ///< GB/s, channels x bandwidth
  double floorInter = 0;
  std::string referenceMs;  ///< as written
};

/// One machine in one use.
struct KnownUse {
  std::string machine;  ///< name of the file without .xml
  std::string name;     ///< "all8_n2"
  std::vector<int> gpus;
  std::string gpusText;
  int nodes = 1;
  int hosts = 1;
  std::vector<Expectation> graphs;

  bool interNode() const { return nodes > 1; }
  bool collNet() const { return nodes > 1 && hosts == 1; }
};

/// The table's lines in front of the first row, and its rows grouped by use, in their order. Empty uses: `error` says
/// why.
struct KnownTable {
  std::string head;
  std::vector<KnownUse> uses;
  std::string error;
};
KnownTable readKnownTable(const std::string& folder);

/// The machine of a use with its ways, read from `folder`.
Result<topo::Topology> buildKnown(const std::string& folder, const KnownUse& use);
/// The same from a file that is read already.
Result<topo::Topology> buildKnown(const topo::XmlElement& xml, const KnownUse& use);

topo::SearchSettings searchSettingsOf(const KnownUse& use, const topo::Topology& topology);

/// Ring, tree, and the collNet and NVLS graphs that have channels, in the table's order.
std::vector<const topo::Graph*> foundGraphs(const topo::GraphSet& graphs);
/// The graph of that name, found or not; null: no such name.
const topo::Graph* graphNamed(const topo::GraphSet& graphs, const std::string& name);

/// pattern to type_inter of a row.
std::string foundText(const topo::Graph& graph);
/// A whole row. `expected` may be null: floors of 0.
std::string rowText(const KnownUse& use, const topo::Graph& graph, const Expectation* expected);
/// All rows of a use with what the search found now.
std::string rowsText(const KnownUse& use, const topo::GraphSet& graphs);

}  // namespace tutti::test
