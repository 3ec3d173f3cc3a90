// A program that lends its device's memory out between steps, reduced to its calls: collectives, messages and a graph,
// then ncclCommSuspend and ncclCommResume, again and again. Says what that gave back and how long it took. RANK and
// SIZE from the environment, the root's address from NCCL_COMM_ID. With the argument "die", rank 1 ends by SIGKILL
// while all are suspended, and the others must hear of it.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "check.h"
#include "cuda_runtime.h"
#include "nccl.h"

namespace {

#define CUDA(call) CHECK(call, cudaSuccess)
#define NCCL(call) CHECK(call, ncclSuccess)

constexpr std::size_t kCount = 120'000;
constexpr int kCycles = 5;

struct Rank {
  int rank;
  int size;
  ncclComm_t comm;
  cudaStream_t stream;
};

int* newBuffer(int value) {
  int* buffer = nullptr;
  CUDA(cudaMalloc(reinterpret_cast<void**>(&buffer), kCount * sizeof(int)));
  const std::vector<int> values(kCount, value);
  CUDA(cudaMemcpy(buffer, values.data(), kCount * sizeof(int), cudaMemcpyHostToDevice));
  return buffer;
}

void expect(const char* what, const Rank& r, const int* buffer, int value) {
  std::vector<int> values(kCount);
  CUDA(cudaStreamSynchronize(r.stream));
  CUDA(cudaMemcpy(values.data(), buffer, kCount * sizeof(int), cudaMemcpyDeviceToHost));
  for (std::size_t i = 0; i < kCount; ++i) {
    if (values[i] == value) continue;
    std::printf("failed: %s: element %zu is %d instead of %d\n", what, i, values[i], value);
    std::exit(EXIT_FAILURE);
  }
}

void passOn(const Rank& r, const int* out, int* in) {
  NCCL(ncclGroupStart());
  NCCL(ncclSend(out, kCount, ncclInt, (r.rank + 1) % r.size, r.comm, r.stream));
  NCCL(ncclRecv(in, kCount, ncclInt, (r.rank + r.size - 1) % r.size, r.comm, r.stream));
  NCCL(ncclGroupEnd());
}

std::size_t freeBytes() {
  std::size_t available = 0;
  std::size_t total = 0;
  CUDA(cudaMemGetInfo(&available, &total));
  return available;
}

std::uint64_t stat(const Rank& r, ncclCommMemStat_t which) {
  std::uint64_t value = 0;
  NCCL(ncclCommMemStats(r.comm, which, &value));
  return value;
}

template <class Call>
double milliseconds(Call&& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

/// Everybody else must fail, and say who is gone.
void survive(Rank& r) {
  NCCL(ncclCommSuspend(r.comm, NCCL_SUSPEND_MEM));
  if (r.rank == 1) {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));  // the others have left the call as well
    std::raise(SIGKILL);
  }
  if (ncclCommResume(r.comm) == ncclSuccess) {
    std::printf("failed: resumed without rank 1\n");
    std::exit(EXIT_FAILURE);
  }
  std::printf("resume failed: %s\n", ncclGetLastError(nullptr));
  NCCL(ncclCommAbort(r.comm));
}

void cycle(Rank& r) {
  int* const mine = newBuffer(r.rank + 1);
  int* const sum = newBuffer(-1);
  int* const passed = newBuffer(-1);
  const int all = r.size * (r.size + 1) / 2;
  const int previous = (r.rank + r.size - 1) % r.size + 1;
  cudaGraph_t graph = nullptr;
  CUDA(cudaStreamBeginCapture(r.stream, cudaStreamCaptureModeGlobal));
  NCCL(ncclAllReduce(mine, sum, kCount, ncclInt, ncclSum, r.comm, r.stream));
  passOn(r, sum, passed);
  CUDA(cudaStreamEndCapture(r.stream, &graph));
  cudaGraphExec_t exec = nullptr;
  CUDA(cudaGraphInstantiate(&exec, graph, 0));

  for (int i = 0; i < kCycles; ++i) {
    CUDA(cudaGraphLaunch(exec, r.stream));
    expect("sum in a graph", r, sum, all);
    expect("message in a graph", r, passed, all);
    passOn(r, mine, passed);
    expect("message", r, passed, previous);
    CUDA(cudaStreamSynchronize(r.stream));

    const std::size_t before = freeBytes();
    const double down = milliseconds([&] { NCCL(ncclCommSuspend(r.comm, NCCL_SUSPEND_MEM)); });
    const std::size_t gained = freeBytes() - before;
    if (gained != stat(r, ncclStatGpuMemSuspend)) {
      std::printf("failed: %zu bytes are free, not %llu\n", gained,
                  static_cast<unsigned long long>(stat(r, ncclStatGpuMemSuspend)));
      std::exit(EXIT_FAILURE);
    }
    const double up = milliseconds([&] { NCCL(ncclCommResume(r.comm)); });
    if (freeBytes() != before) {
      std::printf("failed: %zu bytes are free after Resume, %zu were before\n", freeBytes(), before);
      std::exit(EXIT_FAILURE);
    }
    std::printf("[Rank %d] %llu bytes, %llu while suspended; Suspend %.1f ms, Resume %.1f ms\n", r.rank,
                static_cast<unsigned long long>(stat(r, ncclStatGpuMemTotal)),
                static_cast<unsigned long long>(stat(r, ncclStatGpuMemPersist)), down, up);
  }
  NCCL(ncclAllReduce(mine, sum, kCount, ncclInt, ncclMax, r.comm, r.stream));
  expect("maximum", r, sum, r.size);
  CUDA(cudaGraphExecDestroy(exec));
  CUDA(cudaGraphDestroy(graph));
  NCCL(ncclCommDestroy(r.comm));
  for (int* buffer : {mine, sum, passed}) CUDA(cudaFree(buffer));
}

}  // namespace

int main(int argc, char** argv) {
  Rank r{std::atoi(std::getenv("RANK")), std::atoi(std::getenv("SIZE")), nullptr, nullptr};
  ncclUniqueId id;
  int devices = 0;
  CUDA(cudaGetDeviceCount(&devices));
  CUDA(cudaSetDevice(r.rank % devices));
  CUDA(cudaStreamCreate(&r.stream));
  NCCL(ncclGetUniqueId(&id));
  NCCL(ncclCommInitRank(&r.comm, r.size, id, r.rank));
  if (argc > 1 && std::strcmp(argv[1], "die") == 0) {
    survive(r);
  } else {
    cycle(r);
  }
  std::printf("[Rank %d] Success\n", r.rank);
  return 0;
}
