// One rank of a job that is traced: reduces 64 KB as often as it is told, perhaps late each time.
//
//   traced RANK SIZE TIMES [LATE_MILLISECONDS]     (NCCL_COMM_ID names the root)
//
// Says "pid N" and "done"; with TIMES 0 it goes on until it is killed, and says "reduced 100".
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "cuda_runtime_api.h"
#include "nccl.h"

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const int rank = std::atoi(argv[1]);
  const int size = std::atoi(argv[2]);
  const long times = std::atol(argv[3]);
  const std::chrono::milliseconds late(argc > 4 ? std::atol(argv[4]) : 0);
  std::printf("pid %d\n", getpid());
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || cudaSetDevice(rank % devices) != cudaSuccess) return 3;
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  if (ncclGetUniqueId(&id) != ncclSuccess || ncclCommInitRank(&comm, size, id, rank) != ncclSuccess) return 3;
  constexpr std::size_t kCount = 16384;
  void* buffer = nullptr;
  cudaStream_t stream = nullptr;
  if (cudaMalloc(&buffer, kCount * sizeof(float)) != cudaSuccess || cudaStreamCreate(&stream) != cudaSuccess) return 3;
  for (long n = 1; times == 0 || n <= times; ++n) {
    if (late.count() > 0) std::this_thread::sleep_for(late);
    if (ncclAllReduce(buffer, buffer, kCount, ncclFloat, ncclSum, comm, stream) != ncclSuccess) return 4;
    if (cudaStreamSynchronize(stream) != cudaSuccess) return 4;
    if (n == 100) std::printf("reduced 100\n");
  }
  if (ncclCommDestroy(comm) != ncclSuccess) return 5;
  std::printf("done\n");
}
