#include "tutti_topo/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/log.h"
#include "topo/search/graph_xml.h"
#include "topo/search/validate.h"
#include "tutti_topo/draw.h"
#include "tutti_topo/draw_tree.h"
#include "tutti_topo/searched.h"
#include "tutti_topo/text.h"

namespace tutti::tool {
namespace {

constexpr int kWrong = 1;
constexpr int kFailed = 2;

int failed(const std::string& reason) {
  fmt::print(stderr, "tutti-topo: {}\n", reason);
  return kFailed;
}

/// The reason is what the library said last.
int failed() {
  return failed(lastErrorText());
}

/// Writes all of it to a file, or to stdout if there is no path, or says that it could not.
int put(const std::string& text, const std::string& path = {}) {
  std::FILE* file = path.empty() ? stdout : std::fopen(path.c_str(), "wb");
  if (file == nullptr) return failed(fmt::format("{} cannot be written: {}", path, errnoText(errno)));
  errno = 0;
  bool whole = std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
  const int error = errno;
  if (file != stdout) whole = std::fclose(file) == 0 && whole;
  return whole ? 0 : failed(fmt::format("{} cannot be written: {}", path.empty() ? "stdout" : path, errnoText(error)));
}

/// What a reader should know where the machine is not all that was asked for.
std::string groupNote(const Loaded& loaded) {
  const std::vector<int>& groups = loaded.topology.groupOf;
  const int last = groups.empty() ? 0 : *std::max_element(groups.begin(), groups.end());
  if (last == 0) return {};
  return fmt::format("Only the network joins these GPUs: they fall into {} groups. This is the first one.\n\n",
                     last + 1);
}

Result<std::vector<Found>> graphsOf(const Loaded& loaded, const std::string& graphFile) {
  if (graphFile.empty()) return searchAll(loaded);
  const topo::Topology& topology = loaded.topology;
  ASSIGN(const topo::GraphSet graphs, topo::readGraphFile(graphFile, topology.machine, topology.interNode));
  std::vector<Found> found = withBounds(loaded, graphs);
  if (found.empty()) return fail(ncclInvalidUsage, "{}: no graph in it has channels", graphFile);
  return found;
}

std::string verdictOn(const Found& found, const std::vector<std::string>& faults) {
  const topo::Graph& graph = found.graph;
  if (!faults.empty()) return fmt::format("{}\n", fmt::join(faults, "\n"));  // each begins with the graph's name
  if (graph.channels.empty()) return fmt::format("{}: no channels\n", topo::graphName(graph.id));
  return fmt::format("{}: {} channel{} x {} GB/s: the machine carries it\n", topo::graphName(graph.id),
                     graph.nChannels(), graph.nChannels() == 1 ? "" : "s", bandwidthText(graph.bwIntra));
}

}  // namespace

int runShow(const MachineChoice& choice) {
  const Result<Loaded> loaded = load(choice);
  if (!loaded.ok()) return failed();
  return put(groupNote(loaded.value()) + showText(loaded.value().topology.machine));
}

int runPaths(const MachineChoice& choice) {
  const Result<Loaded> loaded = load(choice);
  if (!loaded.ok()) return failed();
  return put(groupNote(loaded.value()) + pathsText(loaded.value().topology));
}

int runSearch(const MachineChoice& choice, bool json) {
  const Result<Loaded> loaded = load(choice);
  if (!loaded.ok()) return failed();
  const std::vector<Found> found = searchAll(loaded.value());
  const topo::Topology& topology = loaded.value().topology;
  if (json) return put(searchJson(topology.machine, found, topology.interNode));
  return put(groupNote(loaded.value()) + searchText(topology.machine, found, topology.interNode));
}

int runDraw(const MachineChoice& choice, const DrawRequest& request) {
  const Result<Loaded> loaded = load(choice);
  if (!loaded.ok()) return failed();
  DrawOptions options{.title = request.title.empty() ? loaded.value().title : request.title,
                      .channels = request.channels};
  std::vector<Found> found;
  if (request.graph != "none") {
    Result<std::vector<Found>> graphs = graphsOf(loaded.value(), request.graphFile);
    if (!graphs.ok()) return failed();
    found = std::move(graphs).value();
  }
  for (const Found& one : found) {
    if (topo::graphName(one.graph.id) != request.graph || one.graph.channels.empty()) continue;
    options.graph = &one.graph;
    options.bound = one.bound;
  }
  if (request.graph != "none" && options.graph == nullptr) {
    return failed(fmt::format("this machine has no {} graph; search lists those that it has", request.graph));
  }
  for (const int channel : request.channels) {
    if (options.graph != nullptr && channel < options.graph->nChannels()) continue;
    return failed(fmt::format("there is no channel {}: the graph {} has {}", channel, request.graph,
                              options.graph == nullptr ? 0 : options.graph->nChannels()));
  }
  return put(drawMachine(loaded.value().topology.machine, options), request.output);
}

int runValidate(const MachineChoice& choice, const std::string& graphFile) {
  const Result<Loaded> loaded = load(choice);
  if (!loaded.ok()) return failed();
  const Result<std::vector<Found>> found = graphsOf(loaded.value(), graphFile);
  if (!found.ok()) return failed();
  const topo::Topology& topology = loaded.value().topology;
  bool wrong = false;
  std::string text = groupNote(loaded.value());
  for (const Found& one : found.value()) {
    const auto faults = topo::validateGraph(topology.machine, topology.paths, one.graph, topology.interNode);
    wrong = wrong || !faults.empty();
    text += verdictOn(one, faults);
  }
  const int written = put(text);
  return written != 0 ? written : wrong ? kWrong : 0;
}

void silenceLog() {
  setLogSink([](void*, bool, std::string_view) {}, nullptr);
}

}  // namespace tutti::tool
