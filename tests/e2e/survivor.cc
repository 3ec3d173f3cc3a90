// One rank of a job in which another dies: says what its API calls return.
//
//   survivor RANK SIZE [MICROSECONDS | across]     (NCCL_COMM_ID names the root)
//
// With MICROSECONDS it is the one that dies: killed as by kill -9 that long after it has begun its init. With "across"
// the first rank and the last one exchange messages, and the others do nothing.
// Lines: "started", "init done after N us", "reduced N" or "exchanged N", "error CODE TEXT", "aborted". Exit code 42
// after an error and an abort.
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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

ncclResult_t exchange(float* buffer, std::size_t count, int peer, ncclComm_t comm, cudaStream_t stream) {
  ncclResult_t r = ncclGroupStart();
  if (r == ncclSuccess) r = ncclSend(buffer, count / 2, ncclFloat, peer, comm, stream);
  if (r == ncclSuccess) r = ncclRecv(buffer + count / 2, count / 2, ncclFloat, peer, comm, stream);
  const ncclResult_t ended = ncclGroupEnd();
  return r != ncclSuccess ? r : ended;
}

/// The kernel kills this process after so many microseconds: no handler, no destructor, no farewell.
bool dieAfter(long microseconds) {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGKILL;
  timer_t timer{};
  const itimerspec when{{0, 0}, {microseconds / 1000000, microseconds % 1000000 * 1000 + 1}};
  return timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &when, nullptr) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const int rank = std::atoi(argv[1]);
  const int size = std::atoi(argv[2]);
  std::printf("started pid %d\n", getpid());
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0 || cudaSetDevice(rank % devices) != cudaSuccess)
    return 3;
  ncclUniqueId id;
  if (ncclGetUniqueId(&id) != ncclSuccess) return 3;
  ncclComm_t comm = nullptr;
  const auto began = std::chrono::steady_clock::now();
  const bool across = argc == 4 && std::strcmp(argv[3], "across") == 0;
  if (argc == 4 && !across && !dieAfter(std::atol(argv[3]))) return 3;
  if (const ncclResult_t r = ncclCommInitRank(&comm, size, id, rank); r != ncclSuccess) return reportAndAbort(comm, r);
  const auto took = std::chrono::steady_clock::now() - began;
  std::printf("init done after %ld us\n",
              static_cast<long>(std::chrono::duration_cast<std::chrono::microseconds>(took).count()));

  constexpr std::size_t kCount = 1 << 20;
  void* buffer = nullptr;
  cudaStream_t stream = nullptr;
  if (cudaMalloc(&buffer, kCount * sizeof(float)) != cudaSuccess || cudaStreamCreate(&stream) != cudaSuccess) return 3;
  const bool looksOn = across && rank != 0 && rank != size - 1;
  for (long n = 1;; ++n) {
    ncclResult_t r = ncclSuccess;
    if (looksOn) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } else if (across) {
      r = exchange(static_cast<float*>(buffer), kCount, size - 1 - rank, comm, stream);
    } else {
      r = ncclAllReduce(buffer, buffer, kCount, ncclFloat, ncclSum, comm, stream);
    }
    if (r == ncclSuccess) r = waitWatching(comm, stream);
    if (r != ncclSuccess) return reportAndAbort(comm, r);
    if (n % 4 == 0 && !looksOn) std::printf("%s %ld\n", across ? "exchanged" : "reduced", n);
  }
}
