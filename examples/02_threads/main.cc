// One process, one thread per device. Each thread owns its rank: no groups are needed.
#include <atomic>
#include <thread>
#include <vector>

#include "../common.h"

namespace {

constexpr std::size_t kCount = 1 << 16;

/// Every rank broadcasts once; returns whether this rank received the root's values each time.
bool runRank(int rank, int nRanks, const ncclUniqueId& id) {
  CHECK_CUDA(cudaSetDevice(rank));
  ncclComm_t comm = nullptr;
  CHECK_NCCL(ncclCommInitRank(&comm, nRanks, id, rank));

  cudaStream_t stream = nullptr;
  int* buffer = nullptr;
  CHECK_CUDA(cudaStreamCreate(&stream));
  CHECK_CUDA(cudaMalloc(reinterpret_cast<void**>(&buffer), kCount * sizeof(int)));

  bool correct = true;
  for (int root = 0; root < nRanks; ++root) {
    std::vector<int> host(kCount, rank * 100 + root);
    CHECK_CUDA(cudaMemcpy(buffer, host.data(), kCount * sizeof(int), cudaMemcpyHostToDevice));
    CHECK_NCCL(ncclBroadcast(buffer, buffer, kCount, ncclInt, root, comm, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaMemcpy(host.data(), buffer, kCount * sizeof(int), cudaMemcpyDeviceToHost));
    for (int v : host) correct = correct && v == root * 100 + root;
  }

  CHECK_CUDA(cudaFree(buffer));
  CHECK_CUDA(cudaStreamDestroy(stream));
  CHECK_NCCL(ncclCommDestroy(comm));
  return correct;
}

}  // namespace

int main() {
  int n = 0;
  CHECK_CUDA(cudaGetDeviceCount(&n));
  ncclUniqueId id;
  CHECK_NCCL(ncclGetUniqueId(&id));
  std::atomic<int> correct{0};
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(n));
  for (int rank = 0; rank < n; ++rank) {
    threads.emplace_back([rank, n, &id, &correct] { correct += runRank(rank, n, id) ? 1 : 0; });
  }
  for (auto& thread : threads) thread.join();
  std::printf("%d threads: %d received every broadcast\n", n, correct.load());
  return correct == n ? 0 : 1;
}
