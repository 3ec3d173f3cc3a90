// What a GPU gives to device code like ours: how fast blocks copy and add, what fences, barriers, messages and launches
// cost, and whether flags ever arrive without their data. For one GPU; measured by the kernels in kernels.cu.
//
//   device_micro [--only ITEM,...] [--quick] [--seconds N] [--json FILE]
//
// Exit status: 0; 1: torn or stale data where the library relies on them, or a wait that ran into its limit; 2: a call
// failed.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <utility>

#include "bench/device_micro/bench.h"
#include "bench/device_micro/params.h"

namespace micro {

void runClocks(Bench& bench) {
  Memory times(Memory::Place::Device, sizeof(BlockTime));
  bench.gpu.run("clocks", {1, 32}, ClockParams{bench.quick() ? 100'000u : 2'000'000u, times.get<BlockTime>()});
  const BlockTime time = times.read<BlockTime>(1)[0];
  const double ns = static_cast<double>(std::max<std::uint64_t>(time.end - time.begin, 1));
  const double gigahertz = static_cast<double>(time.cycles) / ns;
  bench.report.result({{"globaltimer_step_ns", time.extra}, {"clock_ghz", gigahertz}});
  bench.report.line("clocks: %%globaltimer goes in steps of %llu ns; %%clock64 counts %.3f cycles per nanosecond",
                    static_cast<unsigned long long>(time.extra), gigahertz);
}

namespace {

constexpr std::pair<const char*, void (*)(Bench&)> kItems[] = {
    {"clocks", runClocks}, {"stress", runStress}, {"pingpong", runPingPong}, {"fence", runFence},
    {"launch", runLaunch}, {"copy", runCopy},     {"reduce", runReduce},
};

bool wanted(const Options& options, const std::string& item) {
  return options.only.empty() || std::find(options.only.begin(), options.only.end(), item) != options.only.end();
}

nlohmann::json describe(Bench& bench) {
  return {{"name", bench.gpu.name()},
          {"driver", bench.gpu.driver()},
          {"multiprocessors", bench.gpu.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)},
          {"clock_khz", bench.gpu.attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE)},
          {"memory_clock_khz", bench.gpu.attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)},
          {"l2_bytes", bench.gpu.attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)}};
}

void writeJson(Bench& bench, const nlohmann::json& device, const std::string& error) {
  if (bench.options.json.empty()) return;
  std::ofstream file(bench.options.json);
  file << nlohmann::json{{"program", "device_micro"},
                         {"quick", bench.quick()},
                         {"device", device},
                         {"seconds", bench.elapsed()},
                         {"results", bench.report.results()},
                         {"failures", bench.report.failures()},
                         {"skipped", bench.report.skips()},
                         {"error", error}}
              .dump(1)
       << "\n";
  if (!file.flush()) std::fprintf(stderr, "device_micro: cannot write %s\n", bench.options.json.c_str());
}

/// All items that are wanted; the text of the error that ended them, or nothing.
std::string runItems(Bench& bench, const nlohmann::json& device) {
  for (const auto& [item, run] : kItems) {
    if (!wanted(bench.options, item)) continue;
    bench.report.setItem(item);
    if (bench.outOfTime("all")) continue;
    const double begin = bench.elapsed();
    try {
      run(bench);
    } catch (const std::exception& error) {
      return std::string(item) + ": " + error.what();
    }
    bench.report.line("  (%s took %.2f s)", item, bench.elapsed() - begin);
    writeJson(bench, device, "");  // should somebody end this program, what it has is there
  }
  return "";
}

int measure(const Options& options) {
  Bench bench(options);
  const nlohmann::json device = describe(bench);
  bench.report.line("device_micro on %s: %d multiprocessors, %.0f MiB of L2 cache, driver %d", bench.gpu.name().c_str(),
                    device["multiprocessors"].get<int>(), device["l2_bytes"].get<double>() / (1 << 20),
                    bench.gpu.driver());
  const std::string error = runItems(bench, device);
  writeJson(bench, device, error);
  for (const std::string& what : bench.report.failures()) std::printf("FAILED %s\n", what.c_str());
  if (!bench.report.skips().empty())
    std::printf("left out after %.0f s: %zu measurements (see --seconds)\n", options.seconds,
                bench.report.skips().size());
  std::printf("device_micro: %zu figures, %zu failures, %.1f s\n", bench.report.results().size(),
              bench.report.failures().size(), bench.elapsed());
  std::fflush(stdout);
  if (error.empty()) return bench.report.failures().empty() ? 0 : 1;
  std::fprintf(stderr, "device_micro: %s\n", error.c_str());
  // After an error of a kernel nothing can be released, and a kernel that hangs would be waited for.
  std::_Exit(2);
}

}  // namespace

}  // namespace micro

int main(int argc, char** argv) {
  micro::Options options;
  CLI::App app{"device_micro: measure what one GPU gives to device code like tutti's", "device_micro"};
  app.add_option("--only", options.only, "only these items: clocks, stress, pingpong, fence, launch, copy, reduce")
      ->delimiter(',')
      ->check(CLI::IsMember({"clocks", "stress", "pingpong", "fence", "launch", "copy", "reduce"}));
  app.add_flag("--quick", options.quick, "tiny sizes: shows that it works, measures nothing");
  app.add_option("--seconds", options.seconds, "begin no measurement after so many seconds")
      ->check(CLI::PositiveNumber);
  app.add_option("--device", options.device, "which GPU")->check(CLI::NonNegativeNumber);
  app.add_option("--json", options.json, "write all figures to this file")->type_name("FILE");
  CLI11_PARSE(app, argc, argv);
  try {
    return micro::measure(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "device_micro: %s\n", error.what());
    return 2;
  }
}
