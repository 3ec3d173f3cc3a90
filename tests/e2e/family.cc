// One process per rank of a job whose communicator is split, shrunk or grown. Exit code 0 and "done" if all was right.
//
//   family split RANK SIZE              (NCCL_COMM_ID names the root)
//   family many RANK SIZE               SIZE a multiple of 4: as many splits as ranks, each in fours, all used at once
//   family shrink RANK SIZE VICTIMS     VICTIMS like 2 or 0,3,5: they wait to be killed
//   family share RANK SIZE VICTIMS      the same with a child that shares connections, which is used when they are
//   killed family grow RANK OLD NEW FILE       ranks below OLD are members; the id of the growth goes through FILE
//   family regrow RANK SIZE VICTIM FILE RANK = "new": takes the place of VICTIM after the others have shrunk
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
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

Gpu openGpu(int rank) {
  Gpu gpu;
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices), cudaSuccess);
  CHECK(cudaSetDevice(rank % devices), cudaSuccess);
  CHECK(cudaMalloc(reinterpret_cast<void**>(&gpu.data), kCount * sizeof(float)), cudaSuccess);
  CHECK(cudaStreamCreate(&gpu.stream), cudaSuccess);
  return gpu;
}

/// The sum over the ranks of `comm` of 1 each must be their number.
void reduceOver(ncclComm_t comm, const Gpu& gpu, int wanted) {
  const std::vector<float> ones(kCount, 1.0F);
  std::vector<float> sums(kCount);
  CHECK(cudaMemcpy(gpu.data, ones.data(), kCount * sizeof(float), cudaMemcpyHostToDevice), cudaSuccess);
  CHECK(ncclAllReduce(gpu.data, gpu.data, kCount, ncclFloat, ncclSum, comm, gpu.stream), ncclSuccess);
  CHECK(cudaStreamSynchronize(gpu.stream), cudaSuccess);
  CHECK(cudaMemcpy(sums.data(), gpu.data, kCount * sizeof(float), cudaMemcpyDeviceToHost), cudaSuccess);
  CHECK(std::count(sums.begin(), sums.end(), static_cast<float>(wanted)), kCount);
  int count = 0;
  CHECK(ncclCommCount(comm, &count), ncclSuccess);
  CHECK(count, wanted);
}

ncclComm_t join(int rank, int size) {
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  CHECK(ncclGetUniqueId(&id), ncclSuccess);
  CHECK(ncclCommInitRank(&comm, size, id, rank), ncclSuccess);
  return comm;
}

void split(int rank, int size) {
  const Gpu gpu = openGpu(rank);
  ncclComm_t world = join(rank, size);
  ncclComm_t half = nullptr;
  ncclComm_t reversed = nullptr;
  CHECK(ncclCommSplit(world, rank % 2, 0, &half, nullptr), ncclSuccess);
  CHECK(ncclCommSplit(world, 0, -rank, &reversed, nullptr), ncclSuccess);
  reduceOver(half, gpu, (size + 1 - rank % 2) / 2);
  reduceOver(world, gpu, size);
  CHECK(ncclCommDestroy(world), ncclSuccess);
  int place = -1;
  CHECK(ncclCommUserRank(reversed, &place), ncclSuccess);
  CHECK(place, size - 1 - rank);
  reduceOver(reversed, gpu, size);
  CHECK(ncclCommDestroy(half), ncclSuccess);
  CHECK(ncclCommDestroy(reversed), ncclSuccess);
}

/// Round after round the ranks fall into other fours; nothing ends before all are there.
void splitOften(int rank, int size) {
  const Gpu gpu = openGpu(rank);
  ncclComm_t world = join(rank, size);
  std::vector<ncclComm_t> children;
  for (int round = 0; round < size; ++round) {
    const int place = (rank + round) % size;
    ncclComm_t child = nullptr;
    const int color = round % 2 == 0 ? place / 4 : place % (size / 4);
    CHECK(ncclCommSplit(world, color, (rank * 7 + round) % size, &child, nullptr), ncclSuccess);
    children.push_back(child);
  }
  for (ncclComm_t child : children) reduceOver(child, gpu, 4);
  for (ncclComm_t child : children) CHECK(ncclCommDestroy(child), ncclSuccess);
  CHECK(ncclCommDestroy(world), ncclSuccess);
}

std::vector<int> numbers(const std::string& list) {
  std::vector<int> all;
  std::stringstream in(list);
  for (std::string one; std::getline(in, one, ',');) all.push_back(std::stoi(one));
  return all;
}

/// Reduces until a rank dies, or waits to be killed.
void reduceUntilFailure(ncclComm_t comm, const Gpu& gpu, bool victim) {
  reduceOver(comm, gpu, [&] {
    int count = 0;
    CHECK(ncclCommCount(comm, &count), ncclSuccess);
    return count;
  }());
  std::printf("ready pid %d\n", getpid());
  if (victim) {
    while (true) pause();
  }
  // It waits for the victims, which take no part.
  CHECK(ncclAllReduce(gpu.data, gpu.data, kCount, ncclFloat, ncclSum, comm, gpu.stream), ncclSuccess);
  ncclResult_t state = ncclSuccess;
  while (state == ncclSuccess) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(ncclCommGetAsyncError(comm, &state), ncclSuccess);
  }
  CHECK(state, ncclRemoteError);
}

ncclComm_t shrunk(ncclComm_t world, std::vector<int> victims, const Gpu& gpu, int left) {
  const auto begun = std::chrono::steady_clock::now();
  ncclComm_t child = nullptr;
  CHECK(ncclCommShrink(world, victims.data(), static_cast<int>(victims.size()), &child, nullptr, NCCL_SHRINK_ABORT),
        ncclSuccess);
  CHECK(ncclCommAbort(world), ncclSuccess);
  reduceOver(child, gpu, left);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  std::printf("shrunk in %.3f s\n", took.count());
  return child;
}

void shrink(int rank, int size, const std::vector<int>& victims) {
  const Gpu gpu = openGpu(rank);
  ncclComm_t world = join(rank, size);
  reduceUntilFailure(world, gpu, std::find(victims.begin(), victims.end(), rank) != victims.end());
  ncclComm_t child = shrunk(world, victims, gpu, size - static_cast<int>(victims.size()));
  CHECK(ncclCommDestroy(child), ncclSuccess);
}

/// A child that shares the connections of its parent loses a rank: the parent hears of that too, by name, and can be
/// shrunk.
void shrinkSharing(int rank, int size, const std::vector<int>& victims) {
  const Gpu gpu = openGpu(rank);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.splitShare = 1;
  ncclUniqueId id;
  ncclComm_t world = nullptr;
  ncclComm_t child = nullptr;
  CHECK(ncclGetUniqueId(&id), ncclSuccess);
  CHECK(ncclCommInitRankConfig(&world, size, id, rank, &config), ncclSuccess);
  CHECK(ncclCommSplit(world, 0, rank, &child, nullptr), ncclSuccess);
  reduceOver(world, gpu, size);
  reduceUntilFailure(child, gpu, std::find(victims.begin(), victims.end(), rank) != victims.end());
  ncclResult_t state = ncclSuccess;
  while (state == ncclSuccess) CHECK(ncclCommGetAsyncError(world, &state), ncclSuccess);
  const std::string why = ncclGetLastError(world);
  std::printf("the parent: %s\n", why.c_str());
  CHECK(why.find("rank " + std::to_string(victims.front()) + " (host ") != std::string::npos, true);
  CHECK(why.find("died") != std::string::npos, true);
  CHECK(ncclCommAbort(child), ncclSuccess);
  CHECK(ncclCommDestroy(shrunk(world, victims, gpu, size - static_cast<int>(victims.size()))), ncclSuccess);
}

void writeId(const ncclUniqueId& id, const std::string& path) {
  std::ofstream(path + ".part", std::ios::binary).write(id.internal, sizeof(id.internal));
  CHECK(std::rename((path + ".part").c_str(), path.c_str()), 0);
}

ncclUniqueId readId(const std::string& path) {
  ncclUniqueId id;
  while (true) {
    std::ifstream in(path, std::ios::binary);
    if (in.read(id.internal, sizeof(id.internal))) return id;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

/// The last member makes the id: neither the first rank nor the one that runs the parent's root.
ncclComm_t grown(ncclComm_t comm, int newSize, const std::string& path) {
  int rank = 0;
  int size = 0;
  CHECK(ncclCommUserRank(comm, &rank), ncclSuccess);
  CHECK(ncclCommCount(comm, &size), ncclSuccess);
  ncclUniqueId id;
  const bool makes = rank == size - 1;
  if (makes) {
    CHECK(ncclCommGetUniqueId(comm, &id), ncclSuccess);
    writeId(id, path);
  }
  ncclComm_t larger = nullptr;
  CHECK(ncclCommGrow(comm, newSize, makes ? &id : nullptr, -1, &larger, nullptr), ncclSuccess);
  return larger;
}

/// The members' own NCCL_COMM_ID is of no use to who joins later, and forbids to grow.
ncclComm_t joinByFile(int rank, int size, const std::string& path) {
  ncclUniqueId id;
  if (rank == 0) {
    CHECK(ncclGetUniqueId(&id), ncclSuccess);
    writeId(id, path);
  } else {
    id = readId(path);
  }
  ncclComm_t comm = nullptr;
  CHECK(ncclCommInitRank(&comm, size, id, rank), ncclSuccess);
  return comm;
}

void useGrown(ncclComm_t larger, const Gpu& gpu, int rank, int size) {
  int place = -1;
  CHECK(ncclCommUserRank(larger, &place), ncclSuccess);
  CHECK(place, rank);
  reduceOver(larger, gpu, size);
  CHECK(ncclCommDestroy(larger), ncclSuccess);
}

void grow(int rank, int oldSize, int newSize, const std::string& path) {
  const Gpu gpu = openGpu(rank);
  if (rank < oldSize) {
    ncclComm_t comm = joinByFile(rank, oldSize, path + ".first");
    ncclComm_t larger = grown(comm, newSize, path);
    reduceOver(comm, gpu, oldSize);
    CHECK(ncclCommDestroy(comm), ncclSuccess);
    return useGrown(larger, gpu, rank, newSize);
  }
  const ncclUniqueId id = readId(path);
  ncclComm_t larger = nullptr;
  CHECK(ncclCommGrow(nullptr, newSize, &id, rank, &larger, nullptr), ncclSuccess);
  useGrown(larger, gpu, rank, newSize);
  // Once more by the same id: nobody is there.
  ncclComm_t second = nullptr;
  CHECK(ncclCommGrow(nullptr, newSize, &id, rank, &second, nullptr), ncclRemoteError);
  CHECK(std::strstr(ncclGetLastError(nullptr), "was the id used before") != nullptr, true);
  CHECK(ncclCommAbort(second), ncclSuccess);
}

void regrow(const std::string& who, int size, int victim, const std::string& path) {
  const bool fresh = who == "new";
  const int rank = fresh ? size - 1 : std::stoi(who);
  const Gpu gpu = openGpu(fresh ? victim : rank);
  if (fresh) {
    const ncclUniqueId id = readId(path);
    ncclComm_t larger = nullptr;
    CHECK(ncclCommGrow(nullptr, size, &id, rank, &larger, nullptr), ncclSuccess);
    return useGrown(larger, gpu, rank, size);
  }
  ncclComm_t world = joinByFile(rank, size, path + ".first");
  reduceUntilFailure(world, gpu, rank == victim);
  ncclComm_t child = shrunk(world, {victim}, gpu, size - 1);
  ncclComm_t larger = grown(child, size, path);
  CHECK(ncclCommDestroy(child), ncclSuccess);
  useGrown(larger, gpu, rank < victim ? rank : rank - 1, size);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::string what = argv[1];
  const int size = std::atoi(argv[3]);
  if (what == "split") split(std::atoi(argv[2]), size);
  if (what == "many") splitOften(std::atoi(argv[2]), size);
  if (what == "shrink") shrink(std::atoi(argv[2]), size, numbers(argv[4]));
  if (what == "share") shrinkSharing(std::atoi(argv[2]), size, numbers(argv[4]));
  if (what == "grow") grow(std::atoi(argv[2]), size, std::atoi(argv[4]), argv[5]);
  if (what == "regrow") regrow(argv[2], size, std::atoi(argv[4]), argv[5]);
  std::printf("done\n");
  return 0;
}
