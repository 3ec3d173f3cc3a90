#include "ras/report/json_report.h"

#include <fmt/format.h>

#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <unordered_map>

namespace tutti::ras {

namespace {

using nlohmann::ordered_json;
using ProcessIndex = std::unordered_map<ProcessId, const SurveyedProcess*>;

double roundedSeconds(double seconds) {
  return std::round(seconds * 1000) / 1000;
}

ordered_json countsOf(const OpCounts& counts, Func first, Func last) {
  ordered_json json;
  for (auto f = static_cast<std::size_t>(first); f <= static_cast<std::size_t>(last); ++f) {
    json[std::string(funcName(static_cast<Func>(f)))] = counts[f];
  }
  return json;
}

ordered_json lastOpOf(const LastOp& last) {
  if (last.func < 0) return nullptr;
  return {{"func", std::string(funcName(static_cast<Func>(last.func)))},
          {"bytes", last.bytes},
          {"seq", last.sequence},
          {"age_sec", static_cast<double>(last.ageMs) / 1000}};
}

/// Who it is: the keys that ranks with and without data share.
template <class Rank>
ordered_json identityOf(const Rank& rank, const ProcessIndex& processes) {
  const auto process = processes.find(rank.process);
  const bool known = process != processes.end();
  return {{"rank", rank.rank},
          {"host", known ? process->second->facts.address.hostText() : ""},
          {"pid", known ? process->second->facts.pid : 0},
          {"cuda_dev", rank.cudaDevice},
          {"nvml_dev", rank.nvmlDevice}};
}

ordered_json rankJson(const RankFacts& rank, const ProcessIndex& processes) {
  ordered_json json = identityOf(rank, processes);
  const RankState& state = rank.state;
  json["status"] = {{"init_state", state.initState},
                    {"async_error", state.asyncError},
                    {"finalize_called", state.finalizeCalled},
                    {"destroy_flag", state.destroyFlag},
                    {"abort_flag", state.abortFlag}};
  json["collective_counts"] = countsOf(state.counts, Func::Broadcast, Func::AllReduce);
  json["p2p_counts"] = countsOf(state.counts, Func::Send, Func::Recv);
  json["other_counts"] = countsOf(state.counts, Func::AlltoAll, Func::Scatter);
  json["last_op"] = lastOpOf(state.lastOp);
  return json;
}

ordered_json absentJson(const AbsentRank& rank, const ProcessIndex& processes) {
  ordered_json json = identityOf(rank, processes);
  const auto process = processes.find(rank.process);
  const bool known = process != processes.end();
  const bool dead = known && process->second->facts.state == ProcessState::Dead;
  json["status"] = {{"unresponsive", known && !dead && process->second->unresponsive}, {"considered_dead", dead}};
  return json;
}

ordered_json commJson(const CommFacts& comm, const ProcessIndex& processes) {
  ordered_json ranks = ordered_json::array();
  for (const RankFacts& rank : comm.ranks) ranks.push_back(rankJson(rank, processes));
  ordered_json missing = ordered_json::array();
  for (const AbsentRank& rank : comm.absent) missing.push_back(absentJson(rank, processes));
  return {{"hash", fmt::format("{:#x}", comm.key.hash)},
          {"secondary_hash", fmt::format("{:#x}:{:#x}", comm.key.hostHash, comm.key.pidHash)},
          {"size", comm.size},
          {"ranks_count", comm.ranks.size()},
          {"missing_ranks_count", comm.absent.size()},
          {"ranks", std::move(ranks)},
          {"missing_ranks", std::move(missing)},
          {"name", comm.name.empty() ? ordered_json() : ordered_json(comm.name)},
          {"parent", comm.parent == 0 ? ordered_json() : ordered_json(fmt::format("{:#x}", comm.parent))}};
}

std::string_view stateName(const SurveyedProcess& process) {
  if (process.facts.state == ProcessState::Left) return "left";
  if (process.facts.state == ProcessState::Dead) return "dead";
  if (process.answered) return "answered";
  return process.unresponsive ? "unresponsive" : "silent";
}

ordered_json processJson(const SurveyedProcess& process) {
  return {{"host", process.facts.address.hostText()}, {"pid", process.facts.pid}, {"state", stateName(process)}};
}

}  // namespace

std::string timestampText(std::chrono::system_clock::time_point when) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(when);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", local.tm_year + 1900, local.tm_mon + 1, local.tm_mday,
                     local.tm_hour, local.tm_min, local.tm_sec);
}

std::string jsonReport(const LibraryFacts& library, const Survey& survey, std::chrono::system_clock::time_point when) {
  ProcessIndex index;
  for (const SurveyedProcess& process : survey.processes) index.emplace(process.facts.id, &process);
  ordered_json comms = ordered_json::array();
  for (const CommFacts& comm : survey.comms) comms.push_back(commJson(comm, index));
  ordered_json processes = ordered_json::array();
  for (const SurveyedProcess& process : survey.processes) processes.push_back(processJson(process));
  const ordered_json report = {
      {"nccl_version", std::string(library.version)},
      {"cuda_runtime_version", library.runtimeCuda},
      {"cuda_driver_version", library.driverCuda},
      {"timestamp", timestampText(when)},
      {"communicators_count", survey.comms.size()},
      {"communicators", std::move(comms)},
      {"ras", {{"collection_time_sec", roundedSeconds(survey.seconds)}, {"timeouts_count", survey.timeouts}}},
      {"library", "tutti"},
      {"processes", std::move(processes)}};
  return report.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace tutti::ras
