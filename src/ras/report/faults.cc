#include "ras/report/faults.h"

#include <fmt/format.h>

#include <functional>
#include <vector>

#include "ras/report/comm_groups.h"
#include "ras/report/lines.h"
#include "ras/report/outliers.h"

namespace tutti::ras {

namespace {

/// Lines of processes or ranks that are missing; more of them only on request.
constexpr std::size_t kMostMissing = 64;

NamedRank nameOf(const RankFacts& rank) {
  return {rank.rank, rank.process, rank.cudaDevice, rank.nvmlDevice};
}
NamedRank nameOf(const AbsentRank& rank) {
  return {rank.rank, rank.process, rank.cudaDevice, rank.nvmlDevice};
}

std::string processLines(const std::vector<const SurveyedProcess*>& processes, bool verbose) {
  std::string text;
  std::size_t listed = 0;
  for (const SurveyedProcess* const process : processes) {
    if (!verbose && listed++ == kMostMissing) return text + "  ...\n";
    text += fmt::format("  {}\n", processText(process->facts));
  }
  return text;
}

std::string missingRanks(std::string_view name, const CommFacts& comm, const Survey& survey, bool verbose) {
  std::vector<const AbsentRank*> missing;
  for (const AbsentRank& rank : comm.absent) {
    if (!rank.answered) missing.push_back(&rank);
  }
  if (missing.empty()) return "";
  std::string text =
      fmt::format("{} INCOMPLETE\n  Missing communicator data from {}\n", name, ranksText(missing.size()));
  std::size_t listed = 0;
  for (const AbsentRank* const rank : missing) {
    if (!verbose && listed++ == kMostMissing) return text + "  ...\n\n";
    text += rankLine(nameOf(*rank), "", survey);
  }
  return text + "\n";
}

/// Ranks with an error, by its code.
std::string errorsOf(const CommFacts& comm, std::int32_t RankState::*code, std::string_view title, const Survey& survey,
                     bool verbose) {
  RankGroups groups;
  std::size_t count = 0;
  for (const RankFacts& rank : comm.ranks) {
    const std::int32_t error = rank.state.*code;
    if (error == ncclSuccess || error == ncclInProgress) continue;
    groups[static_cast<std::uint64_t>(error)].push_back(nameOf(rank));
    ++count;
  }
  if (count == 0) return "";
  const auto said = [](std::uint64_t error) {
    return fmt::format(" reported {}", errorText(static_cast<std::int32_t>(error)));
  };
  return fmt::format("  {} error{} on {}\n", title, count > 1 ? "s" : "", ranksText(count)) +
         outlierText(groups, {said, said}, survey, verbose);
}

std::string statusMismatch(const CommFacts& comm, const Survey& survey, bool verbose) {
  RankGroups groups;
  for (const RankFacts& rank : comm.ranks) {
    groups[static_cast<std::uint64_t>(statusOf(rank.state))].push_back(nameOf(rank));
  }
  for (const AbsentRank& rank : comm.absent) {
    if (rank.answered) groups[static_cast<std::uint64_t>(RankStatus::NoComm)].push_back(nameOf(rank));
  }
  if (groups.size() < 2) return "";
  const auto name = [](std::uint64_t status) { return statusName(static_cast<RankStatus>(status)); };
  return "  Communicator ranks have different status\n" +
         outlierText(groups,
                     {[&](std::uint64_t status) { return fmt::format(" have status {}", name(status)); },
                      [&](std::uint64_t status) { return fmt::format(" has status {}", name(status)); }},
                     survey, verbose);
}

std::string countWords(std::uint64_t count, std::string_view verb) {
  return count == 0 ? fmt::format(" {} not launched any operations", verb)
                    : fmt::format(" {} launched up to operation {}", verb, count);
}

std::string countMismatch(const CommFacts& comm, Func func, const Survey& survey, bool verbose) {
  RankGroups groups;
  for (const RankFacts& rank : comm.ranks) {
    groups[rank.state.counts[static_cast<std::size_t>(func)]].push_back(nameOf(rank));
  }
  if (groups.size() < 2) return "";
  return fmt::format("  Communicator ranks have different {} operation counts\n", funcName(func)) +
         outlierText(groups,
                     {[](std::uint64_t count) { return countWords(count, "have"); },
                      [](std::uint64_t count) { return countWords(count, "has"); }},
                     survey, verbose);
}

}  // namespace

std::string jobErrors(const Survey& survey, bool verbose) {
  std::vector<const SurveyedProcess*> missing;
  std::vector<const SurveyedProcess*> dead;
  for (const SurveyedProcess& process : survey.processes) {
    if (process.facts.state == ProcessState::Dead) dead.push_back(&process);
    if (process.facts.state == ProcessState::Alive && !process.answered) missing.push_back(&process);
  }
  std::string text;
  if (!missing.empty()) {
    text += fmt::format("INCOMPLETE\n  Missing communicator data from {}\n{}\n",
                        counted(missing.size(), "job process", "job processes"), processLines(missing, verbose));
  }
  if (!dead.empty()) {
    text += fmt::format("DEAD\n  {} considered dead (unreachable via the RAS network)\n{}\n",
                        counted(dead.size(), "job process is", "job processes are"), processLines(dead, verbose));
  }
  return text;
}

std::string jobWarnings(const Survey& survey) {
  if (survey.timeouts == 0) return "";
  return fmt::format(
      "TIMEOUT\n  Encountered {} while gathering communicator data\n\n",
      counted(static_cast<std::size_t>(survey.timeouts), "communication timeout", "communication timeouts"));
}

std::string commErrors(std::string_view name, const CommFacts& comm, const Survey& survey, bool verbose) {
  const std::string missing = missingRanks(name, comm, survey, verbose);
  const std::string errors = errorsOf(comm, &RankState::initState, "Initialization", survey, verbose) +
                             errorsOf(comm, &RankState::asyncError, "Asynchronous", survey, verbose);
  return errors.empty() ? missing : fmt::format("{}{} ERROR\n{}\n", missing, name, errors);
}

std::string commWarnings(std::string_view name, const CommFacts& comm, const Survey& survey, bool verbose) {
  if (!faultsOf(comm).mismatch) return "";
  std::string text = statusMismatch(comm, survey, verbose);
  for (std::size_t func = 0; func < kCollectives; ++func) {
    text += countMismatch(comm, static_cast<Func>(func), survey, verbose);
  }
  return fmt::format("{} MISMATCH\n{}\n", name, text);
}

}  // namespace tutti::ras
