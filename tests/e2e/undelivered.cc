// Rank 0 ends in order, but what its last graph has sent was never received: rank 1 has recorded the receive and does
// not replay it: it waits until it is killed. RANK from the environment, of two, the root's address from NCCL_COMM_ID.
// Rank 0 sends when there is a file GO: rank 1, which has said that it is ready, can be stopped before, so that its
// host takes nothing either.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "check.h"
#include "cuda_runtime.h"
#include "nccl.h"

namespace {

#define CUDA(call) CHECK(call, cudaSuccess)
#define NCCL(call) CHECK(call, ncclSuccess)

/// Less than the slots of one end hold (LL, eight of 16 KB), which fill unasked.
constexpr std::size_t kBytes = std::size_t{96} << 10;

struct Rank {
  int rank = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  void* data = nullptr;
};

void pass(const Rank& r) {
  if (r.rank == 0) NCCL(ncclSend(r.data, kBytes, ncclChar, 1, r.comm, r.stream));
  if (r.rank == 1) NCCL(ncclRecv(r.data, kBytes, ncclChar, 0, r.comm, r.stream));
}

cudaGraphExec_t recordPass(const Rank& r) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  CUDA(cudaStreamBeginCapture(r.stream, cudaStreamCaptureModeGlobal));
  pass(r);
  CUDA(cudaStreamEndCapture(r.stream, &graph));
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  CUDA(cudaGraphDestroy(graph));
  return exec;
}

}  // namespace

int main() {
  Rank r{.rank = std::atoi(std::getenv("RANK"))};
  ncclUniqueId id;
  CUDA(cudaSetDevice(r.rank));
  CUDA(cudaStreamCreate(&r.stream));
  CUDA(cudaMalloc(&r.data, kBytes));
  NCCL(ncclGetUniqueId(&id));
  NCCL(ncclCommInitRank(&r.comm, 2, id, r.rank));
  pass(r);
  CUDA(cudaStreamSynchronize(r.stream));
  const cudaGraphExec_t exec = recordPass(r);
  NCCL(ncclCommDestroy(r.comm));
  if (r.rank == 0) {
    for (int ms = 0; ms < 60'000 && ::access(std::getenv("GO"), F_OK) != 0; ++ms) ::usleep(1000);
    CUDA(cudaGraphLaunch(exec, r.stream));
    CUDA(cudaStreamSynchronize(r.stream));
  }
  std::printf("[Rank %d] Ready\n", r.rank);
  std::fflush(stdout);
  while (r.rank == 1) ::pause();
  return 0;
}
