// A program as its users write it: rank and size from the environment, one all-reduce of 32 Mi floats, no groups.
#include <cstdio>
#include <cstdlib>

#include "check.h"
#include "cuda_runtime.h"
#include "nccl.h"

int main() {
  const int count = 32 * 1024 * 1024;
  const int rank = std::atoi(std::getenv("RANK"));
  const int size = std::atoi(std::getenv("SIZE"));
  ncclUniqueId id;
  ncclComm_t comm;
  float *send, *recv;
  cudaStream_t stream;
  ncclGetUniqueId(&id);
  CHECK(cudaSetDevice(rank), cudaSuccess);
  CHECK(cudaMalloc(reinterpret_cast<void**>(&send), count * sizeof(float)), cudaSuccess);
  CHECK(cudaMalloc(reinterpret_cast<void**>(&recv), count * sizeof(float)), cudaSuccess);
  CHECK(cudaStreamCreate(&stream), cudaSuccess);
  CHECK(ncclCommInitRank(&comm, size, id, rank), ncclSuccess);
  CHECK(ncclAllReduce(send, recv, static_cast<size_t>(count), ncclFloat, ncclSum, comm, stream), ncclSuccess);
  CHECK(cudaStreamSynchronize(stream), cudaSuccess);
  CHECK(cudaFree(send), cudaSuccess);
  CHECK(cudaFree(recv), cudaSuccess);
  CHECK(ncclCommDestroy(comm), ncclSuccess);
  std::printf("[Rank %d] Success\n", rank);
  return 0;
}
