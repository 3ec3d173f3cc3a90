// One rank of a job in which another dies: says what its API calls return.
//
//   survivor RANK SIZE       (NCCL_COMM_ID names the root)
//
// Lines: "started", "init done", "reduced N", "error CODE TEXT", "aborted". Exit code 42 after an error and an abort.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "cuda_runtime_api.h"
#include "nccl.h"

namespace {

int reportAndAbort(ncclComm_t comm, ncclResult_t result) {
  std::printf("error %d %s\n", result, ncclGetLastError(comm));
  if (comm != nullptr) {
    const ncclResult_t aborted = ncclCommAbort(comm);
    std::printf("aborted %d\n", aborted);
  } else {
    std::printf("aborted 0\n");
  }
  return 42;
}

/// Waits for the stream while watching the communicator, as frameworks do.
ncclResult_t waitWatching(ncclComm_t comm, cudaStream_t stream) {
  while (cudaStreamQuery(stream) == cudaErrorNotReady) {
    ncclResult_t state = ncclSuccess;
    if (const ncclResult_t r = ncclCommGetAsyncError(comm, &state); r != ncclSuccess) return r;
    if (state != ncclSuccess) return state;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  ncclResult_t state = ncclSuccess;
  const ncclResult_t r = ncclCommGetAsyncError(comm, &state);
  return r != ncclSuccess ? r : state;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const int rank = std::atoi(argv[1]);
  const int size = std::atoi(argv[2]);
  std::printf("started pid %d\n", getpid());
  if (cudaSetDevice(rank) != cudaSuccess) return 3;
  ncclUniqueId id;
  if (ncclGetUniqueId(&id) != ncclSuccess) return 3;
  ncclComm_t comm = nullptr;
  if (const ncclResult_t r = ncclCommInitRank(&comm, size, id, rank); r != ncclSuccess) return reportAndAbort(comm, r);
  std::printf("init done\n");

  constexpr std::size_t kCount = 1 << 20;
  void* buffer = nullptr;
  cudaStream_t stream = nullptr;
  if (cudaMalloc(&buffer, kCount * sizeof(float)) != cudaSuccess || cudaStreamCreate(&stream) != cudaSuccess) return 3;
  for (long n = 1;; ++n) {
    ncclResult_t r = ncclAllReduce(buffer, buffer, kCount, ncclFloat, ncclSum, comm, stream);
    if (r == ncclSuccess) r = waitWatching(comm, stream);
    if (r != ncclSuccess) return reportAndAbort(comm, r);
    if (n % 4 == 0) std::printf("reduced %ld\n", n);
  }
}
