// What the items of device_micro share: options, the GPU, the table and the figures.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/device_micro/gpu.h"

namespace micro {

struct Options {
  std::vector<std::string> only;
  bool quick = false;
  double seconds = 25;
  int device = 0;
  std::string json;
};

/// The table on stdout, and every figure for the JSON file.
class Report {
 public:
  explicit Report(const std::string& item) : item_(item) {}

  /// A line of the table.
  [[gnu::format(printf, 2, 3)]] void line(const char* format, ...);
  /// One result; `item` is added.
  void result(nlohmann::json values);
  /// Something is wrong with the GPU, or with what ships.
  void failure(const std::string& what);
  /// Part of an item that was left out for want of time.
  void skipped(const std::string& what);

  void setItem(const std::string& item) { item_ = item; }
  const nlohmann::json& results() const { return results_; }
  const std::vector<std::string>& failures() const { return failures_; }
  const std::vector<std::string>& skips() const { return skips_; }

 private:
  std::string item_;
  nlohmann::json results_ = nlohmann::json::array();
  std::vector<std::string> failures_;
  std::vector<std::string> skips_;
};

class Bench {
 public:
  explicit Bench(const Options& given)
      : options(given), gpu(given.device, std::chrono::seconds(given.quick ? 60 : 5)), report("") {}

  const Options& options;
  Gpu gpu;
  Report report;

  bool quick() const { return options.quick; }
  /// How often a figure is measured; its median counts.
  int repeats() const { return quick() ? 1 : 3; }
  /// Kernels leave their waits after this many nanoseconds.
  std::uint64_t spinLimit() const { return quick() ? 20'000'000'000 : 1'000'000'000; }
  double elapsed() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }
  /// Whether the time is over; then says that `what` was left out.
  bool outOfTime(const std::string& what);
  /// Of a GPU with at least so many processors.
  unsigned blocks(unsigned wanted) {
    return std::min(wanted, static_cast<unsigned>(gpu.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)));
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// The median of what measure() returns.
template <class Measure>
double medianOf(int repeats, Measure measure) {
  std::vector<double> values;
  for (int i = 0; i < repeats; ++i) values.push_back(measure());
  return median(values);
}

void runClocks(Bench& bench);
void runCopy(Bench& bench);
void runReduce(Bench& bench);
void runFence(Bench& bench);
void runPingPong(Bench& bench);
void runStress(Bench& bench);
void runLaunch(Bench& bench);

}  // namespace micro
