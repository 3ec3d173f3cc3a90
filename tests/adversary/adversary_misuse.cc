// Makes wrong calls of the API, chosen by a seed, between good ones that must still work.
//
//   adversary_misuse SEED CALLS REPORT
//
// Tells with report.h: "call NAME" before and "said CODE TEXT" after each wrong call, "silent NAME" where an error was
// due and none came, "wrong TEXT" where a good operation afterwards has another result. Exit code 0, or 43 after a
// wrong result, 46 after a silent one, 44 if it cannot begin.
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "misuse_calls.h"
#include "report.h"

namespace {

using namespace tutti::adversary;

constexpr std::size_t kBytes = 4096;
constexpr int kRanks = 2;

struct World {
  std::array<ncclComm_t, kRanks> comms{};
  std::array<cudaStream_t, kRanks> streams{};
  std::array<float*, kRanks> memory{};
};

bool begin(World& world) {
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    if (cudaSetDevice(rank) != cudaSuccess || cudaStreamCreate(&world.streams[i]) != cudaSuccess) return false;
    if (cudaMalloc(reinterpret_cast<void**>(&world.memory[i]), kBytes) != cudaSuccess) return false;
  }
  return ncclCommInitAll(world.comms.data(), kRanks, nullptr) == ncclSuccess;
}

/// A good AllReduce of both ranks; an empty text, or what is wrong.
std::string reduce(World& world) {
  constexpr std::size_t kCount = kBytes / sizeof(float);
  for (std::size_t i = 0; i < kRanks; ++i) {
    const std::vector<float> values(kCount, static_cast<float>(i + 1));
    if (cudaMemcpy(world.memory[i], values.data(), kBytes, cudaMemcpyHostToDevice) != cudaSuccess) return "no copy";
  }
  ncclResult_t result = ncclGroupStart();
  for (std::size_t i = 0; i < kRanks && result == ncclSuccess; ++i)
    result =
        ncclAllReduce(world.memory[i], world.memory[i], kCount, ncclFloat, ncclSum, world.comms[i], world.streams[i]);
  const ncclResult_t ended = ncclGroupEnd();
  if (result != ncclSuccess || ended != ncclSuccess)
    return std::string("a good AllReduce fails: ") + ncclGetLastError(world.comms[0]);
  for (std::size_t i = 0; i < kRanks; ++i) {
    std::vector<float> values(kCount);
    if (cudaStreamSynchronize(world.streams[i]) != cudaSuccess) return "no end";
    if (cudaMemcpy(values.data(), world.memory[i], kBytes, cudaMemcpyDeviceToHost) != cudaSuccess) return "no copy";
    for (const float value : values)
      if (value != 3) return "a good AllReduce gives " + std::to_string(value) + ", not 3";
  }
  return {};
}

int run(unsigned long seed, int calls) {
  World world;
  if (!begin(world)) return 44;
  cudaSetDevice(0);
  Bench bench{std::mt19937_64(seed), world.comms[0], world.streams[0], world.memory[0], kBytes};
  int code = 0;
  for (int i = 0; i < calls; ++i) {
    const Misuse& misuse = misuses()[bench.random() % misuses().size()];
    report(0, "call", misuse.name);
    const ncclResult_t result = misuse.call(bench);
    report(0, "said", std::to_string(result) + " " + (result == ncclSuccess ? "" : ncclGetLastError(nullptr)));
    if (misuse.mustFail && result == ncclSuccess) {
      report(0, "silent", misuse.name);
      code = 46;
    }
    const std::string wrong = reduce(world);
    if (!wrong.empty()) {
      report(0, "wrong", "after " + misuse.name + ": " + wrong);
      return 43;
    }
  }
  for (const ncclComm_t comm : world.comms)
    if (ncclCommDestroy(comm) != ncclSuccess) return 43;
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  reportTo(std::atoi(argv[3]));
  const int code = run(std::strtoul(argv[1], nullptr, 10), std::atoi(argv[2]));
  report(-1, "exit", std::to_string(code));
  return code;
}
