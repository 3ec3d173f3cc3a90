#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <string>
#include <tuple>
#include <vector>

#include "metrics.h"

namespace tutti::tool {

namespace {

/// Ranks in the order of the table: processes of a host together, then communicators, then ranks.
using Key = std::tuple<std::string, int, std::string, int>;

struct Row {
  std::string name;
  std::string ranks;
  std::string device;
  double calls = 0;
  double busBytes = 0;
  double hostBytes = 0;
  double memory = 0;
  bool kernelsRun = false;
  std::string operation;   ///< that waits …
  std::vector<int> peers;  ///< … for these
  double waitSeconds = 0;
  std::string connecting;
  std::string error;
};

/// 0 where it is none.
int number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Names are what applications call things: they neither break a line nor speak to the terminal.
std::string line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  }
  return text + '\n';
}

Key keyOf(const Sample& sample) {
  return {std::string(sample.label("host")), number(sample.label("pid")), std::string(sample.label("comm")),
          number(sample.label("rank"))};
}

std::map<Key, Row> rowsOf(const std::vector<Sample>& samples) {
  std::map<Key, Row> rows;
  for (const Sample& sample : samples) {
    Row& row = rows[keyOf(sample)];
    row.name = sample.label("name");
    row.ranks = sample.label("ranks");
    row.device = sample.label("device");
    if (sample.name == "tutti_calls_total") row.calls += sample.value;
    if (sample.name == "tutti_bus_bytes_total") row.busBytes += sample.value;
    if (sample.name == "tutti_host_bytes_total") row.hostBytes += sample.value;
    if (sample.name == "tutti_device_memory_bytes") row.memory += sample.value;
    if (sample.name == "tutti_kernels_run") row.kernelsRun = sample.value != 0;
    if (sample.name == "tutti_wait_seconds") {
      row.operation = sample.label("operation");
      row.peers.push_back(number(sample.label("peer")));
      row.waitSeconds = sample.value;
    }
    if (sample.name == "tutti_connecting") row.connecting = sample.label("collective");
    if (sample.name == "tutti_failed") row.error = sample.label("error");
  }
  return rows;
}

std::string stateOf(const Row& row) {
  if (!row.error.empty()) return "failed: " + row.error;
  const std::string doing = !row.connecting.empty() ? "connects for " + row.connecting
                            : row.kernelsRun        ? "kernels run"
                                                    : "idle";
  if (row.peers.empty()) return doing;
  return fmt::format("{}, {} waits {:.1f} s for {} {}", doing, row.operation, row.waitSeconds,
                     row.peers.size() > 1 ? "ranks" : "rank", fmt::join(row.peers, ", "));
}

}  // namespace

std::string topTable(const std::vector<Sample>& before, const std::vector<Sample>& now, double seconds) {
  const std::map<Key, Row> old = rowsOf(before);
  std::string table =
      fmt::format("{:<12} {:>8} {:<18} {:<12} {:>9} {:>3} {:>9} {:>11} {:>10} {:>8}  {}\n", "HOST", "PID", "COMM",
                  "NAME", "RANK", "DEV", "CALLS/S", "BUSBW GB/S", "HOST GB/S", "MEM MIB", "STATE");
  for (const auto& [key, row] : rowsOf(now)) {
    const auto& [host, pid, comm, rank] = key;
    const auto known = old.find(key);
    const Row past = known != old.end() ? known->second : row;
    // Connections that were closed take their bytes with them.
    const auto rate = [&](double Row::*value) {
      return seconds > 0 && row.*value > past.*value ? (row.*value - past.*value) / seconds : 0.0;
    };
    table += line(fmt::format("{:<12} {:>8} {:<18} {:<12} {:>9} {:>3} {:>9.1f} {:>11.3f} {:>10.3f} {:>8.1f}  {}", host,
                              pid, comm, row.name.empty() ? "-" : row.name, fmt::format("{}/{}", rank, row.ranks),
                              row.device, rate(&Row::calls), rate(&Row::busBytes) / 1e9, rate(&Row::hostBytes) / 1e9,
                              row.memory / (1 << 20), stateOf(row)));
  }
  return table;
}

}  // namespace tutti::tool
