// One process of a job that people ask about: does what its standard input says, line by line.
//
//   ras FIRST COUNT SIZE     (NCCL_COMM_ID names the root; ranks FIRST to FIRST + COUNT - 1 of SIZE, a thread each)
//
// On all of its ranks "init" makes the communicator, "reduce N" launches N all-reduces, "send N" a message to rank N,
// "sync" waits for all that was launched, "churn N" N times makes communicators of that one by split and shrink and
// gives them up again, "family" makes one named "child" by split, and of that one, without its last rank, "grandchild"
// by shrink, "destroy" destroys the communicator; "exit" ends the process without that, as many programs do.
// Lines: "ready" at the beginning, "done" or "failed" after each command.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "cuda_runtime_api.h"
#include "nccl.h"

namespace {

constexpr std::size_t kCount = 64;

struct Rank {
  int number = 0;
  int size = 0;
  int devices = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  void* buffer = nullptr;
};

bool init(Rank& rank, const ncclUniqueId& id) {
  return cudaSetDevice(rank.number % rank.devices) == cudaSuccess &&
         cudaMalloc(&rank.buffer, kCount * sizeof(float)) == cudaSuccess &&
         cudaStreamCreate(&rank.stream) == cudaSuccess &&
         ncclCommInitRank(&rank.comm, rank.size, id, rank.number) == ncclSuccess;
}

bool send(Rank& rank, int peer) {
  return ncclSend(rank.buffer, kCount, ncclFloat, peer, rank.comm, rank.stream) == ncclSuccess;
}

bool reduceOn(ncclComm_t comm, const Rank& rank) {
  return ncclAllReduce(rank.buffer, rank.buffer, kCount, ncclFloat, ncclSum, comm, rank.stream) == ncclSuccess;
}

bool reduce(Rank& rank, int times) {
  for (int n = 0; n < times; ++n) {
    if (!reduceOn(rank.comm, rank)) return false;
  }
  return true;
}

/// Whoever has its result knows that the communicator is ready everywhere.
bool reduceToEnd(ncclComm_t comm, const Rank& rank) {
  return reduceOn(comm, rank) && cudaStreamSynchronize(rank.stream) == cudaSuccess;
}

/// The one by split is aborted, and the one by shrink, without the last rank, destroyed.
bool churn(Rank& rank, int times) {
  if (cudaSetDevice(rank.number % rank.devices) != cudaSuccess) return false;
  int last = rank.size - 1;
  for (int n = 0; n < times; ++n) {
    ncclComm_t made = nullptr;
    if (ncclCommSplit(rank.comm, 0, rank.number, &made, nullptr) != ncclSuccess || !reduceToEnd(made, rank))
      return false;
    ncclComm_t less = nullptr;
    if (rank.number != last) {
      const ncclResult_t shrunk = ncclCommShrink(rank.comm, &last, 1, &less, nullptr, NCCL_SHRINK_DEFAULT);
      if (shrunk != ncclSuccess || !reduceToEnd(less, rank)) return false;
    }
    if (ncclCommAbort(made) != ncclSuccess) return false;
    if (less != nullptr && ncclCommDestroy(less) != ncclSuccess) return false;
  }
  return true;
}

/// Both stay.
bool family(Rank& rank) {
  if (cudaSetDevice(rank.number % rank.devices) != cudaSuccess) return false;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.commName = "child";
  ncclComm_t child = nullptr;
  if (ncclCommSplit(rank.comm, 0, rank.number, &child, &config) != ncclSuccess || !reduceToEnd(child, rank))
    return false;
  int last = rank.size - 1;
  if (rank.number == last) return true;
  config.commName = "grandchild";
  ncclComm_t less = nullptr;
  return ncclCommShrink(child, &last, 1, &less, &config, NCCL_SHRINK_DEFAULT) == ncclSuccess && reduceToEnd(less, rank);
}

/// On a thread for each rank: a call may wait for those of the others.
template <class Work>
bool onAll(std::vector<Rank>& ranks, const Work& work) {
  std::vector<std::thread> threads;
  std::vector<char> ok(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&, i] { ok[i] = work(ranks[i]) ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  for (const char one : ok) {
    if (one == 0) return false;
  }
  return true;
}

/// The number behind the command's name; unset where it is another command.
std::optional<int> numberOf(const char* line, std::string_view name) {
  if (std::strncmp(line, name.data(), name.size()) != 0 || line[name.size()] != ' ') return std::nullopt;
  return std::atoi(line + name.size());
}

bool obey(std::vector<Rank>& ranks, const char* line, const ncclUniqueId& id) {
  if (std::strncmp(line, "init", 4) == 0) return onAll(ranks, [&](Rank& rank) { return init(rank, id); });
  if (std::strncmp(line, "sync", 4) == 0) {
    return onAll(ranks, [](Rank& rank) { return cudaStreamSynchronize(rank.stream) == cudaSuccess; });
  }
  if (std::strncmp(line, "destroy", 7) == 0) {
    return onAll(ranks, [](Rank& rank) { return ncclCommDestroy(rank.comm) == ncclSuccess; });
  }
  if (std::strncmp(line, "family", 6) == 0) return onAll(ranks, family);
  if (const auto times = numberOf(line, "reduce"))
    return onAll(ranks, [&](Rank& rank) { return reduce(rank, *times); });
  if (const auto times = numberOf(line, "churn")) return onAll(ranks, [&](Rank& rank) { return churn(rank, *times); });
  if (const auto peer = numberOf(line, "send")) return onAll(ranks, [&](Rank& rank) { return send(rank, *peer); });
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  int devices = 0;
  ncclUniqueId id;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || ncclGetUniqueId(&id) != ncclSuccess) return 3;
  std::vector<Rank> ranks;
  for (int n = 0; n < std::atoi(argv[2]); ++n) {
    ranks.push_back({std::atoi(argv[1]) + n, std::atoi(argv[3]), devices});
  }
  std::printf("ready\n");
  char line[64];
  while (std::fgets(line, sizeof(line), stdin) != nullptr) {
    if (std::strncmp(line, "exit", 4) == 0) return 0;
    std::printf("%s\n", obey(ranks, line, id) ? "done" : "failed");
  }
  return 0;
}
