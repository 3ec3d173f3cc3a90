// The roof over every benchmark on one GPU: how fast the device copies its own memory.
//
//   device_copy_perf [-b BYTES] [-e BYTES] [-n ITERATIONS] [--json FILE]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/world.h"

namespace {

struct Buffers {
  void* from = nullptr;
  void* to = nullptr;
  cudaStream_t stream = nullptr;
};

/// Seconds per copy: the median of five timings of `iterations` copies.
double timeCopies(const Buffers& buffers, std::size_t bytes, int iterations) {
  cudaEvent_t start = nullptr;
  cudaEvent_t stop = nullptr;
  CUDA_CHECK(cudaEventCreate(&start));
  CUDA_CHECK(cudaEventCreate(&stop));
  std::vector<float> milliseconds;
  for (int repeat = 0; repeat < 5; ++repeat) {
    CUDA_CHECK(cudaEventRecord(start, buffers.stream));
    for (int i = 0; i < iterations; ++i) {
      CUDA_CHECK(cudaMemcpyAsync(buffers.to, buffers.from, bytes, cudaMemcpyDeviceToDevice, buffers.stream));
    }
    CUDA_CHECK(cudaEventRecord(stop, buffers.stream));
    CUDA_CHECK(cudaEventSynchronize(stop));
    milliseconds.push_back(0);
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds.back(), start, stop));
  }
  CUDA_CHECK(cudaEventDestroy(start));
  CUDA_CHECK(cudaEventDestroy(stop));
  std::sort(milliseconds.begin(), milliseconds.end());
  return milliseconds[milliseconds.size() / 2] / 1e3 / iterations;
}

int run(int argc, char** argv) {
  std::size_t smallest = std::size_t{1} << 20;
  std::size_t largest = std::size_t{1} << 30;
  int iterations = 20;
  std::string json;
  CLI::App app{"device_copy_perf: time copies within one device", "device_copy_perf"};
  app.add_option("-b,--minbytes", smallest, "smallest size")->transform(CLI::AsSizeValue(false));
  app.add_option("-e,--maxbytes", largest, "largest size")->transform(CLI::AsSizeValue(false));
  app.add_option("-n,--iters", iterations, "copies per timing")->check(CLI::Range(1, 1 << 20));
  app.add_option("--json", json, "write results as JSON to this file")->type_name("FILE");
  CLI11_PARSE(app, argc, argv);

  Buffers buffers;
  CUDA_CHECK(cudaMalloc(&buffers.from, largest));
  CUDA_CHECK(cudaMalloc(&buffers.to, largest));
  CUDA_CHECK(cudaStreamCreate(&buffers.stream));
  nlohmann::json results = nlohmann::json::array();
  std::printf("#      size   time (us)   moved (GB/s; every byte is read and written)\n");
  for (std::size_t bytes = std::max<std::size_t>(smallest, 1); bytes <= largest; bytes *= 4) {
    timeCopies(buffers, bytes, 2);
    const double seconds = timeCopies(buffers, bytes, iterations);
    const double moved = seconds > 0 ? 2.0 * static_cast<double>(bytes) / seconds / 1e9 : 0;
    std::printf("%11zu %11.2f %9.1f\n", bytes, seconds * 1e6, moved);
    results.push_back({{"bytes", bytes}, {"time_us", seconds * 1e6}, {"moved_gb_per_s", moved}});
  }
  if (!json.empty())
    std::ofstream(json) << nlohmann::json{{"program", "device_copy_perf"}, {"results", results}}.dump(1) << "\n";
  CUDA_CHECK(cudaStreamDestroy(buffers.stream));
  CUDA_CHECK(cudaFree(buffers.from));
  CUDA_CHECK(cudaFree(buffers.to));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "device_copy_perf: %s\n", error.what());
    return 1;
  }
}
