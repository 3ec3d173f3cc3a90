#include "trace_perfetto.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "base/hash.h"
#include "perfetto_writer.h"

namespace tutti::tool {

namespace {

using trace::Kind;
using trace::Record;

/// A number for an arrow that no other arrow has, made of what its events have in common.
std::uint64_t flowOf(std::initializer_list<std::uint64_t> parts) {
  const std::vector<std::uint64_t> words(parts);
  return hashBytes(std::as_bytes(std::span(words))) | 1U;
}

template <class Words>
Words wordsOf(std::uint64_t word) {
  return std::bit_cast<Words>(word);
}

const char* protocolText(std::uint8_t protocol) {
  constexpr std::array<const char*, 3> kNames{"LL", "LL128", "Simple"};
  return protocol < kNames.size() ? kNames[protocol] : "?";
}

const char* algorithmText(std::uint8_t algorithm) {
  constexpr std::array<const char*, 9> kNames{"Tree",     "Ring", "CollNetDirect", "CollNetChain", "NVLS",
                                              "NVLSTree", "PAT",  "OneShot",       "Direct"};
  return algorithm < kNames.size() ? kNames[algorithm] : "?";
}

/// Adds one process's tracks and events.
class ProcessTimeline {
 public:
  ProcessTimeline(const Job& job, std::size_t process, PerfettoWriter& writer)
      : trace_(job.processes[process]), job_(job), process_(process), writer_(writer) {
    root_ = writer.process(trace_.pid, trace_.title());
    for (const auto& [number, thread] : trace_.threads) {
      const std::string name = thread.name.empty() ? fmt::format("thread {}", thread.tid) : thread.name;
      threads_[number] = writer.thread(root_, trace_.pid, thread.tid, name);
    }
    for (const auto& [number, comm] : trace_.comms) {
      const std::string name = fmt::format("communicator {:#x}{}{}, rank {} of {}", comm.hash,
                                           comm.name.empty() ? "" : " ", comm.name, comm.rank, comm.nRanks);
      operations_[number] = writer.track(root_, name + ": operations");
      kernels_[number] = writer.track(root_, name + ": kernels");
    }
    findKernelEnds();
  }

  void write() {
    std::set<std::size_t> cutOff;
    for (const std::size_t index : unfinished(trace_)) cutOff.insert(index);
    const std::uint64_t end = lastMoment(trace_);
    for (std::size_t i = 0; i < trace_.records.size(); ++i) {
      Record record = trace_.records[i];
      const bool open = (record.flags & trace::kOpen) != 0;
      if (open && !cutOff.contains(i)) continue;
      if (open) record.end = end;
      writeRecord(record, open);
    }
  }

 private:
  using Key = std::pair<std::uint16_t, std::uint64_t>;  ///< communicator, number

  std::uint64_t at(std::uint64_t time) const { return job_.at(process_, time); }
  std::uint64_t opFlow(std::uint16_t comm, std::uint64_t op) const { return flowOf({process_, comm, op, 1}); }

  void findKernelEnds() {
    std::map<Key, std::pair<std::uint64_t, std::uint64_t>> ofLaunch;
    for (const Record& record : trace_.records) {
      if (record.kind == Kind::Launch) ofLaunch[{record.comm, record.number}] = {record.b, record.c};
      if (record.kind == Kind::Launch) extend(record.comm, record.b, record.c, record.end);
      if (record.kind == Kind::Op)
        calls_[static_cast<std::uint32_t>(record.c)].emplace_back(record.comm, record.number);
    }
    for (const Record& record : trace_.records) {
      if (record.kind != Kind::Kernel || record.a != trace::kWholeKernel) continue;
      const auto launch = ofLaunch.find({record.comm, record.number});
      if (launch == ofLaunch.end()) continue;
      extend(record.comm, launch->second.first, launch->second.second, record.end);
      kernelOps_[{record.comm, record.number}] = launch->second;
    }
  }
  void extend(std::uint16_t comm, std::uint64_t op, std::uint64_t count, std::uint64_t end) {
    constexpr std::uint64_t kMost = 100'000;
    for (std::uint64_t i = op; i < op + std::min(count, kMost); ++i) {
      std::uint64_t& known = opEnds_[{comm, i}];
      known = std::max(known, end);
    }
  }
  void addFlows(TimelineEvent& event, std::uint16_t comm, std::uint64_t op, std::uint64_t count) const {
    constexpr std::uint64_t kMost = 64;
    for (std::uint64_t i = op; i < op + std::min(count, kMost); ++i) event.flows.push_back(opFlow(comm, i));
  }

  TimelineEvent eventOf(const Record& record, std::string name, const char* category) const {
    return {at(record.begin), at(record.end), std::move(name), category, {}, {}, {}};
  }
  void onThread(const Record& record, TimelineEvent event) {
    const auto thread = threads_.find(record.thread);
    writer_.add(thread == threads_.end() ? root_ : thread->second, std::move(event));
  }

  void writeRecord(const Record& record, bool cutOff);
  void writeCall(const Record& record, bool cutOff);
  void writeOp(const Record& record);
  void writeDecision(const Record& record);
  void writePlan(const Record& record);
  void writeLaunch(const Record& record);
  void writeKernel(const Record& record);
  std::uint64_t channelTrack(const Record& record);
  void writeStep(const Record& record);
  void writeOther(const Record& record, bool cutOff);

  const ProcessTrace& trace_;
  const Job& job_;
  std::size_t process_;
  PerfettoWriter& writer_;
  std::uint64_t root_;
  std::map<std::uint16_t, std::uint64_t> threads_, operations_, kernels_;
  std::map<Key, std::uint64_t> channels_;                                         ///< by communicator and channel
  std::map<std::pair<std::uint64_t, std::uint16_t>, std::uint64_t> connections_;  ///< by words and kind of record
  std::map<Key, std::uint64_t> opEnds_;
  std::map<Key, std::pair<std::uint64_t, std::uint64_t>> kernelOps_;
  std::map<std::uint32_t, std::vector<Key>> calls_;
  std::map<std::uint16_t, std::pair<std::uint64_t, std::uint64_t>> lastLaunch_;  ///< begin, first operation
  std::map<std::uint64_t, std::uint64_t> lastArrival_;                           ///< by track
  std::set<std::pair<std::uint64_t, std::uint64_t>> stepFlows_;                  ///< by track, and operation
};

void ProcessTimeline::writeCall(const Record& record, bool cutOff) {
  TimelineEvent event = eventOf(record, trace_.text(record.text) + (cutOff ? " (no end)" : ""), "call");
  if (record.a != 0) event.facts.push_back({"result", record.a});
  if (const auto ops = calls_.find(record.number); ops != calls_.end() && ops->second.size() <= 64) {
    for (const Key& op : ops->second) event.flows.push_back(opFlow(op.first, op.second));
  }
  onThread(record, std::move(event));
}

void ProcessTimeline::writeOp(const Record& record) {
  const auto words = wordsOf<trace::OpWords>(record.b);
  TimelineEvent event = eventOf(record, trace_.text(record.text), "operation");
  if (const auto end = opEnds_.find({record.comm, record.number}); end != opEnds_.end()) {
    event.end = std::max(event.end, at(end->second));
  }
  event.facts = {{"number", std::uint64_t{record.number}}, {"bytes", record.a}};
  if (record.c >> 32U != 0) event.facts.push_back({"collective", record.c >> 32U});
  if (words.peer >= 0) event.facts.push_back({"root or peer", static_cast<std::uint64_t>(words.peer)});
  event.facts.push_back({"data type", std::uint64_t{words.type}});
  writer_.add(operations_[record.comm], std::move(event));
}

void ProcessTimeline::writeDecision(const Record& record) {
  const auto words = wordsOf<trace::DecisionWords>(record.a);
  TimelineEvent event =
      eventOf(record, fmt::format("plan {}/{}", algorithmText(words.algorithm), protocolText(words.protocol)), "plan");
  event.facts = {{"number", std::uint64_t{record.number}},
                 {"weighed", trace_.text(record.text)},
                 {"estimate, ns", record.b},
                 {"bytes", record.c},
                 {"first channel", std::uint64_t{words.firstChannel}},
                 {"last channel", std::uint64_t{words.lastChannel}},
                 {"chunk bytes", std::uint64_t{words.chunkBytes}}};
  onThread(record, std::move(event));
}

void ProcessTimeline::writePlan(const Record& record) {
  TimelineEvent event = eventOf(record, "plan", "plan");
  event.facts = {{"operations", record.a}, {"launches", record.b}, {"estimate, ns", record.c}};
  onThread(record, std::move(event));
}

void ProcessTimeline::writeLaunch(const Record& record) {
  const auto words = wordsOf<trace::LaunchWords>(record.a);
  lastLaunch_[record.comm] = {record.begin, record.b};
  const std::string kernel = trace_.text(record.text);
  TimelineEvent event = eventOf(record, "launch " + (kernel.empty() ? "a kernel" : kernel), "launch");
  event.facts = {{"launch", std::uint64_t{record.number}},
                 {"works", std::uint64_t{words.works}},
                 {"channels", std::uint64_t{words.channels}},
                 {"first channel", std::uint64_t{words.firstChannel}},
                 {"threads per block", std::uint64_t{words.threads}}};
  addFlows(event, record.comm, record.b, record.c);
  onThread(record, std::move(event));
}

std::uint64_t ProcessTimeline::channelTrack(const Record& record) {
  std::uint64_t& track = channels_[{record.comm, record.a}];
  if (track != 0) return track;
  const TracedComm* const comm = trace_.comm(record.comm);
  track =
      writer_.track(root_, fmt::format("communicator {:#x}: channel {}", comm == nullptr ? 0 : comm->hash, record.a));
  return track;
}

void ProcessTimeline::writeKernel(const Record& record) {
  TimelineEvent event = eventOf(record, record.a == trace::kWholeKernel ? "kernel" : "channel", "kernel");
  event.facts = {{"launch", std::uint64_t{record.number}}};
  if (record.a != trace::kWholeKernel) {
    event.facts.emplace_back("channel", record.a);
    return writer_.add(channelTrack(record), std::move(event));
  }
  if (const auto ops = kernelOps_.find({record.comm, record.number}); ops != kernelOps_.end()) {
    addFlows(event, record.comm, ops->second.first, ops->second.second);
  }
  writer_.add(kernels_[record.comm], std::move(event));
}

void ProcessTimeline::writeStep(const Record& record) {
  const auto words = wordsOf<trace::StepWords>(record.a);
  const bool sends = record.kind == Kind::NetSend;
  const std::pair<std::uint64_t, std::uint16_t> connection{record.a ^ std::uint64_t{record.comm} << 40U,
                                                           static_cast<std::uint16_t>(record.kind)};
  std::uint64_t& track = connections_[connection];
  if (track == 0) {
    track = writer_.track(root_, fmt::format("network, channel {}, {}: {} rank {}", words.channel,
                                             protocolText(words.protocol), sends ? "to" : "from", words.peer));
  }
  const TracedComm* const comm = trace_.comm(record.comm);
  const auto own = static_cast<std::uint64_t>(comm == nullptr ? -1 : comm->rank);
  const auto peer = static_cast<std::uint64_t>(words.peer);
  const std::uint64_t flow = flowOf({comm == nullptr ? 0 : comm->hash, sends ? own : peer, sends ? peer : own,
                                     words.channel, words.protocol, words.kind, record.number, 2});
  TimelineEvent event =
      eventOf(record, fmt::format("{} step {}", sends ? "send" : "wait for", record.number), "network");
  event.facts = {{"step", std::uint64_t{record.number}}, {"bytes", record.b}, {"refused before, ns", record.c}};
  const auto launch = lastLaunch_.find(record.comm);
  if (sends) {
    event.end = std::max(event.end, event.begin + 1);
    event.flows.push_back(flow);
    const bool ofLaunch = launch != lastLaunch_.end() && record.begin >= launch->second.first;
    if (ofLaunch && stepFlows_.emplace(track, launch->second.second).second) {
      event.flows.push_back(opFlow(record.comm, launch->second.second));
    }
    return writer_.add(track, std::move(event));
  }
  // Receives are posted long before anything is due: what is shown is the wait within the operation.
  std::uint64_t& arrival = lastArrival_[track];
  event.begin = std::max(event.begin, arrival);
  if (launch != lastLaunch_.end()) event.begin = std::max(event.begin, std::min(event.end, at(launch->second.first)));
  arrival = event.end;
  TimelineEvent arrived{event.end, event.end, fmt::format("received step {}", record.number), "network", event.facts,
                        {},        {flow}};
  if (event.begin < event.end) writer_.add(track, std::move(event));
  writer_.add(track, std::move(arrived));
}

void ProcessTimeline::writeOther(const Record& record, bool cutOff) {
  const std::string text = trace_.text(record.text);
  const std::string tail = cutOff ? " (no end)" : "";
  switch (record.kind) {
    case Kind::Connect:
      return onThread(record, eventOf(record, "connect with " + text + tail, "wait"));
    case Kind::Wait:
      return onThread(record, eventOf(record, "wait for " + text + tail, "wait"));
    case Kind::Stage:
      return onThread(record, eventOf(record, "init: " + text + tail, "init"));
    case Kind::Failure: {
      TimelineEvent event = eventOf(record, "failure", "failure");
      event.facts = {{"why", text}, {"result", record.a}};
      return onThread(record, std::move(event));
    }
    case Kind::Ending:
      return onThread(record, eventOf(record, "communicator ends: " + text, "end"));
    default:
      return;
  }
}

void ProcessTimeline::writeRecord(const Record& record, bool cutOff) {
  switch (record.kind) {
    case Kind::Call:
      return writeCall(record, cutOff);
    case Kind::Op:
      return writeOp(record);
    case Kind::Plan:
      return writePlan(record);
    case Kind::Decision:
      return writeDecision(record);
    case Kind::Launch:
      return writeLaunch(record);
    case Kind::Kernel:
      return writeKernel(record);
    case Kind::NetSend:
    case Kind::NetRecv:
      return writeStep(record);
    default:
      return writeOther(record, cutOff);
  }
}

}  // namespace

std::vector<std::size_t> unfinished(const ProcessTrace& trace) {
  std::map<std::tuple<Kind, std::uint16_t, std::uint32_t>, std::size_t> open;
  for (std::size_t i = 0; i < trace.records.size(); ++i) {
    const Record& record = trace.records[i];
    const std::tuple key{record.kind, record.thread, record.number};
    if ((record.flags & trace::kOpen) != 0) {
      open[key] = i;
    } else {
      open.erase(key);
    }
  }
  std::vector<std::size_t> left;
  for (const auto& [key, index] : open) left.push_back(index);
  std::sort(left.begin(), left.end());
  return left;
}

std::uint64_t lastMoment(const ProcessTrace& trace) {
  std::uint64_t last = trace.closed;
  for (const Record& record : trace.records) last = std::max(last, record.end);
  return last;
}

std::string perfettoOf(const Job& job) {
  PerfettoWriter writer;
  for (std::size_t p = 0; p < job.processes.size(); ++p) ProcessTimeline(job, p, writer).write();
  return writer.finish();
}

}  // namespace tutti::tool
