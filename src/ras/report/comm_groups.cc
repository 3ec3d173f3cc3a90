#include "ras/report/comm_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace tutti::ras {

namespace {

bool hasError(const RankState& state) {
  const auto wrong = [](std::int32_t code) { return code != ncclSuccess && code != ncclInProgress; };
  return wrong(state.initState) || wrong(state.asyncError);
}

bool differ(const RankState& a, const RankState& b) {
  return statusOf(a) != statusOf(b) || !std::equal(a.counts.begin(), a.counts.begin() + kCollectives, b.counts.begin());
}

/// Ranks by node; those of unknown processes count as one node.
std::map<std::uint64_t, std::size_t> ranksByNode(const CommFacts& comm, const Survey& survey) {
  std::map<std::uint64_t, std::size_t> nodes;
  const auto add = [&](ProcessId process) {
    const SurveyedProcess* const known = survey.find(process);
    ++nodes[known != nullptr ? known->facts.hostHash : 0];
  };
  for (const RankFacts& rank : comm.ranks) add(rank.process);
  for (const AbsentRank& rank : comm.absent) add(rank.process);
  return nodes;
}

std::string_view strongestStatus(const CommFacts& comm) {
  std::optional<RankStatus> strongest;
  for (const RankFacts& rank : comm.ranks) strongest = std::max(strongest, std::optional(statusOf(rank.state)));
  return strongest ? statusName(*strongest) : "UNKNOWN";
}

CommGroup groupOf(const CommFacts& comm, const Survey& survey) {
  CommGroup group;
  group.comms.push_back(&comm);
  const auto nodes = ranksByNode(comm, survey);
  group.nodes = nodes.size();
  for (const auto& [node, ranks] : nodes) {
    group.fewestOnNode = group.fewestOnNode == 0 ? ranks : std::min(group.fewestOnNode, ranks);
    group.mostOnNode = std::max(group.mostOnNode, ranks);
  }
  group.size = static_cast<std::size_t>(comm.size);
  group.status = strongestStatus(comm);
  group.faults = faultsOf(comm);
  return group;
}

std::string faultText(const CommFaults& faults) {
  if (!faults.any()) return "OK";
  std::string text;
  const auto add = [&text](bool is, std::string_view name) {
    if (is) text += fmt::format("{}{}", text.empty() ? "" : ",", name);
  };
  add(faults.incomplete, "INCOMPLETE");
  add(faults.error, "ERROR");
  add(faults.mismatch, "MISMATCH");
  return text;
}

}  // namespace

CommFaults faultsOf(const CommFacts& comm) {
  CommFaults faults;
  for (const AbsentRank& rank : comm.absent) {
    // Who has destroyed its part has another status than those who have not.
    if (!rank.answered) faults.incomplete = true;
    if (rank.answered && !comm.ranks.empty()) faults.mismatch = true;
  }
  for (const RankFacts& rank : comm.ranks) {
    if (hasError(rank.state)) faults.error = true;
    if (differ(rank.state, comm.ranks.front().state)) faults.mismatch = true;
  }
  return faults;
}

std::vector<CommGroup> groupsOf(const Survey& survey) {
  using Row = std::tuple<std::size_t, std::size_t, std::size_t, std::size_t, std::string_view, CommFaults>;
  std::vector<CommGroup> groups;
  std::map<Row, std::size_t> places;
  for (const CommFacts& comm : survey.comms) {
    CommGroup group = groupOf(comm, survey);
    const Row row{group.size, group.nodes, group.fewestOnNode, group.mostOnNode, group.status, group.faults};
    const auto [place, fresh] = places.try_emplace(row, groups.size());
    if (fresh) {
      groups.push_back(std::move(group));
    } else {
      groups[place->second].comms.push_back(&comm);
    }
  }
  const auto ranksIn = [](const CommGroup& group) { return group.size * group.comms.size(); };
  std::stable_sort(groups.begin(), groups.end(), [&](const CommGroup& a, const CommGroup& b) {
    return std::tuple(ranksIn(a), a.size) > std::tuple(ranksIn(b), b.size);
  });
  return groups;
}

std::string groupTable(const std::vector<CommGroup>& groups) {
  if (groups.empty()) return "No communicator data collected!\n";
  std::string text =
      "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
      "    #  in group  per comm  per node  per comm  in group\n";
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const CommGroup& group = groups[i];
    const std::string perNode = group.fewestOnNode == group.mostOnNode
                                    ? fmt::format("{}", group.mostOnNode)
                                    : fmt::format("{}-{}", group.fewestOnNode, group.mostOnNode);
    text += fmt::format("{:5}  {:8}  {:8}  {:>8}  {:8}  {:8}  {:>8}  {:>6}\n", i, group.comms.size(), group.nodes,
                        perNode, group.size, group.size * group.comms.size(), group.status, faultText(group.faults));
  }
  return text;
}

}  // namespace tutti::ras
