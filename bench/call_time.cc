// What a call costs its thread: host time from the call to its return, kernels and waits for them not included. One
// process, ranks on devices 0 and 1. Each call is timed alone and its kernels are waited for before the next one, so
// that no call finds a queue or a busy device; the median of the rounds is printed.
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "bench/check.h"

namespace {

constexpr std::size_t kCount = 64;

/// A rank with its buffers.
struct Rank {
  int device = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  float* in = nullptr;
  float* out = nullptr;

  explicit Rank(int on) : device(on) {
    CHECK_CUDA(cudaSetDevice(device));
    CHECK_CUDA(cudaStreamCreate(&stream));
    CHECK_CUDA(cudaMalloc(reinterpret_cast<void**>(&in), kCount * sizeof(float)));
    CHECK_CUDA(cudaMalloc(reinterpret_cast<void**>(&out), kCount * sizeof(float)));
  }
  void wait() const {
    CHECK_CUDA(cudaSetDevice(device));
    CHECK_CUDA(cudaStreamSynchronize(stream));
  }
};

/// A lone rank, and two that belong together.
struct World {
  Rank alone{0};
  Rank first{0};
  Rank second{1};

  World() {
    const int device = 0;
    CHECK_NCCL(ncclCommInitAll(&alone.comm, 1, &device));
    std::vector<ncclComm_t> both(2);
    CHECK_NCCL(ncclCommInitAll(both.data(), 2, nullptr));
    first.comm = both[0];
    second.comm = both[1];
    CHECK_CUDA(cudaSetDevice(0));
  }
  void wait() const {
    for (const Rank* rank : {&second, &alone, &first}) rank->wait();
  }
  void end() const {
    for (const Rank* rank : {&alone, &first, &second}) CHECK_NCCL(ncclCommDestroy(rank->comm));
  }
};

void messageToOneself(const Rank& r) {
  CHECK_NCCL(ncclGroupStart());
  CHECK_NCCL(ncclSend(r.in, kCount, ncclFloat, 0, r.comm, r.stream));
  CHECK_NCCL(ncclRecv(r.out, kCount, ncclFloat, 0, r.comm, r.stream));
  CHECK_NCCL(ncclGroupEnd());
}

void exchange(const World& w) {
  CHECK_NCCL(ncclGroupStart());
  for (const Rank* r : {&w.first, &w.second}) {
    const int peer = r == &w.first ? 1 : 0;
    CHECK_NCCL(ncclSend(r->in, kCount, ncclFloat, peer, r->comm, r->stream));
    CHECK_NCCL(ncclRecv(r->out, kCount, ncclFloat, peer, r->comm, r->stream));
  }
  CHECK_NCCL(ncclGroupEnd());
}

void allReduceOfBoth(const World& w) {
  CHECK_NCCL(ncclGroupStart());
  for (const Rank* r : {&w.first, &w.second}) {
    CHECK_NCCL(ncclAllReduce(r->in, r->out, kCount, ncclFloat, ncclSum, r->comm, r->stream));
  }
  CHECK_NCCL(ncclGroupEnd());
}

/// Microseconds, the median.
double time(const World& world, int rounds, const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (int i = -rounds / 10 - 1; i < rounds; ++i) {
    const auto start = Clock::now();
    call();
    const std::chrono::duration<double, std::micro> took = Clock::now() - start;
    world.wait();
    if (i >= 0) times.push_back(took.count());
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5000;
  if (rounds < 1 || argc > 2) {
    std::fprintf(
        stderr, "usage: %s [ROUNDS]\nPrints the host time of single calls in microseconds, medians of ROUNDS (5000).\n",
        argv[0]);
    return 2;
  }
  const World world;
  const auto report = [&](const char* what, const std::function<void()>& call) {
    std::printf("%-40s %8.2f us\n", what, time(world, rounds, call));
  };
  report("message to oneself", [&] { messageToOneself(world.alone); });
  report("AllReduce by the average, a lone rank", [&] {
    const Rank& r = world.alone;
    CHECK_NCCL(ncclAllReduce(r.in, r.out, kCount, ncclFloat, ncclAvg, r.comm, r.stream));
  });
  report("AllReduce, two ranks of one thread", [&] { allReduceOfBoth(world); });
  report("messages both ways, two ranks", [&] { exchange(world); });
  world.end();
  return 0;
}
