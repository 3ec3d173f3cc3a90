// Writes expected.tsv anew, with what the search finds now; a line on stderr for each graph below the reference or
// refused by the validator, and their number as the exit status's cause.
#include <fmt/core.h>

#include <cstdio>
#include <string>

#include "topo/search/known_machines.h"
#include "topo/search/validate.h"

namespace tutti::test {
namespace {

/// Number of graphs with something wrong.
int complain(const KnownUse& use, const topo::Topology& topology, const topo::GraphSet& graphs) {
  int wrong = 0;
  for (const Expectation& row : use.graphs) {
    const topo::Graph* graph = graphNamed(graphs, row.graph);
    if (graph == nullptr) continue;
    const double n = graph->nChannels() * 1.001;
    const bool low = n * graph->bwIntra < row.floorIntra || (topology.interNode && n * graph->bwInter < row.floorInter);
    if (low) {
      fmt::print(stderr, "below the reference ({} and {}): {}\n", row.floorText[0], row.floorText[1],
                 rowText(use, *graph, &row));
    }
    const std::vector<std::string> faults =
        topo::validateGraph(topology.machine, topology.paths, *graph, topology.interNode);
    if (!faults.empty()) {
      fmt::print(stderr, "refused: {} {}: {} ({} in all)\n", use.machine, use.name, faults.front(), faults.size());
    }
    if (low || !faults.empty()) ++wrong;
  }
  return wrong;
}

int printAll(const std::string& folder) {
  const KnownTable table = readKnownTable(folder);
  if (!table.error.empty()) {
    fmt::print(stderr, "{}\n", table.error);
    return 2;
  }
  fmt::print("{}", table.head);
  int wrong = 0;
  for (const KnownUse& use : table.uses) {
    const Result<topo::Topology> topology = buildKnown(folder, use);
    if (!topology.ok()) {
      fmt::print(stderr, "{} {}: could not be built\n", use.machine, use.name);
      return 2;
    }
    const topo::Topology& built = topology.value();
    const topo::GraphSet graphs = topo::searchGraphs(built.machine, built.paths, searchSettingsOf(use, built));
    wrong += complain(use, built, graphs);
    fmt::print("{}", rowsText(use, graphs));
  }
  fmt::print(stderr, "{} graphs below the reference or refused\n", wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tutti::test

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: print_graphs FOLDER (machines and expected.tsv); writes the new table to stdout\n");
    return 2;
  }
  return tutti::test::printAll(argv[1]);
}
