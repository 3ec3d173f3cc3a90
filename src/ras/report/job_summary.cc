#include "ras/report/job_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <vector>

namespace tutti::ras {

namespace {

using Place = const SurveyedProcess*;

struct Node {
  std::vector<Place> processes;
};

int gpusOf(const SurveyedProcess& process) {
  return std::popcount(process.facts.cudaDevices);
}

/// In the order of their first process.
std::vector<Node> nodesOf(std::span<const SurveyedProcess> processes) {
  std::vector<Node> nodes;
  std::map<std::uint64_t, std::size_t> places;
  for (const SurveyedProcess& process : processes) {
    if (process.facts.state == ProcessState::Left) continue;
    const auto [place, fresh] = places.try_emplace(process.facts.hostHash, nodes.size());
    if (fresh) nodes.emplace_back();
    nodes[place->second].processes.push_back(&process);
  }
  return nodes;
}

struct Totals {
  std::size_t processes = 0;
  std::size_t gpus = 0;
};

Totals totalsOf(const std::vector<Node>& nodes) {
  Totals totals;
  for (const Node& node : nodes) {
    totals.processes += node.processes.size();
    for (const Place process : node.processes) totals.gpus += static_cast<std::size_t>(gpusOf(*process));
  }
  return totals;
}

std::string oneRow(const std::vector<Node>& nodes) {
  const Totals totals = totalsOf(nodes);
  return fmt::format(
      "  Nodes  Processes         GPUs  Processes     GPUs\n"
      "(total)   per node  per process    (total)  (total)\n"
      "{:7}  {:9}  {:11}  {:9}  {:7}\n\n",
      nodes.size(), nodes.front().processes.size(), gpusOf(*nodes.front().processes.front()), totals.processes,
      totals.gpus);
}

/// How many GPUs each process of a node has: -1 where they differ.
int gpusEach(const Node& node) {
  const int first = gpusOf(*node.processes.front());
  const bool alike = std::all_of(node.processes.begin(), node.processes.end(),
                                 [first](Place process) { return gpusOf(*process) == first; });
  return alike ? first : -1;
}

using Kind = std::tuple<std::size_t, int>;  // processes per node, GPUs per process

std::map<Kind, std::vector<const Node*>> kindsOf(const std::vector<Node>& nodes) {
  std::map<Kind, std::vector<const Node*>> kinds;
  for (const Node& node : nodes) kinds[{node.processes.size(), gpusEach(node)}].push_back(&node);
  return kinds;
}

std::string outlierLines(const std::map<Kind, std::vector<const Node*>>& kinds) {
  std::size_t most = 0;
  for (const auto& [kind, nodes] : kinds) most = std::max(most, nodes.size());
  std::string lines;
  std::size_t count = 0;
  for (const auto& [kind, nodes] : kinds) {
    // Of many there is no telling which are meant to differ.
    if (nodes.size() == most || nodes.size() > 10) continue;
    for (const Node* const node : nodes) {
      std::string pids;
      for (const Place process : node->processes) {
        pids += fmt::format("{}{}", pids.empty() ? "" : ",", process->facts.pid);
      }
      lines += fmt::format("  Node {} running process{} {}\n", node->processes.front()->facts.address.hostText(),
                           node->processes.size() > 1 ? "es" : "", pids);
      ++count;
    }
  }
  if (count == 0) return lines;
  return fmt::format("The outlier node{}:\n{}\n", count > 1 ? "s" : "", lines);
}

std::string distribution(const std::vector<Node>& nodes) {
  const auto kinds = kindsOf(nodes);
  std::string text =
      "  Nodes  Processes         GPUs\n"
      "          per node  per process\n";
  for (const auto& [kind, members] : kinds) {
    const auto [processes, gpus] = kind;
    text +=
        fmt::format("{:7}  {:9}  {:>11}\n", members.size(), processes, gpus < 0 ? "varies" : fmt::format("{}", gpus));
  }
  const Totals totals = totalsOf(nodes);
  text += fmt::format(
      "\n  Nodes  Processes     GPUs\n"
      "(total)    (total)  (total)\n"
      "{:7}  {:9}  {:7}\n\n",
      nodes.size(), totals.processes, totals.gpus);
  return text + outlierLines(kinds);
}

bool alike(const std::vector<Node>& nodes) {
  const auto kinds = kindsOf(nodes);
  return kinds.size() == 1 && std::get<1>(kinds.begin()->first) >= 0;
}

}  // namespace

std::string versionLines(const LibraryFacts& library) {
  return fmt::format(
      "NCCL version {} compiled with CUDA {}.{}\n"
      "CUDA runtime version {}, driver version {}\n\n",
      library.version, library.compiledCuda / 1000, library.compiledCuda % 1000 / 10, library.runtimeCuda,
      library.driverCuda);
}

std::string jobSummary(std::span<const SurveyedProcess> processes) {
  const std::vector<Node> nodes = nodesOf(processes);
  std::string text = "Job summary\n===========\n\n";
  if (nodes.empty()) return text + "No process is left!\n\n";
  return text + (alike(nodes) ? oneRow(nodes) : distribution(nodes));
}

}  // namespace tutti::ras
