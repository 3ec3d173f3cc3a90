// Communicators that end while others of the same process go on. Exit code 0 and "[Rank N] Success" if all was right.
//
//   parting threads     all ranks in this process, which one thread ends
//   parting processes   one of SIZE processes; RANK, SIZE and NCCL_COMM_ID from the environment
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "check.h"
#include "cuda_runtime_api.h"
#include "nccl.h"

namespace {

constexpr int kCount = 100'000;

struct Gpu {
  float* data = nullptr;
  cudaStream_t stream = nullptr;
};

Gpu openGpu(int device) {
  Gpu gpu;
  CHECK(cudaSetDevice(device), cudaSuccess);
  CHECK(cudaMalloc(reinterpret_cast<void**>(&gpu.data), kCount * sizeof(float)), cudaSuccess);
  CHECK(cudaStreamCreate(&gpu.stream), cudaSuccess);
  return gpu;
}

void fill(const Gpu& gpu) {
  const std::vector<float> ones(kCount, 1.0F);
  CHECK(cudaMemcpy(gpu.data, ones.data(), kCount * sizeof(float), cudaMemcpyHostToDevice), cudaSuccess);
}

void expectSums(const Gpu& gpu, int count, int wanted) {
  std::vector<float> sums(kCount);
  CHECK(cudaStreamSynchronize(gpu.stream), cudaSuccess);
  CHECK(cudaMemcpy(sums.data(), gpu.data, kCount * sizeof(float), cudaMemcpyDeviceToHost), cudaSuccess);
  CHECK(std::count(sums.begin(), sums.begin() + count, static_cast<float>(wanted)), count);
}

/// Short, long, and a message to the next rank.
void use(ncclComm_t comm, const Gpu& gpu) {
  int size = 0;
  int rank = 0;
  CHECK(ncclCommCount(comm, &size), ncclSuccess);
  CHECK(ncclCommUserRank(comm, &rank), ncclSuccess);
  for (const int count : {10, kCount}) {
    fill(gpu);
    CHECK(ncclAllReduce(gpu.data, gpu.data, static_cast<std::size_t>(count), ncclFloat, ncclSum, comm, gpu.stream),
          ncclSuccess);
    expectSums(gpu, count, size);
  }
  constexpr std::size_t kHalf = kCount / 2;
  CHECK(ncclGroupStart(), ncclSuccess);
  CHECK(ncclSend(gpu.data, kHalf, ncclFloat, (rank + 1) % size, comm, gpu.stream), ncclSuccess);
  CHECK(ncclRecv(gpu.data + kHalf, kHalf, ncclFloat, (rank + size - 1) % size, comm, gpu.stream), ncclSuccess);
  CHECK(ncclGroupEnd(), ncclSuccess);
  expectSums(gpu, kCount, size);
}

void end(ncclComm_t comm) {
  CHECK(ncclCommDestroy(comm), ncclSuccess);
}

/// `shares`: it will let its own children share its connections.
ncclComm_t childOf(ncclComm_t parent, bool shares = false) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.splitShare = shares ? 1 : 0;
  ncclComm_t child = nullptr;
  CHECK(ncclCommSplit(parent, 0, 0, &child, &config), ncclSuccess);
  return child;
}

/// One rank after the other, while those that are left do nothing.
void endInTurn(ncclComm_t comm, int turn) {
  std::this_thread::sleep_for(std::chrono::milliseconds(60 * turn));
  end(comm);
}

/// Of communicators that share connections the last one closes them, or all ranks close them for a while.
void shareAndSuspend(ncclComm_t parent, ncclComm_t stays, const Gpu& gpu, int rank, int size) {
  ncclComm_t eldest = childOf(parent, true);
  ncclComm_t relative = childOf(eldest);
  use(eldest, gpu);
  use(relative, gpu);
  end(relative);
  use(eldest, gpu);
  CHECK(ncclCommSuspend(eldest, NCCL_SUSPEND_MEM), ncclSuccess);
  use(stays, gpu);
  CHECK(ncclCommResume(eldest), ncclSuccess);
  use(eldest, gpu);
  relative = childOf(eldest);
  endInTurn(eldest, rank);
  use(relative, gpu);
  endInTurn(relative, size - 1 - rank);
  use(stays, gpu);
}

void processes(int rank, int size) {
  const Gpu gpu = openGpu(rank);
  ncclUniqueId id;
  ncclComm_t world = nullptr;
  CHECK(ncclGetUniqueId(&id), ncclSuccess);
  CHECK(ncclCommInitRank(&world, size, id, rank), ncclSuccess);
  ncclComm_t stays = childOf(world);
  use(world, gpu);
  use(stays, gpu);
  end(childOf(stays));  // nothing was ever sent there
  use(stays, gpu);
  for (const bool upwards : {true, false}) {
    ncclComm_t goes = childOf(stays);
    use(goes, gpu);
    endInTurn(goes, upwards ? rank : size - 1 - rank);
    use(stays, gpu);
  }
  shareAndSuspend(world, stays, gpu, rank, size);
  use(world, gpu);
  end(world);
  use(stays, gpu);
  CHECK(ncclCommFinalize(stays), ncclSuccess);
  end(stays);
  CHECK(cudaFree(gpu.data), cudaSuccess);
}

void useAll(const std::vector<ncclComm_t>& comms, const std::vector<Gpu>& gpus) {
  for (const int count : {10, kCount}) {
    for (std::size_t r = 0; r < comms.size(); ++r) {
      CHECK(cudaSetDevice(static_cast<int>(r)), cudaSuccess);
      fill(gpus[r]);
    }
    CHECK(ncclGroupStart(), ncclSuccess);
    for (std::size_t r = 0; r < comms.size(); ++r) {
      CHECK(ncclAllReduce(gpus[r].data, gpus[r].data, static_cast<std::size_t>(count), ncclFloat, ncclSum, comms[r],
                          gpus[r].stream),
            ncclSuccess);
    }
    CHECK(ncclGroupEnd(), ncclSuccess);
    for (std::size_t r = 0; r < comms.size(); ++r) {
      CHECK(cudaSetDevice(static_cast<int>(r)), cudaSuccess);
      expectSums(gpus[r], count, static_cast<int>(comms.size()));
    }
  }
}

void threads() {
  constexpr int kRanks = 4;
  std::vector<Gpu> gpus;
  for (int r = 0; r < kRanks; ++r) gpus.push_back(openGpu(r));
  std::vector<ncclComm_t> stay(kRanks);
  CHECK(ncclCommInitAll(stay.data(), kRanks, nullptr), ncclSuccess);
  for (const bool upwards : {true, false}) {
    std::vector<ncclComm_t> go(kRanks);
    CHECK(ncclCommInitAll(go.data(), kRanks, nullptr), ncclSuccess);
    useAll(go, gpus);
    useAll(stay, gpus);
    if (!upwards) std::reverse(go.begin(), go.end());
    for (ncclComm_t comm : go) end(comm);
    useAll(stay, gpus);
  }
  for (ncclComm_t comm : stay) end(comm);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view how = argc > 1 ? argv[1] : "";
  const int rank = std::atoi(std::getenv("RANK"));
  if (how == "threads") threads();
  if (how == "processes") processes(rank, std::atoi(std::getenv("SIZE")));
  std::printf("[Rank %d] Success\n", rank);
  return 0;
}
