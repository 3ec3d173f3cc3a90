// Messages with the next rank and the one before, short, empty and long ones, twice each. RANK and SIZE from the
// environment, the root's address from NCCL_COMM_ID.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "check.h"
#include "cuda_runtime.h"
#include "nccl.h"

#define CUDA(call) CHECK(call, cudaSuccess)
#define NCCL(call) CHECK(call, ncclSuccess)

namespace {

constexpr std::size_t kMost = std::size_t{1} << 20;

int valueOf(int rank, std::size_t index) {
  return rank * 1'000'003 + static_cast<int>(index);
}

}  // namespace

int main() {
  const int rank = std::atoi(std::getenv("RANK"));
  const int size = std::atoi(std::getenv("SIZE"));
  const int next = (rank + 1) % size;
  const int previous = (rank + size - 1) % size;
  CUDA(cudaSetDevice(rank));
  int *out, *in;
  CUDA(cudaMalloc(reinterpret_cast<void**>(&out), kMost * sizeof(int)));
  CUDA(cudaMalloc(reinterpret_cast<void**>(&in), kMost * sizeof(int)));
  std::vector<int> values(kMost);
  for (std::size_t i = 0; i < kMost; ++i) values[i] = valueOf(rank, i);
  CUDA(cudaMemcpy(out, values.data(), kMost * sizeof(int), cudaMemcpyHostToDevice));
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  ncclUniqueId id;
  NCCL(ncclGetUniqueId(&id));
  ncclComm_t comm;
  NCCL(ncclCommInitRank(&comm, size, id, rank));
  for (const std::size_t count : {std::size_t{8}, std::size_t{0}, kMost, std::size_t{70'000}, kMost, std::size_t{8}}) {
    CUDA(cudaMemset(in, 0xff, kMost * sizeof(int)));
    NCCL(ncclGroupStart());
    NCCL(ncclSend(out, count, ncclInt32, next, comm, stream));
    NCCL(ncclRecv(in, count, ncclInt32, previous, comm, stream));
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaMemcpy(values.data(), in, kMost * sizeof(int), cudaMemcpyDeviceToHost));
    for (std::size_t i = 0; i < kMost; ++i) CHECK(values[i], i < count ? valueOf(previous, i) : -1);
  }
  NCCL(ncclCommDestroy(comm));
  std::printf("[Rank %d] Success\n", rank);
  return 0;
}
