// One process per rank, started by whatever you like. Rank, size and the root's address come from the environment:
//
//   export SIZE=2 NCCL_COMM_ID=127.0.0.1:23456
//   RANK=1 ./03_processes &  RANK=0 ./03_processes
//
// With NCCL_COMM_ID no id has to be carried from process to process: rank 0 listens at that address.
#include <cstdlib>
#include <string>
#include <vector>

#include "../common.h"

namespace {

int numberFrom(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) {
    std::fprintf(stderr, "set %s (and RANK, SIZE, NCCL_COMM_ID)\n", name);
    std::exit(2);
  }
  return std::atoi(text);
}

}  // namespace

int main() {
  const int rank = numberFrom("RANK");
  const int size = numberFrom("SIZE");
  int devices = 0;
  CHECK_CUDA(cudaGetDeviceCount(&devices));
  CHECK_CUDA(cudaSetDevice(rank % devices));

  ncclUniqueId id;
  CHECK_NCCL(ncclGetUniqueId(&id));
  ncclComm_t comm = nullptr;
  CHECK_NCCL(ncclCommInitRank(&comm, size, id, rank));

  // Everybody sends its number to the next rank and receives from the previous one, at the same time.
  int* numbers = nullptr;
  cudaStream_t stream = nullptr;
  CHECK_CUDA(cudaStreamCreate(&stream));
  CHECK_CUDA(cudaMalloc(reinterpret_cast<void**>(&numbers), 2 * sizeof(int)));
  CHECK_CUDA(cudaMemcpy(numbers, &rank, sizeof rank, cudaMemcpyHostToDevice));
  const int previous = (rank + size - 1) % size;
  CHECK_NCCL(ncclGroupStart());
  CHECK_NCCL(ncclSend(numbers, 1, ncclInt, (rank + 1) % size, comm, stream));
  CHECK_NCCL(ncclRecv(numbers + 1, 1, ncclInt, previous, comm, stream));
  CHECK_NCCL(ncclGroupEnd());
  CHECK_CUDA(cudaStreamSynchronize(stream));

  int received = -1;
  CHECK_CUDA(cudaMemcpy(&received, numbers + 1, sizeof received, cudaMemcpyDeviceToHost));
  std::printf("rank %d of %d received %d\n", rank, size, received);

  CHECK_CUDA(cudaFree(numbers));
  CHECK_CUDA(cudaStreamDestroy(stream));
  CHECK_NCCL(ncclCommDestroy(comm));
  return received == previous ? 0 : 1;
}
