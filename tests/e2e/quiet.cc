// A program that prints nothing and touches no standard stream: a rank of SIZE processes, or without SIZE two ranks in
// one process. It reduces and checks the result; its exit code says how that went, and the last error goes to the file
// QUIET_REPORT. It also looks whether a standard stream that was closed at the start has been taken by somebody.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "cuda_runtime.h"
#include "nccl.h"

namespace {

constexpr int kWrong = 3;
constexpr int kCudaError = 4;
constexpr int kNcclError = 5;
constexpr int kStreamTaken = 6;
constexpr int kStreamWritten = 7;
constexpr std::size_t kCount = 10'000;

int ended(int code, const char* call, const char* text) {
  const char* path = std::getenv("QUIET_REPORT");
  if (path == nullptr) return code;
  const int file = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  for (const char* part : {call, ": ", text, "\n"}) static_cast<void>(!::write(file, part, std::strlen(part)));
  ::close(file);
  return code;
}

#define CUDA(call)                                                                      \
  do {                                                                                  \
    const cudaError_t error = call;                                                     \
    if (error != cudaSuccess) return ended(kCudaError, #call, cudaGetErrorName(error)); \
  } while (0)
#define NCCL(call)                                                                       \
  do {                                                                                   \
    if (call != ncclSuccess) return ended(kNcclError, #call, ncclGetLastError(nullptr)); \
  } while (0)

/// What one rank has on its device.
struct Rank {
  int device = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  float* data = nullptr;
};

int prepare(Rank& rank, float value) {
  const std::vector<float> values(kCount, value);
  CUDA(cudaSetDevice(rank.device));
  CUDA(cudaStreamCreate(&rank.stream));
  CUDA(cudaMalloc(reinterpret_cast<void**>(&rank.data), kCount * sizeof(float)));
  CUDA(cudaMemcpy(rank.data, values.data(), kCount * sizeof(float), cudaMemcpyHostToDevice));
  return 0;
}

int reduce(std::vector<Rank>& ranks) {
  NCCL(ncclGroupStart());
  for (Rank& rank : ranks) {
    NCCL(ncclAllReduce(rank.data, rank.data, kCount, ncclFloat, ncclSum, rank.comm, rank.stream));
  }
  NCCL(ncclGroupEnd());
  return 0;
}

int finish(Rank& rank, float expected) {
  std::vector<float> values(kCount);
  CUDA(cudaSetDevice(rank.device));
  CUDA(cudaStreamSynchronize(rank.stream));
  ncclResult_t asynchronous = ncclSuccess;
  NCCL(ncclCommGetAsyncError(rank.comm, &asynchronous));
  NCCL(asynchronous);
  CUDA(cudaMemcpy(values.data(), rank.data, kCount * sizeof(float), cudaMemcpyDeviceToHost));
  for (const float value : values) {
    if (value != expected) return ended(kWrong, "wrong result of ncclAllReduce", std::to_string(value).c_str());
  }
  CUDA(cudaFree(rank.data));
  NCCL(ncclCommDestroy(rank.comm));
  return 0;
}

int inOneProcess() {
  constexpr int kRanks = 2;
  std::vector<Rank> ranks(kRanks);
  ncclComm_t comms[kRanks];
  for (int i = 0; i < kRanks; ++i) {
    ranks[static_cast<std::size_t>(i)].device = i;
    if (const int code = prepare(ranks[static_cast<std::size_t>(i)], static_cast<float>(i + 1)); code != 0) return code;
  }
  NCCL(ncclCommInitAll(comms, kRanks, nullptr));
  for (std::size_t i = 0; i < kRanks; ++i) ranks[i].comm = comms[i];
  if (const int code = reduce(ranks); code != 0) return code;
  for (Rank& rank : ranks) {
    if (const int code = finish(rank, 3); code != 0) return code;
  }
  return 0;
}

int inSeveral(int rankNumber, int size) {
  std::vector<Rank> ranks(1);
  ranks[0].device = rankNumber;
  if (const int code = prepare(ranks[0], static_cast<float>(rankNumber + 1)); code != 0) return code;
  ncclUniqueId id;
  NCCL(ncclGetUniqueId(&id));
  NCCL(ncclCommInitRank(&ranks[0].comm, size, id, rankNumber));
  if (const int code = reduce(ranks); code != 0) return code;
  return finish(ranks[0], static_cast<float>(size * (size + 1) / 2));
}

}  // namespace

int main() {
  bool closed[3];
  for (int fd = 0; fd < 3; ++fd) closed[fd] = ::fcntl(fd, F_GETFD) < 0;
  // In the place of a closed stream, as another thread's new descriptor is for a moment: nobody may write into it.
  const char* path = std::getenv("QUIET_OPENS");
  const int own = path == nullptr ? -1 : ::open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const char* size = std::getenv("SIZE");
  const char* rank = std::getenv("RANK");
  const int code = size == nullptr || rank == nullptr ? inOneProcess() : inSeveral(std::atoi(rank), std::atoi(size));
  for (int fd = 0; fd < 3; ++fd) {
    if (closed[fd] && fd != own && ::fcntl(fd, F_GETFD) >= 0)
      return ended(kStreamTaken, "fcntl", "a closed stream was taken");
  }
  if (own >= 0 && ::lseek(own, 0, SEEK_END) != 0) return ended(kStreamWritten, "lseek", "somebody has written into it");
  return code;
}
