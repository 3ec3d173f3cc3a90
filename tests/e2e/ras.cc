// One process of a job that people ask about: does what its standard input says, line by line.
//
//   ras FIRST COUNT SIZE     (NCCL_COMM_ID names the root; ranks FIRST to FIRST + COUNT - 1 of SIZE, a thread each)
//
// On all of its ranks "init" makes the communicator, "reduce N" launches N all-reduces, "send N" a message to rank N,
// "sync" waits for all that was launched, "destroy" destroys the communicator; "exit" ends the process without that, as
// many programs do. Lines: "ready" at the beginning, "done" after each command.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "cuda_runtime_api.h"
#include "nccl.h"

namespace {

constexpr std::size_t kCount = 64;

struct Rank {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  void* buffer = nullptr;
};

bool init(Rank& rank, int number, int size, int device, const ncclUniqueId& id) {
  return cudaSetDevice(device) == cudaSuccess && cudaMalloc(&rank.buffer, kCount * sizeof(float)) == cudaSuccess &&
         cudaStreamCreate(&rank.stream) == cudaSuccess && ncclCommInitRank(&rank.comm, size, id, number) == ncclSuccess;
}

bool send(Rank& rank, int peer) {
  return ncclSend(rank.buffer, kCount, ncclFloat, peer, rank.comm, rank.stream) == ncclSuccess;
}

bool reduce(Rank& rank) {
  return ncclAllReduce(rank.buffer, rank.buffer, kCount, ncclFloat, ncclSum, rank.comm, rank.stream) == ncclSuccess;
}

/// On a thread for each rank: a call may wait for those of the others.
template <class Work>
bool onAll(std::vector<Rank>& ranks, const Work& work) {
  std::vector<std::thread> threads;
  std::vector<char> ok(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&, i] { ok[i] = work(ranks[i], static_cast<int>(i)) ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  for (const char one : ok) {
    if (one == 0) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const int first = std::atoi(argv[1]);
  const int size = std::atoi(argv[3]);
  std::vector<Rank> ranks(static_cast<std::size_t>(std::atoi(argv[2])));
  int devices = 0;
  ncclUniqueId id;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || ncclGetUniqueId(&id) != ncclSuccess) return 3;
  std::printf("ready\n");
  char line[64];
  while (std::fgets(line, sizeof(line), stdin) != nullptr) {
    bool ok = false;
    if (std::strncmp(line, "init", 4) == 0) {
      ok = onAll(ranks, [&](Rank& rank, int i) { return init(rank, first + i, size, (first + i) % devices, id); });
    } else if (std::strncmp(line, "reduce ", 7) == 0) {
      const int times = std::atoi(line + 7);
      ok = onAll(ranks, [&](Rank& rank, int) {
        for (int n = 0; n < times; ++n) {
          if (!reduce(rank)) return false;
        }
        return true;
      });
    } else if (std::strncmp(line, "send ", 5) == 0) {
      ok = onAll(ranks, [&](Rank& rank, int) { return send(rank, std::atoi(line + 5)); });
    } else if (std::strncmp(line, "sync", 4) == 0) {
      ok = onAll(ranks, [](Rank& rank, int) { return cudaStreamSynchronize(rank.stream) == cudaSuccess; });
    } else if (std::strncmp(line, "destroy", 7) == 0) {
      ok = onAll(ranks, [](Rank& rank, int) { return ncclCommDestroy(rank.comm) == ncclSuccess; });
    } else if (std::strncmp(line, "exit", 4) == 0) {
      return 0;
    }
    std::printf("%s\n", ok ? "done" : "failed");
  }
  return 0;
}
