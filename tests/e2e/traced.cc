// One rank of a job that is traced: reduces 64 KB as often as it is told, perhaps late each time.
//
//   traced RANK SIZE TIMES [LATE_MILLISECONDS FIFO]     (NCCL_COMM_ID names the root)
//
// One rank may be late by more than 0: so long after the others' calls, which they tell it through the FIFO. Not in the
// first operation, whose calls wait for connections.
// Says "pid N" and "done"; with TIMES 0 it goes on until it is killed, and says "reduced 100".
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>

#include "cuda_runtime_api.h"
#include "nccl.h"

namespace {

/// What a rank does before its call and after it, so that one rank calls last.
class Lateness {
 public:
  Lateness(int others, long milliseconds, const char* fifo)
      : others_(others), late_(milliseconds), fifo_(::open(fifo, O_RDWR | O_CLOEXEC)) {}

  void before() const {
    if (late_.count() == 0) return;
    char called = 0;
    for (int i = 0; i < others_; ++i) {
      if (::read(fifo_, &called, 1) != 1) std::exit(6);
    }
    std::this_thread::sleep_for(late_);
  }
  void after() const {
    if (late_.count() == 0 && ::write(fifo_, "", 1) != 1) std::exit(6);
  }

 private:
  int others_;
  std::chrono::milliseconds late_;
  int fifo_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const int rank = std::atoi(argv[1]);
  const int size = std::atoi(argv[2]);
  const long times = std::atol(argv[3]);
  std::optional<Lateness> lateness;
  if (argc > 5) lateness.emplace(size - 1, std::atol(argv[4]), argv[5]);
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
    if (lateness && n > 1) lateness->before();
    if (ncclAllReduce(buffer, buffer, kCount, ncclFloat, ncclSum, comm, stream) != ncclSuccess) return 4;
    if (lateness && n > 1) lateness->after();
    if (cudaStreamSynchronize(stream) != cudaSuccess) return 4;
    if (n == 100) std::printf("reduced 100\n");
  }
  if (ncclCommDestroy(comm) != ncclSuccess) return 5;
  std::printf("done\n");
}
