#include "trace_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "trace_perfetto.h"

namespace tutti::tool {

namespace {

using trace::Kind;
using trace::Record;

/// Sums over the operations of one kind, of one rank.
struct RankTimes {
  std::uint64_t operations = 0;
  std::uint64_t timed = 0;  ///< of them, those whose kernels' times are known
  double launch = 0, wait = 0, network = 0, copy = 0;
};

/// Operations that are alike.
struct Family {
  std::uint64_t comm = 0;
  int nRanks = 0;
  std::string function;
  std::uint64_t bytes = 0;
  std::uint64_t operations = 0;
  std::string why;
  std::map<int, RankTimes> ranks;
  std::map<int, std::pair<std::uint64_t, double>> waitedFor;  ///< late rank: operations, ns that others waited
};

/// What a rank cost the others by coming last.
struct Late {
  std::uint64_t times = 0;
  double sum = 0;
  std::uint64_t most = 0;
  std::string mostAt;
  double lost = 0;
  std::size_t others = 0;
  std::size_t process = 0;
};

double length(std::uint64_t from, std::uint64_t to) {
  return to > from ? static_cast<double>(to - from) : 0;
}

void addPart(Family& family, const Operation& operation, const OperationPart& part) {
  RankTimes& times = family.ranks[part.rank];
  ++times.operations;
  if (part.launched != 0) times.launch += length(part.asked, part.launched);
  if (part.kernelEnd == 0) return;
  ++times.timed;
  const std::uint64_t all = std::min(operation.allLaunched(), part.kernelEnd);
  const std::uint64_t own = std::max(part.kernelBegin, part.launched);
  times.wait += length(std::min(own, all), all);
  const double rest = length(std::max(own, all), part.kernelEnd);
  const double network = std::min(rest, static_cast<double>(part.network));
  times.network += network;
  times.copy += rest - network;
}

std::uint64_t threshold(const Job& job) {
  std::uint64_t error = 0;
  for (const ClockShift& clock : job.clocks) error = std::max(error, clock.error);
  return std::max(kWorthTelling, 2 * error);
}

bool complete(const Operation& operation) {
  return operation.parts.size() == static_cast<std::size_t>(operation.nRanks);
}

std::vector<Family> familiesOf(const Job& job) {
  std::map<std::tuple<std::uint64_t, std::string, std::uint64_t>, Family> families;
  for (const Operation& operation : job.operations) {
    Family& family = families[{operation.comm, operation.function, operation.bytes}];
    family.comm = operation.comm;
    family.nRanks = operation.nRanks;
    family.function = operation.function;
    family.bytes = operation.bytes;
    ++family.operations;
    for (const OperationPart& part : operation.parts) {
      addPart(family, operation, part);
      if (!part.why.empty()) family.why = part.why;
    }
    if (operation.parts.size() < 2 || operation.lateness() < threshold(job)) continue;
    auto& [times, lost] = family.waitedFor[operation.parts[operation.last()].rank];
    ++times;
    lost += static_cast<double>(operation.lostByOthers());
  }
  std::vector<Family> list;
  for (auto& [key, family] : families) list.push_back(std::move(family));
  return list;
}

using LateRanks = std::map<std::pair<std::uint64_t, int>, Late>;

LateRanks lateRanks(const Job& job) {
  LateRanks late;
  for (const Operation& operation : job.operations) {
    const std::uint64_t by = operation.lateness();
    if (by < threshold(job)) continue;
    const OperationPart& part = operation.parts[operation.last()];
    Late& one = late[{operation.comm, part.rank}];
    ++one.times;
    one.sum += static_cast<double>(by);
    one.lost += static_cast<double>(operation.lostByOthers());
    one.others = operation.parts.size() - 1;
    one.process = part.process;
    if (by <= one.most) continue;
    one.most = by;
    one.mostAt = fmt::format("{} number {}", operation.function, operation.number);
  }
  return late;
}

std::string headText(const Job& job) {
  std::uint64_t begin = UINT64_MAX, end = 0, events = 0;
  std::set<std::uint64_t> hosts;
  for (std::size_t p = 0; p < job.processes.size(); ++p) {
    const ProcessTrace& process = job.processes[p];
    hosts.insert(process.hostHash);
    events += process.records.size();
    for (const Record& record : process.records) begin = std::min(begin, job.at(p, record.begin));
    if (!process.records.empty()) end = std::max(end, job.at(p, lastMoment(process)));
  }
  const auto counted = [](std::size_t n, const char* what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "es");
  };
  return fmt::format("{} on {} {}, {} events in {}\n", counted(job.processes.size(), "process"), hosts.size(),
                     hosts.size() == 1 ? "host" : "hosts", events,
                     timeText(end > begin ? static_cast<double>(end - begin) : 0));
}

std::string clockText(const Job& job) {
  std::string text;
  std::set<std::uint64_t> told{job.processes.front().hostHash};
  for (std::size_t p = 0; p < job.processes.size(); ++p) {
    if (!told.insert(job.processes[p].hostHash).second) continue;
    const ClockShift& clock = job.clocks[p];
    text +=
        clock.measured
            ? fmt::format("  clock of host {}: brought to that of host {} within {}, as measured at init\n",
                          job.processes[p].host, job.processes.front().host, timeText(static_cast<double>(clock.error)))
            : fmt::format(
                  "  clock of host {}: no measurement joins it with host {}; by its calendar, which may be "
                  "wrong by milliseconds and more\n",
                  job.processes[p].host, job.processes.front().host);
  }
  return text;
}

/// What a process was about when its trace ends, if it did not end in order.
std::string endText(const Job& job, std::size_t p, std::uint64_t lastOfAll) {
  const ProcessTrace& process = job.processes[p];
  std::string text = fmt::format("  {}: {} events", process.title(), process.records.size());
  for (const std::string& remark : process.remarks) text += "; " + remark;
  if (process.closed != 0) return text + "\n";
  const std::uint64_t last = job.at(p, lastMoment(process));
  text += "; it did not end in order, or still runs; its last event is ";
  text += last >= lastOfAll ? "the last of all"
                            : timeText(static_cast<double>(lastOfAll - last)) + " before the last of all";
  text += "\n";
  for (const std::size_t index : unfinished(process)) {
    const Record& record = process.records[index];
    const char* const what = record.kind == Kind::Connect ? "connecting with "
                             : record.kind == Kind::Wait  ? "waiting for "
                                                          : "";
    text += fmt::format("    not ended: {}{}\n", what, process.text(record.text));
  }
  return text;
}

std::string processesText(const Job& job) {
  std::uint64_t last = 0;
  for (std::size_t p = 0; p < job.processes.size(); ++p) {
    if (!job.processes[p].records.empty()) last = std::max(last, job.at(p, lastMoment(job.processes[p])));
  }
  std::string text;
  for (std::size_t p = 0; p < job.processes.size(); ++p) text += endText(job, p, last);
  for (const ProcessTrace& process : job.processes) {
    for (const Record& record : process.records) {
      if (record.kind != Kind::Failure) continue;
      text += fmt::format("  {} failed: {}\n", process.title(), process.text(record.text));
    }
  }
  return text;
}

std::string initText(const Job& job) {
  std::string text;
  for (const ProcessTrace& process : job.processes) {
    double whole = 0, slowest = 0, connects = 0;
    std::string stage, with;
    for (const Record& record : process.records) {
      if ((record.flags & trace::kOpen) != 0) continue;
      const double took = static_cast<double>(record.end - record.begin);
      const std::string what = process.text(record.text);
      if (record.kind == Kind::Connect) {
        connects += took;
        with = what;
      }
      if (record.kind != Kind::Stage) continue;
      if (what == "init") whole += took;
      if (what == "init" || took <= slowest) continue;
      slowest = took;
      stage = what;
    }
    if (whole > 0) {
      text += fmt::format("  {}: init {}, longest stage {} with {}", process.title(), timeText(whole), stage,
                          timeText(slowest));
    }
    if (connects > 0) {
      text += fmt::format("{}connecting in calls {}, last with {}", whole > 0 ? "; " : "  ", timeText(connects), with);
    }
    if (whole > 0 || connects > 0) text += "\n";
  }
  return text.empty() ? text : "\nMaking and connecting communicators\n" + text;
}

std::string familyText(const Family& family) {
  std::string text = fmt::format("\n{} of {} on {} ranks (communicator {:#x}): {} times\n", family.function,
                                 bytesText(family.bytes), family.nRanks, family.comm, family.operations);
  if (!family.why.empty()) text += fmt::format("  plan weighed: {}\n", family.why);
  text += "  mean of      launch  wait for the last  network     copy   (timed)\n";
  int slowest = -1;
  double most = 0;
  for (const auto& [rank, times] : family.ranks) {
    const auto n = static_cast<double>(std::max<std::uint64_t>(times.timed, 1));
    const std::string launch = timeText(times.launch / static_cast<double>(times.operations));
    if (times.timed == 0) {
      text += fmt::format("  rank {:<4} {:>9}  {:>17} {:>8} {:>8}   (0)\n", rank, launch, "?", "?", "?");
      continue;
    }
    text += fmt::format("  rank {:<4} {:>9}  {:>17} {:>8} {:>8}   ({})\n", rank, launch, timeText(times.wait / n),
                        timeText(times.network / n), timeText(times.copy / n), times.timed);
    const double own = (times.network + times.copy) / n;
    if (own <= most) continue;
    most = own;
    slowest = rank;
  }
  if (slowest >= 0 && family.ranks.size() > 1) {
    text += fmt::format("  slowest once all were there: rank {} with {}\n", slowest, timeText(most));
  }
  for (const auto& [rank, times] : family.waitedFor) {
    text += fmt::format("  wait for rank {}: in {} operations, {} over all ranks\n", rank, times.first,
                        timeText(times.second));
  }
  return text;
}

std::string lateText(const Job& job) {
  const LateRanks late = lateRanks(job);
  std::vector<std::pair<std::pair<std::uint64_t, int>, Late>> order(late.begin(), late.end());
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second.lost > b.second.lost; });
  std::map<std::uint64_t, std::uint64_t> operations;
  bool partial = false;
  for (const Operation& operation : job.operations) {
    ++operations[operation.comm];
    partial = partial || !complete(operation);
  }
  std::string text = "\nLate ranks\n";
  if (order.empty())
    text += fmt::format("  none came more than {} after the others\n", timeText(double(threshold(job))));
  for (const auto& [who, one] : order) {
    text += fmt::format(
        "  {}, rank {} of communicator {:#x}, came last in {} of {} operations, {} after the last of the others on the "
        "average (at most {}, {}): the other {} {} lost {} each, {} together\n",
        job.processes[one.process].title(), who.second, who.first, one.times, operations[who.first],
        timeText(one.sum / static_cast<double>(one.times)), timeText(static_cast<double>(one.most)), one.mostAt,
        one.others, one.others == 1 ? "rank" : "ranks", timeText(one.lost / static_cast<double>(one.others)),
        timeText(one.lost));
  }
  if (partial) text += "  some operations are not in the traces of all ranks: are all files given?\n";
  return text;
}

}  // namespace

std::string timeText(double nanoseconds) {
  constexpr double kThousand = 1000;
  if (nanoseconds < kThousand) return fmt::format("{:.0f} ns", nanoseconds);
  if (nanoseconds < 1e6) return fmt::format("{:.3g} us", nanoseconds / 1e3);
  if (nanoseconds < 1e9) return fmt::format("{:.3g} ms", nanoseconds / 1e6);
  return fmt::format("{:.3g} s", nanoseconds / 1e9);
}

std::string bytesText(std::uint64_t bytes) {
  constexpr std::uint64_t kUnit = 1024;
  constexpr std::array<std::string_view, 5> kNames{"bytes", "KB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (bytes >= kUnit && bytes % kUnit == 0 && unit + 1 < kNames.size()) {
    bytes /= kUnit;
    ++unit;
  }
  return fmt::format("{} {}", bytes, kNames[unit]);
}

std::string summaryOf(const Job& job) {
  if (job.processes.empty()) return "no traces\n";
  std::string text = headText(job) + clockText(job) + processesText(job) + initText(job);
  for (const Family& family : familiesOf(job)) text += familyText(family);
  return text + lateText(job);
}

}  // namespace tutti::tool
