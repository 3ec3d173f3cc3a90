// Some ranks of a job, each a thread of this process, that is made and destroyed several times; whatever they reduce is
// checked.
//
//   mixed_job SIZE CYCLES REDUCTIONS RANK…     (NCCL_COMM_ID names the root)
//
// "reduced N", of all of this process's ranks, is its last line.
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "check.h"
#include "cuda_runtime.h"
#include "nccl.h"

namespace {

constexpr std::size_t kCount = 30000;
constexpr std::size_t kBytes = kCount * sizeof(int);

struct Job {
  int size = 0;
  int cycles = 0;
  int reductions = 0;
};

int elementOf(int rank, std::size_t i) {
  return (rank + 1) * 1000 + static_cast<int>(i % 977);
}

void reduce(const Job& job, int* data, int rank, ncclComm_t comm, cudaStream_t stream) {
  std::vector<int> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) values[i] = elementOf(rank, i);
  CHECK(cudaMemcpy(data, values.data(), kBytes, cudaMemcpyHostToDevice), cudaSuccess);
  CHECK(ncclAllReduce(data, data, kCount, ncclInt, ncclSum, comm, stream), ncclSuccess);
  CHECK(cudaStreamSynchronize(stream), cudaSuccess);
  CHECK(cudaMemcpy(values.data(), data, kBytes, cudaMemcpyDeviceToHost), cudaSuccess);
  for (std::size_t i = 0; i < kCount; ++i) {
    int sum = 0;
    for (int r = 0; r < job.size; ++r) sum += elementOf(r, i);
    CHECK(values[i], sum);
  }
}

void takePart(const Job& job, int rank) {
  int devices = 0;
  int* data = nullptr;
  cudaStream_t stream = nullptr;
  CHECK(cudaGetDeviceCount(&devices), cudaSuccess);
  CHECK(cudaSetDevice(rank % devices), cudaSuccess);
  CHECK(cudaMalloc(reinterpret_cast<void**>(&data), kBytes), cudaSuccess);
  CHECK(cudaStreamCreate(&stream), cudaSuccess);
  for (int cycle = 0; cycle < job.cycles; ++cycle) {
    ncclUniqueId id;
    ncclComm_t comm = nullptr;
    CHECK(ncclGetUniqueId(&id), ncclSuccess);
    CHECK(ncclCommInitRank(&comm, job.size, id, rank), ncclSuccess);
    for (int n = 0; n < job.reductions; ++n) reduce(job, data, rank, comm, stream);
    CHECK(ncclCommDestroy(comm), ncclSuccess);
  }
  CHECK(cudaStreamDestroy(stream), cudaSuccess);
  CHECK(cudaFree(data), cudaSuccess);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const Job job{std::atoi(argv[1]), std::atoi(argv[2]), std::atoi(argv[3])};
  std::vector<std::thread> ranks;
  for (int i = 4; i < argc; ++i) ranks.emplace_back(takePart, job, std::atoi(argv[i]));
  for (std::thread& rank : ranks) rank.join();
  std::printf("reduced %d\n", job.cycles * job.reductions * (argc - 4));
  return 0;
}
