// One rank of a job whose ranks share communicators, two of two ranks or three of three, and call them in another order
// each, so that they wait for each other for ever; or in one order.
//
//   circle RANK SIZE stream    (NCCL_COMM_ID names the root) all calls on one stream
//   circle RANK SIZE streams   each communicator on a stream of its own, which waits for the stream before it
//   circle RANK SIZE host      the calls open connections, and wait for their peers on the host
//   circle RANK SIZE late FILE   in one order, the last rank when there is that file
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "cuda_runtime.h"
#include "nccl.h"

namespace {

constexpr std::size_t kCount = 1 << 16;

struct Channel {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
};

/// Of two ranks both are in each; of three, communicator i joins rank i and the one before it.
bool isMember(int rank, int size, int comm) {
  return size == 2 || rank == comm || rank == (comm + size - 1) % size;
}

std::vector<Channel> split(ncclComm_t world, int rank, int size) {
  std::vector<Channel> channels(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) {
    Channel& one = channels[static_cast<std::size_t>(i)];
    CHECK(ncclCommSplit(world, isMember(rank, size, i) ? 0 : NCCL_SPLIT_NOCOLOR, rank, &one.comm, nullptr),
          ncclSuccess);
    CHECK(cudaStreamCreateWithFlags(&one.stream, cudaStreamNonBlocking), cudaSuccess);
  }
  return channels;
}

void waitFor(cudaStream_t stream, cudaStream_t before) {
  cudaEvent_t event = nullptr;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  CHECK(cudaEventRecord(event, before), cudaSuccess);
  CHECK(cudaStreamWaitEvent(stream, event, 0), cudaSuccess);
  CHECK(cudaEventDestroy(event), cudaSuccess);
}

/// Two minutes at most.
void awaitFile(const char* name) {
  for (int looks = 0; looks < 6000 && ::access(name, F_OK) != 0; ++looks) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return EXIT_FAILURE;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const int rank = std::atoi(argv[1]);
  const int size = std::atoi(argv[2]);
  const std::string how = argv[3];
  if (how == "late" && argc != 5) return EXIT_FAILURE;
  CHECK(cudaSetDevice(rank), cudaSuccess);
  ncclUniqueId id;
  CHECK(ncclGetUniqueId(&id), ncclSuccess);
  ncclComm_t world = nullptr;
  CHECK(ncclCommInitRank(&world, size, id, rank), ncclSuccess);
  const std::vector<Channel> channels = split(world, rank, size);
  float* data = nullptr;
  CHECK(cudaMalloc(reinterpret_cast<void**>(&data), 2 * kCount * sizeof(float)), cudaSuccess);

  std::vector<Channel> order;
  for (int i = 0; i < size; ++i) {
    const int which = how == "late" ? i : (rank + i) % size;
    if (isMember(rank, size, which)) order.push_back(channels[static_cast<std::size_t>(which)]);
  }
  if (how == "late" && rank == size - 1) awaitFile(argv[4]);
  for (std::size_t i = 0; i < order.size(); ++i) {
    cudaStream_t stream = how == "streams" ? order[i].stream : order.front().stream;
    if (how == "streams" && i > 0) waitFor(stream, order[i - 1].stream);
    if (how == "host") {
      CHECK(ncclAlltoAll(data, data + kCount, kCount / 2, ncclFloat, order[i].comm, stream), ncclSuccess);
    } else {
      CHECK(ncclAllReduce(data, data, kCount, ncclFloat, ncclSum, order[i].comm, stream), ncclSuccess);
    }
  }
  std::printf("called\n");
  for (const Channel& one : order) CHECK(cudaStreamSynchronize(one.stream), cudaSuccess);
  for (const Channel& one : channels) {
    if (one.comm != nullptr) CHECK(ncclCommDestroy(one.comm), ncclSuccess);
  }
  CHECK(ncclCommDestroy(world), ncclSuccess);
  std::printf("done\n");
  return 0;
}
