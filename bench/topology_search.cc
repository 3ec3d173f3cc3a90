// How much CPU time ways and graphs take on the machines of the tests, beside the reference: Markdown on stdout.
//
//   topology_search FOLDER [RUNS]      FOLDER has the machines and expected.tsv
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "topo/search/known_machines.h"

namespace tutti::test {
namespace {

/// Milliseconds, medians.
struct Timing {
  const KnownUse* use = nullptr;
  int gpus = 0;
  double ways = 0;
  double search = 0;
  double reference = 0;  ///< its search alone, all graphs

  double ours() const { return ways + search; }
};

/// Channels x bandwidth beside the reference's, of one kind of graph on one machine or several.
struct Gain {
  int graphs = 0;
  int more = 0;  ///< by more than 2 percent
  double logs = 0;

  void take(double ours, double theirs) {
    if (theirs <= 0) return;
    ++graphs;
    if (ours > 1.02 * theirs) ++more;
    logs += std::log(ours / theirs);
  }
};
using Gains = std::map<std::pair<std::string, bool>, Gain>;

/// What counts is the inside on one machine, and the network on several.
void takeGains(const KnownUse& use, const topo::GraphSet& graphs, bool interNode, Gains& gains) {
  for (const Expectation& row : use.graphs) {
    const topo::Graph* graph = graphNamed(graphs, row.graph);
    if (graph == nullptr || graph->channels.empty()) continue;
    if (!interNode && graph->channels[0].gpus.size() == 1) continue;  // nothing is sent
    const double n = graph->nChannels();
    gains[{row.graph, interNode}].take(n * (interNode ? graph->bwInter : graph->bwIntra),
                                       interNode ? row.floorInter : row.floorIntra);
  }
}

void printGains(const Gains& gains) {
  fmt::print("### Bandwidth beside the reference\n\n");
  fmt::print("| graph | machines | graphs | over 2% more than the reference | geometric mean of ours / reference |\n");
  fmt::print("|---|---|---|---|---|\n");
  for (const auto& [key, gain] : gains) {
    fmt::print("| {} | {} | {} | {} | {:.2f} |\n", key.first, key.second ? "several, to the network" : "one",
               gain.graphs, gain.more, std::exp(gain.logs / gain.graphs));
  }
}

double medianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// CPU time of this thread, milliseconds: what the reference's figures are, and steady on a busy machine.
double cpuMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

Result<Timing> timeOf(const topo::XmlElement& xml, const KnownUse& use, int runs, Gains& gains) {
  std::vector<double> ways;
  std::vector<double> search;
  Timing timing{&use, static_cast<int>(use.gpus.size()) * use.hosts};
  for (int run = 0; run < runs; ++run) {
    const double start = cpuMilliseconds();
    ASSIGN(const topo::Topology topology, buildKnown(xml, use));
    ways.push_back(cpuMilliseconds() - start);
    const double built = cpuMilliseconds();
    const topo::GraphSet graphs = topo::searchGraphs(topology.machine, topology.paths, searchSettingsOf(use, topology));
    search.push_back(cpuMilliseconds() - built);
    if (run == 0) takeGains(use, graphs, topology.interNode, gains);
    if (graphs.ring.channels.empty()) return fail(ncclInternalError, "{} {}: no ring", use.machine, use.name);
  }
  timing.ways = medianOf(ways);
  timing.search = medianOf(search);
  for (const Expectation& row : use.graphs) timing.reference += std::atof(row.referenceMs.c_str());
  return timing;
}

void printRow(const std::string& name, const Timing& at) {
  fmt::print("| {} | {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |\n", name, at.use->name, at.gpus, at.ways, at.search,
             at.ours(), at.reference);
}

void printHead(const char* title) {
  fmt::print(
      "### {}\n\n| machine | use | GPUs | ways | search | both | reference's search |\n|---|---|---|---|---|---|---|\n",
      title);
}

/// The slowest use of each machine, ours and the reference's.
void printByMachine(const std::vector<Timing>& timings) {
  printHead("Slowest use of each machine, milliseconds");
  for (auto first = timings.begin(); first != timings.end();) {
    const std::string& machine = first->use->machine;
    const auto last = std::find_if(first, timings.end(), [&](const Timing& t) { return t.use->machine != machine; });
    const auto slowest = [&](auto less) { return *std::max_element(first, last, less); };
    const Timing ours = slowest([](const Timing& a, const Timing& b) { return a.ours() < b.ours(); });
    const Timing theirs = slowest([](const Timing& a, const Timing& b) { return a.reference < b.reference; });
    printRow(machine, ours);
    if (theirs.use != ours.use) printRow("", theirs);
    first = last;
  }
}

void printFused(const std::vector<Timing>& timings) {
  printHead("Hosts joined by NVLink, milliseconds");
  for (const Timing& at : timings) {
    if (at.use->hosts > 1) printRow(at.use->machine, at);
  }
}

void printSums(const std::vector<Timing>& timings) {
  const auto line = [&](const char* what, auto wanted) {
    double ours = 0;
    double theirs = 0;
    double worst = 0;
    int uses = 0;
    for (const Timing& at : timings) {
      if (!wanted(at)) continue;
      ++uses;
      ours += at.ours();
      theirs += at.reference;
      worst = std::max(worst, at.ours());
    }
    fmt::print("| {} | {} | {:.2f} | {:.1f} | {:.1f} |\n", what, uses, worst, ours, theirs);
  };
  fmt::print("### All uses, milliseconds\n\n| machines | uses | slowest | ours, sum | reference, sum of searches |\n");
  fmt::print("|---|---|---|---|---|\n");
  line("up to 8 GPUs", [](const Timing& at) { return at.gpus <= 8; });
  line("9 to 36 GPUs", [](const Timing& at) { return at.gpus > 8 && at.gpus <= 36; });
  line("72 GPUs", [](const Timing& at) { return at.gpus == 72; });
  line("all", [](const Timing&) { return true; });
}

int measure(const std::string& folder, int runs) {
  const KnownTable table = readKnownTable(folder);
  if (!table.error.empty()) {
    fmt::print(stderr, "{}\n", table.error);
    return 2;
  }
  std::vector<Timing> timings;
  Gains gains;
  for (const KnownUse& use : table.uses) {
    const Result<topo::XmlElement> xml = topo::readXmlFile(folder + "/" + use.machine + ".xml");
    const Result<Timing> timing = xml.ok() ? timeOf(xml.value(), use, runs, gains) : Result<Timing>(xml.status());
    if (!timing.ok()) return 1;
    timings.push_back(timing.value());
  }
  printSums(timings);
  fmt::print("\n");
  printFused(timings);
  fmt::print("\n");
  printByMachine(timings);
  fmt::print("\n");
  printGains(gains);
  return 0;
}

}  // namespace
}  // namespace tutti::test

int main(int argc, char** argv) {
  const int runs = argc > 2 ? std::atoi(argv[2]) : 5;
  if (argc < 2 || runs < 1) {
    fmt::print(stderr, "usage: topology_search FOLDER [RUNS]\n");
    return 2;
  }
  return tutti::test::measure(argv[1], runs);
}
