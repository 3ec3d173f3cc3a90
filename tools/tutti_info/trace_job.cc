#include "trace_job.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tutti::tool {

namespace {

using trace::Kind;
using trace::Record;

/// Half of 64 bits, so that shifted times stay above 0.
constexpr std::uint64_t kFarAway = std::uint64_t{1} << 61U;

/// Clocks of hosts against the first one's, the surest measurements first.
std::map<std::uint64_t, ClockShift> hostClocks(const std::vector<ProcessTrace>& processes) {
  std::map<std::uint64_t, ClockShift> known{{processes.front().hostHash, {}}};
  for (bool more = true; more;) {
    more = false;
    std::uint64_t host = 0;
    ClockShift best{0, kFarAway, true};
    const auto consider = [&](std::uint64_t from, std::uint64_t to, std::int64_t offset, std::uint64_t error) {
      if (!known.contains(to) || known.contains(from) || known[to].error + error >= best.error) return;
      host = from;
      best = {known[to].shift + offset, known[to].error + error, true};
      more = true;
    };
    for (const ProcessTrace& process : processes) {
      for (const trace::ClockNote& note : process.clocks) {
        consider(process.hostHash, note.hostHash, note.offset, note.error);
        consider(note.hostHash, process.hostHash, -note.offset, note.error);
      }
    }
    if (more) known[host] = best;
  }
  return known;
}

std::int64_t calendar(const ProcessTrace& process) {
  return static_cast<std::int64_t>(process.openedRealtime - process.openedMonotonic);
}

std::vector<ClockShift> shiftsOf(const std::vector<ProcessTrace>& processes) {
  const auto known = hostClocks(processes);
  std::vector<ClockShift> shifts;
  for (const ProcessTrace& process : processes) {
    const auto found = known.find(process.hostHash);
    shifts.push_back(found != known.end() ? found->second
                                          : ClockShift{calendar(process) - calendar(processes.front()), 0, false});
  }
  return shifts;
}

using OperationKey = std::pair<std::uint64_t, std::uint32_t>;  // communicator, collective

/// Takes one process's records, in their order.
class PartsOfProcess {
 public:
  PartsOfProcess(const Job& job, std::size_t process, std::map<OperationKey, Operation>& all)
      : job_(job), trace_(job.processes[process]), process_(process), all_(all) {}

  void take(const Record& record) {
    const TracedComm* const comm = trace_.comm(record.comm);
    if (comm == nullptr) return;
    if (record.kind == Kind::Op) takeOp(record, *comm);
    if (record.kind == Kind::Launch) takeLaunch(record);
    if (record.kind == Kind::Decision) {
      if (OperationPart* const part = partOf(record.comm, record.number)) part->why = trace_.text(record.text);
    }
    if (record.kind == Kind::Kernel && record.a == trace::kWholeKernel) takeKernel(record);
  }

 private:
  using Place = std::pair<OperationKey, std::size_t>;

  std::uint64_t at(std::uint64_t time) const { return job_.at(process_, time); }
  OperationPart* partOf(std::uint16_t comm, std::uint64_t op) {
    const auto found = places_.find({comm, op});
    return found == places_.end() ? nullptr : &all_[found->second.first].parts[found->second.second];
  }
  void takeOp(const Record& record, const TracedComm& comm) {
    const auto number = static_cast<std::uint32_t>(record.c >> 32U);
    if (number == 0) return;  // messages are not of all ranks
    const OperationKey key{comm.hash, number};
    Operation& operation = all_[key];
    operation.comm = comm.hash;
    operation.number = number;
    operation.nRanks = comm.nRanks;
    operation.function = trace_.text(record.text);
    operation.bytes = std::max(operation.bytes, record.a);
    OperationPart part;
    part.process = process_;
    part.rank = comm.rank;
    part.asked = at(record.begin);
    places_[{record.comm, record.number}] = {key, operation.parts.size()};
    operation.parts.push_back(std::move(part));
  }
  void takeLaunch(const Record& record) {
    constexpr std::uint64_t kMost = 100'000;
    for (std::uint64_t op = record.b; op < record.b + std::min(record.c, kMost); ++op) {
      OperationPart* const part = partOf(record.comm, op);
      if (part == nullptr) continue;
      if (part->launchBegin == 0) part->launchBegin = at(record.begin);
      part->launched = at(record.end);
      launches_[{record.comm, record.number}].push_back(places_[{record.comm, op}]);
    }
  }
  void takeKernel(const Record& record) {
    constexpr std::uint64_t kMost = 10'000;
    for (std::uint64_t launch = record.number; launch < record.number + std::clamp<std::uint64_t>(record.b, 1, kMost);
         ++launch) {
      const auto found = launches_.find({record.comm, launch});
      if (found == launches_.end()) continue;
      for (const Place& place : found->second) {
        OperationPart& part = all_[place.first].parts[place.second];
        part.kernelBegin = at(record.begin);
        part.kernelEnd = std::max(part.kernelEnd, at(record.end));
      }
    }
  }

  const Job& job_;
  const ProcessTrace& trace_;
  std::size_t process_;
  std::map<OperationKey, Operation>& all_;
  std::map<std::pair<std::uint16_t, std::uint64_t>, Place> places_;
  std::map<std::pair<std::uint16_t, std::uint64_t>, std::vector<Place>> launches_;
};

using Interval = std::pair<std::uint64_t, std::uint64_t>;

/// When requests of the network were under way, by communicator's number, merged and ascending.
std::map<std::uint16_t, std::vector<Interval>> networkTimes(const Job& job, std::size_t process) {
  std::map<std::uint16_t, std::vector<Interval>> times;
  for (const Record& record : job.processes[process].records) {
    if (record.kind != Kind::NetSend && record.kind != Kind::NetRecv) continue;
    times[record.comm].emplace_back(job.at(process, record.begin), job.at(process, record.end));
  }
  for (auto& [comm, list] : times) {
    std::sort(list.begin(), list.end());
    std::vector<Interval> merged;
    for (const Interval& one : list) {
      if (!merged.empty() && one.first <= merged.back().second) {
        merged.back().second = std::max(merged.back().second, one.second);
      } else {
        merged.push_back(one);
      }
    }
    list = std::move(merged);
  }
  return times;
}

std::uint64_t overlap(const std::vector<Interval>& list, std::uint64_t begin, std::uint64_t end) {
  std::uint64_t sum = 0;
  auto one = std::lower_bound(list.begin(), list.end(), begin,
                              [](const Interval& interval, std::uint64_t time) { return interval.second < time; });
  for (; one != list.end() && one->first < end; ++one) {
    sum += std::min(one->second, end) - std::min(std::max(one->first, begin), std::min(one->second, end));
  }
  return sum;
}

void addNetwork(Job& job) {
  std::vector<std::map<std::uint16_t, std::vector<Interval>>> times;
  std::map<std::tuple<std::size_t, std::uint64_t, int>, std::uint16_t> numbers;
  for (std::size_t p = 0; p < job.processes.size(); ++p) {
    times.push_back(networkTimes(job, p));
    for (const auto& [number, comm] : job.processes[p].comms) numbers[{p, comm.hash, comm.rank}] = number;
  }
  for (Operation& operation : job.operations) {
    const std::uint64_t all = operation.allLaunched();
    for (OperationPart& part : operation.parts) {
      const std::uint64_t begin = std::max(all, part.kernelBegin);
      if (part.kernelEnd <= begin) continue;
      const std::uint16_t number = numbers[{part.process, operation.comm, part.rank}];
      part.network = overlap(times[part.process][number], begin, part.kernelEnd);
    }
  }
}

}  // namespace

std::uint64_t Operation::arrival(const OperationPart& part) const {
  const bool all = std::all_of(parts.begin(), parts.end(), [](const auto& one) { return one.kernelBegin != 0; });
  return all ? part.kernelBegin : part.asked;
}

std::size_t Operation::last() const {
  const auto late = std::max_element(parts.begin(), parts.end(),
                                     [this](const auto& a, const auto& b) { return arrival(a) < arrival(b); });
  return static_cast<std::size_t>(late - parts.begin());
}

std::uint64_t Operation::lateness() const {
  if (parts.size() < 2) return 0;
  const std::size_t late = last();
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i != late) before = std::max(before, arrival(parts[i]));
  }
  return arrival(parts[late]) - before;
}

std::uint64_t Operation::lostByOthers() const {
  const std::uint64_t each = lateness();
  return parts.size() < 2 ? 0 : each * (parts.size() - 1);
}

std::uint64_t Operation::allLaunched() const {
  std::uint64_t time = 0;
  for (const OperationPart& part : parts) time = std::max({time, part.launched, arrival(part)});
  return time;
}

Job joinTraces(std::vector<ProcessTrace> processes) {
  Job job;
  std::sort(processes.begin(), processes.end(), [](const ProcessTrace& a, const ProcessTrace& b) {
    return std::tuple(a.rank(), a.host, a.pid) < std::tuple(b.rank(), b.host, b.pid);
  });
  job.processes = std::move(processes);
  if (job.processes.empty()) return job;
  job.clocks = shiftsOf(job.processes);
  std::map<OperationKey, Operation> all;
  for (std::size_t p = 0; p < job.processes.size(); ++p) {
    PartsOfProcess parts(job, p, all);
    for (const Record& record : job.processes[p].records) parts.take(record);
  }
  for (auto& [key, operation] : all) {
    std::sort(operation.parts.begin(), operation.parts.end(),
              [](const OperationPart& a, const OperationPart& b) { return a.rank < b.rank; });
    job.operations.push_back(std::move(operation));
  }
  const auto first = [](const Operation& operation) {
    std::uint64_t time = UINT64_MAX;
    for (const OperationPart& part : operation.parts) time = std::min(time, part.asked);
    return time;
  };
  std::stable_sort(job.operations.begin(), job.operations.end(),
                   [&](const Operation& a, const Operation& b) { return first(a) < first(b); });
  addNetwork(job);
  return job;
}

}  // namespace tutti::tool
