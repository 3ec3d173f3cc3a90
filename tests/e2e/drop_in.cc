// A host-only program in the way of nccl-tests, for linking against any libnccl.so.2 and the dynamic CUDA runtime:
// all-reduce on every device from one thread, a ring of send and receive, and the same work split over two threads.
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kCount = 100003;

void need(bool good, const char* what) {
  if (good) return;
  std::printf("failed: %s: %s\n", what, ncclGetLastError(nullptr));
  std::exit(1);
}

struct Rank {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  float* data = nullptr;
};

void load(Rank& r, int device, float value) {
  const std::vector<float> host(kCount, value);
  need(cudaSetDevice(device) == cudaSuccess, "cudaSetDevice");
  if (r.stream == nullptr) need(cudaStreamCreate(&r.stream) == cudaSuccess, "cudaStreamCreate");
  if (r.data == nullptr)
    need(cudaMalloc(reinterpret_cast<void**>(&r.data), 2 * kCount * sizeof(float)) == cudaSuccess, "cudaMalloc");
  need(cudaMemcpy(r.data, host.data(), kCount * sizeof(float), cudaMemcpyHostToDevice) == cudaSuccess, "cudaMemcpy");
}

void expect(Rank& r, int device, std::size_t offset, float value, const char* what) {
  std::vector<float> host(kCount);
  need(cudaSetDevice(device) == cudaSuccess, "cudaSetDevice");
  need(cudaStreamSynchronize(r.stream) == cudaSuccess, "cudaStreamSynchronize");
  need(cudaMemcpy(host.data(), r.data + offset, kCount * sizeof(float), cudaMemcpyDeviceToHost) == cudaSuccess,
       "cudaMemcpy");
  for (float v : host) need(v == value, what);
}

void allReduce(std::vector<Rank>& ranks) {
  const int n = static_cast<int>(ranks.size());
  for (int d = 0; d < n; ++d) load(ranks[static_cast<std::size_t>(d)], d, static_cast<float>(d + 1));
  need(ncclGroupStart() == ncclSuccess, "ncclGroupStart");
  for (Rank& r : ranks) {
    need(ncclAllReduce(r.data, r.data, kCount, ncclFloat, ncclSum, r.comm, r.stream) == ncclSuccess, "ncclAllReduce");
  }
  need(ncclGroupEnd() == ncclSuccess, "ncclGroupEnd");
  for (int d = 0; d < n; ++d) {
    expect(ranks[static_cast<std::size_t>(d)], d, 0, static_cast<float>(n * (n + 1) / 2), "all-reduce result");
  }
}

void ring(std::vector<Rank>& ranks) {
  const int n = static_cast<int>(ranks.size());
  for (int d = 0; d < n; ++d) load(ranks[static_cast<std::size_t>(d)], d, static_cast<float>(d));
  need(ncclGroupStart() == ncclSuccess, "ncclGroupStart");
  for (int d = 0; d < n; ++d) {
    Rank& r = ranks[static_cast<std::size_t>(d)];
    need(ncclSend(r.data, kCount, ncclFloat, (d + 1) % n, r.comm, r.stream) == ncclSuccess, "ncclSend");
    need(ncclRecv(r.data + kCount, kCount, ncclFloat, (d + n - 1) % n, r.comm, r.stream) == ncclSuccess, "ncclRecv");
  }
  need(ncclGroupEnd() == ncclSuccess, "ncclGroupEnd");
  for (int d = 0; d < n; ++d) {
    expect(ranks[static_cast<std::size_t>(d)], d, kCount, static_cast<float>((d + n - 1) % n), "received value");
  }
}

/// Two threads, each a rank of a new communicator.
void twoThreads() {
  ncclUniqueId id;
  need(ncclGetUniqueId(&id) == ncclSuccess, "ncclGetUniqueId");
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([t, &id] {
      Rank r;
      load(r, t, static_cast<float>(10 * (t + 1)));
      need(ncclCommInitRank(&r.comm, 2, id, t) == ncclSuccess, "ncclCommInitRank");
      need(ncclAllReduce(r.data, r.data, kCount, ncclFloat, ncclMax, r.comm, r.stream) == ncclSuccess, "ncclAllReduce");
      expect(r, t, 0, 20, "maximum");
      need(ncclCommDestroy(r.comm) == ncclSuccess, "ncclCommDestroy");
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace

int main() {
  int n = 0;
  int version = 0;
  need(cudaGetDeviceCount(&n) == cudaSuccess && n >= 2, "two devices");
  need(ncclGetVersion(&version) == ncclSuccess, "ncclGetVersion");
  std::vector<ncclComm_t> comms(static_cast<std::size_t>(n));
  need(ncclCommInitAll(comms.data(), n, nullptr) == ncclSuccess, "ncclCommInitAll");
  std::vector<Rank> ranks(static_cast<std::size_t>(n));
  for (std::size_t d = 0; d < ranks.size(); ++d) ranks[d].comm = comms[d];
  allReduce(ranks);
  ring(ranks);
  twoThreads();
  for (Rank& r : ranks) need(ncclCommDestroy(r.comm) == ncclSuccess, "ncclCommDestroy");
  std::printf("version %d, %d devices: correct\n", version, n);
  return 0;
}
