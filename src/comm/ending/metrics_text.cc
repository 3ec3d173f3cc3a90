#include "comm/ending/metrics_text.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/host.h"
#include "base/result_name.h"
#include "comm/connect/channels.h"
#include "comm/diagnosis/stall_state.h"
#include "comm/diagnosis/stalls.h"
#include "comm/state/communicator.h"
#include "comm/tuning/filter.h"
#include "gpu/memory_ledger.h"
#include "proxy/task.h"

namespace tutti::comm {

namespace {

/// What stands still for less may only be between two steps.
constexpr milliseconds kShortestWait{200};

/// As nccl-tests has it (its document PERFORMANCE.md): bus bandwidth is this times the size over the time.
double busFactorOf(ApiFunc func, int nRanks) {
  const double n = nRanks;
  switch (func) {
    case ApiFunc::AllReduce:
      return 2 * (n - 1) / n;
    case ApiFunc::AllGather:
    case ApiFunc::ReduceScatter:
    case ApiFunc::AlltoAll:
    case ApiFunc::Gather:
    case ApiFunc::Scatter:
      return (n - 1) / n;
    default:
      return 1;
  }
}

/// Backslashes, quotes and ends of lines are written as the format wants them.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

/// Writes metric by metric, for all communicators.
class Writer {
 public:
  explicit Writer(std::span<const CommMetrics> comms) : comms_(comms) {
    const std::string process = fmt::format("host=\"{}\",pid=\"{}\"", escaped(hostName()), ::getpid());
    for (const CommMetrics& comm : comms) {
      labels_.push_back(fmt::format("{},comm=\"{:#x}\",name=\"{}\",rank=\"{}\",ranks=\"{}\",device=\"{}\"", process,
                                    comm.commId, escaped(comm.name), comm.rank, comm.nRanks, comm.device));
    }
  }

  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    fmt::format_to(std::back_inserter(text_), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  /// A sample of the `i`th communicator. `more`: further labels, each with a comma in front.
  template <class Value>
  void sample(std::size_t i, std::string_view more, Value value) {
    fmt::format_to(std::back_inserter(text_), "{}{{{}{}}} {}\n", name_, labels_[i], more, value);
  }
  /// One sample for each communicator.
  template <class Value>
  void each(std::string_view name, std::string_view type, std::string_view help, Value&& value) {
    family(name, type, help);
    for (std::size_t i = 0; i < comms_.size(); ++i) sample(i, "", value(comms_[i]));
  }

  std::string take() { return std::move(text_); }

 private:
  std::span<const CommMetrics> comms_;
  std::vector<std::string> labels_;
  std::string_view name_;
  std::string text_;
};

void writeCalls(Writer& writer, std::span<const CommMetrics> comms) {
  const auto all = [&](std::string_view name, std::string_view help, auto&& value) {
    writer.family(name, "counter", help);
    for (std::size_t i = 0; i < comms.size(); ++i) {
      for (const CommMetrics::Call& call : comms[i].calls) {
        writer.sample(i, fmt::format(",collective=\"{}\"", call.collective), value(call));
      }
    }
  };
  all("tutti_calls_total", "Calls of the API that move data.",
      [](const CommMetrics::Call& call) { return call.count.operations; });
  all("tutti_call_bytes_total", "Their sizes: bytes of the larger of a rank's buffers.",
      [](const CommMetrics::Call& call) { return call.count.bytes; });
  all("tutti_bus_bytes_total", "The same, as bus bandwidth counts them: its rate is busbw.",
      [](const CommMetrics::Call& call) { return static_cast<double>(call.count.bytes) * call.busFactor; });
}

void writeKernels(Writer& writer, std::span<const CommMetrics> comms) {
  const auto all = [&](std::string_view name, std::string_view help, std::uint64_t OpCount::*value) {
    writer.family(name, "counter", help);
    for (std::size_t i = 0; i < comms.size(); ++i) {
      for (const CommMetrics::Kernel& kernel : comms[i].kernels) {
        writer.sample(i, fmt::format(",algorithm=\"{}\",protocol=\"{}\"", kernel.algorithm, kernel.protocol),
                      kernel.count.*value);
      }
    }
  };
  all("tutti_launched_total", "Collectives launched, by algorithm and protocol; replays of graphs do not count.",
      &OpCount::operations);
  all("tutti_launched_bytes_total", "Their sizes.", &OpCount::bytes);
}

void writeTransports(Writer& writer, std::span<const CommMetrics> comms) {
  const auto all = [&](std::string_view name, std::string_view type, std::string_view help,
                       std::uint64_t CommMetrics::Transport::*value) {
    writer.family(name, type, help);
    for (std::size_t i = 0; i < comms.size(); ++i) {
      for (const CommMetrics::Transport& transport : comms[i].transports) {
        writer.sample(i, fmt::format(",transport=\"{}\"", escaped(transport.name)), transport.*value);
      }
    }
  };
  all("tutti_connection_ends", "gauge", "Ends of connections that are open.", &CommMetrics::Transport::ends);
  all("tutti_host_bytes_total", "counter", "Bytes that host threads have moved over them.",
      &CommMetrics::Transport::bytes);
  all("tutti_host_stalls_total", "counter", "Times that a network could not take a step at once.",
      &CommMetrics::Transport::stalls);
}

void writeWaits(Writer& writer, std::span<const CommMetrics> comms) {
  writer.family("tutti_wait_seconds", "gauge", "For how long nothing of an operation has moved, by whom it waits for.");
  for (std::size_t i = 0; i < comms.size(); ++i) {
    for (const int peer : comms[i].wait.peers) {
      writer.sample(i, fmt::format(",operation=\"{}\",peer=\"{}\"", escaped(comms[i].wait.operation), peer),
                    comms[i].wait.seconds);
    }
  }
}

CommMetrics::Wait waitOf(const StallProbe& probe, SteadyClock::time_point now) {
  const milliseconds unmoved = probe.unmoved(now);
  if (unmoved < kShortestWait) return {};
  const RankState state = probe.standing(now);
  CommMetrics::Wait wait{.operation = operationOf(state), .seconds = static_cast<double>(unmoved.count()) / 1e3};
  std::copy_if(state.waitsFor.begin(), state.waitsFor.end(), std::back_inserter(wait.peers),
               [](int peer) { return peer >= 0; });
  return wait;
}

void addTransports(const ChannelSet& channels, CommMetrics& metrics) {
  for (const ConnectedCounters& end : channels.allEnds()) {
    auto known = std::find_if(metrics.transports.begin(), metrics.transports.end(),
                              [&](const CommMetrics::Transport& one) { return one.name == end.transport; });
    if (known == metrics.transports.end()) {
      known = metrics.transports.insert(known, {.name = std::string(end.transport)});
    }
    ++known->ends;
    if (end.task == nullptr) continue;
    const proxy::TaskCounters counters = end.task->counters();
    known->bytes += counters.bytes;
    known->stalls += counters.stalls;
  }
}

}  // namespace

CommMetrics metricsOf(ncclComm& comm, SteadyClock::time_point now) {
  const CommIdentity& id = comm.identity;
  CommMetrics metrics{
      .commId = id.commId, .name = comm.config.commName, .rank = id.rank, .nRanks = id.nRanks, .device = id.cudaDevice};
  for (std::size_t i = 0; i < kApiFuncs; ++i) {
    const auto func = static_cast<ApiFunc>(i);
    const OpCount count = comm.tally->calls(func);
    if (count.operations == 0) continue;
    metrics.calls.push_back({apiFuncName(func).data(), count, busFactorOf(func, id.nRanks)});
  }
  for (std::size_t a = 0; a < device::kAlgorithms; ++a) {
    for (std::size_t p = 0; p < device::kProtocols; ++p) {
      const auto algorithm = static_cast<device::Algorithm>(a);
      const auto protocol = static_cast<device::Protocol>(p);
      const OpCount count = comm.tally->kernels(algorithm, protocol);
      if (count.operations == 0) continue;
      metrics.kernels.push_back({std::string(logName(algorithm)), std::string(logName(protocol)), count});
    }
  }
  if (comm.parts.channels != nullptr) addTransports(*comm.parts.channels, metrics);
  metrics.persistentBytes = comm.memory->bytes(gpu::MemoryClass::Persistent);
  metrics.releasableBytes = comm.memory->bytes(gpu::MemoryClass::Releasable);
  metrics.kernelsRun = comm.progress.kernels != nullptr;
  if (comm.parts.stalls != nullptr && !comm.abort.raised()) metrics.wait = waitOf(*comm.parts.stalls, now);
  if (const char* const operation = comm.progress.connecting.load(); operation != nullptr) {
    metrics.connecting = operation;
  }
  if (comm.abort.raised()) metrics.error = resultName(comm.abort.status().code());
  return metrics;
}

std::string metricsText(std::span<const CommMetrics> comms) {
  Writer writer(comms);
  writeCalls(writer, comms);
  writeKernels(writer, comms);
  writeTransports(writer, comms);
  writer.family("tutti_device_memory_bytes", "gauge", "Device memory of a communicator, without its family's.");
  for (std::size_t i = 0; i < comms.size(); ++i) {
    writer.sample(i, ",kind=\"persistent\"", comms[i].persistentBytes);
    writer.sample(i, ",kind=\"releasable\"", comms[i].releasableBytes);
  }
  writer.each("tutti_kernels_run", "gauge", "1: kernels of the communicator run, or wait for peers.",
              [](const CommMetrics& comm) { return comm.kernelsRun ? 1 : 0; });
  writeWaits(writer, comms);
  writer.family("tutti_connecting", "gauge", "1: a call waits to be connected with its peers.");
  for (std::size_t i = 0; i < comms.size(); ++i) {
    if (comms[i].connecting.empty()) continue;
    writer.sample(i, fmt::format(",collective=\"{}\"", escaped(comms[i].connecting)), 1);
  }
  writer.family("tutti_failed", "gauge", "1: the communicator has failed.");
  for (std::size_t i = 0; i < comms.size(); ++i) {
    writer.sample(i, comms[i].error.empty() ? "" : fmt::format(",error=\"{}\"", comms[i].error),
                  comms[i].error.empty() ? 0 : 1);
  }
  return writer.take();
}

}  // namespace tutti::comm
