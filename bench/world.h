// The ranks of a benchmark: processes of threads of GPUs, one shared page for what they tell each other.
#pragma once

#include <cuda_runtime_api.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "bench/options.h"
#include "nccl.h"

namespace bench {

inline constexpr int kMaxRanks = 1024;

/// Prints what failed and where, and ends the process: the supervising process ends the others.
[[noreturn]] void die(const char* what, const char* why, const char* file, int line);

#define CUDA_CHECK(call)                                                                                              \
  do {                                                                                                                \
    const cudaError_t cudaCheckResult = (call);                                                                       \
    if (cudaCheckResult != cudaSuccess) ::bench::die(#call, cudaGetErrorString(cudaCheckResult), __FILE__, __LINE__); \
  } while (false)

#define NCCL_CHECK(call)                                                                              \
  do {                                                                                                \
    const ncclResult_t ncclCheckResult = (call);                                                      \
    if (ncclCheckResult != ncclSuccess) ::bench::dieNccl(#call, ncclCheckResult, __FILE__, __LINE__); \
  } while (false)

[[noreturn]] void dieNccl(const char* what, ncclResult_t result, const char* file, int line);

/// Lives in memory shared by all processes.
struct Shared {
  pthread_barrier_t barrier;  ///< all threads of all processes
  ncclUniqueId id;
  std::array<double, kMaxRanks> seconds;  ///< per rank, of the measurement in progress
  std::atomic<std::uint64_t> wrong;
  struct DeviceLine {
    int pid;
    int device;
    int busId;
    char name[64];
    char host[64];
  };
  std::array<DeviceLine, kMaxRanks> devices;
};

/// One rank as its thread holds it.
struct Rank {
  int rank = 0;
  int device = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  void* send = nullptr;
  void* recv = nullptr;
};

/// What one thread owns: options().gpus consecutive ranks.
class Worker {
 public:
  Worker(const Options& options, Shared* shared, int process, int thread);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  std::vector<Rank>& ranks() { return ranks_; }
  Shared& shared() { return *shared_; }
  const Options& options() const { return options_; }
  bool leads() const { return ranks_.front().rank == 0; }
  /// All threads of all processes.
  void barrier() { pthread_barrier_wait(&shared_->barrier); }
  void synchronize();

 private:
  const Options& options_;
  Shared* shared_;
  std::vector<Rank> ranks_;
};

/// Runs `body` once per thread of every process and returns the exit code of the program.
int runWorld(const Options& options, void (*body)(Worker& worker, void* context), void* context);

}  // namespace bench
