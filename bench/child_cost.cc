// What a child of a split costs, with connections of its own and sharing its parent's: time and memory. One process per
// rank, rank r on device r. Prints two rows of a table (docs/measurements/lifecycle.md): medians of the rounds, times
// of the slowest rank, memory of rank 0.
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "bench/check.h"

namespace {

constexpr int kMaxRanks = 64;
constexpr int kRounds = 15;
constexpr std::size_t kCount = 1 << 16;

/// Lies in memory of all processes.
struct Meeting {
  pthread_barrier_t barrier;
  ncclUniqueId id;
  std::array<double, kMaxRanks> split;
  std::array<double, kMaxRanks> first;
};

using Clock = std::chrono::steady_clock;

double millisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Pages of this process that are in memory, those of the software GPU's devices included.
double residentKilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stod(line.substr(6));
  }
  return 0;
}

/// What it has mapped of the host to meet others in.
double sharedKilobytes() {
  std::ifstream maps("/proc/self/maps");
  double bytes = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:tutti-shm") == std::string::npos) continue;
    const std::size_t dash = line.find('-');
    bytes += static_cast<double>(std::stoull(line.substr(dash + 1), nullptr, 16) - std::stoull(line, nullptr, 16));
  }
  return bytes / 1024;
}

/// One rank.
class Rank {
 public:
  Rank(Meeting& meeting, int rank, int size) : meeting_(meeting), rank_(rank), size_(size) {
    CHECK_CUDA(cudaSetDevice(rank));
    CHECK_CUDA(cudaStreamCreate(&stream_));
    CHECK_CUDA(cudaMalloc(reinterpret_cast<void**>(&in_), kCount * sizeof(float)));
    CHECK_CUDA(cudaMalloc(reinterpret_cast<void**>(&out_), kCount * sizeof(float)));
    if (rank == 0) CHECK_NCCL(ncclGetUniqueId(&meeting.id));
  }

  void measure(bool shared) {
    wait();
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.splitShare = shared ? 1 : 0;
    ncclComm_t parent = nullptr;
    const ncclUniqueId id = meeting_.id;
    wait();
    if (rank_ == 0) CHECK_NCCL(ncclGetUniqueId(&meeting_.id));  // for the next one
    CHECK_NCCL(ncclCommInitRankConfig(&parent, size_, id, rank_, &config));
    allReduce(parent);
    theRest(parent);
    std::array<std::vector<double>, 5> found;
    for (int i = 0; i < kRounds; ++i) {
      const std::array<double, 5> one = round(parent);
      for (std::size_t j = 0; j < one.size(); ++j) found[j].push_back(one[j]);
    }
    if (rank_ == 0) {
      std::printf("| %d | %s | %.1f | %.1f | %.0f | %.0f | %.0f |\n", size_, shared ? "shared" : "its own",
                  median(found[0]), median(found[1]), median(found[2]), median(found[3]), median(found[4]));
      std::fflush(stdout);
    }
    CHECK_NCCL(ncclCommDestroy(parent));
  }

 private:
  void wait() { pthread_barrier_wait(&meeting_.barrier); }

  void allReduce(ncclComm_t comm) {
    CHECK_NCCL(ncclAllReduce(in_, out_, kCount, ncclFloat, ncclSum, comm, stream_));
    CHECK_CUDA(cudaStreamSynchronize(stream_));
  }

  void theRest(ncclComm_t comm) {
    CHECK_NCCL(ncclAlltoAll(in_, out_, kCount / static_cast<std::size_t>(size_), ncclFloat, comm, stream_));
    CHECK_NCCL(ncclBroadcast(in_, out_, kCount, ncclFloat, 0, comm, stream_));
    CHECK_CUDA(cudaStreamSynchronize(stream_));
  }

  /// Milliseconds of the split and of the first collective; kilobytes: told, shared with other processes, resident.
  std::array<double, 5> round(ncclComm_t parent) {
    const double resident = residentKilobytes();
    const double mapped = sharedKilobytes();
    wait();
    const auto start = Clock::now();
    ncclComm_t child = nullptr;
    CHECK_NCCL(ncclCommSplit(parent, 0, rank_, &child, nullptr));
    const auto place = static_cast<std::size_t>(rank_);
    meeting_.split[place] = millisecondsSince(start);
    wait();
    const auto made = Clock::now();
    allReduce(child);
    meeting_.first[place] = millisecondsSince(made);
    theRest(child);
    wait();
    std::uint64_t told = 0;
    CHECK_NCCL(ncclCommMemStats(child, ncclStatGpuMemTotal, &told));
    const auto most = [&](const std::array<double, kMaxRanks>& of) {
      return *std::max_element(&of[0], &of[0] + size_);
    };
    const std::array<double, 5> found{most(meeting_.split), most(meeting_.first), static_cast<double>(told) / 1024,
                                      sharedKilobytes() - mapped, residentKilobytes() - resident};
    wait();
    CHECK_NCCL(ncclCommDestroy(child));
    return found;
  }

  Meeting& meeting_;
  int rank_;
  int size_;
  cudaStream_t stream_ = nullptr;
  float* in_ = nullptr;
  float* out_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  const int size = argc > 1 ? std::atoi(argv[1]) : 2;
  if (size < 2 || size > kMaxRanks) {
    std::fprintf(stderr, "usage: child_cost <ranks, 2 to %d>\n", kMaxRanks);
    return 1;
  }
  void* const page = ::mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  check(page != MAP_FAILED, "mmap");
  auto* const meeting = new (page) Meeting{};
  pthread_barrierattr_t attributes;
  check(pthread_barrierattr_init(&attributes) == 0, "pthread_barrierattr_init");
  check(pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0, "pthread_barrierattr_setpshared");
  check(pthread_barrier_init(&meeting->barrier, &attributes, static_cast<unsigned>(size)) == 0, "pthread_barrier_init");
  for (int rank = 0; rank < size; ++rank) {
    if (::fork() != 0) continue;
    Rank self(*meeting, rank, size);
    for (const bool shared : {false, true}) self.measure(shared);
    std::exit(0);
  }
  int failed = 0;
  for (int i = 0; i < size; ++i) {
    int status = 0;
    ::wait(&status);
    if (status != 0) failed = 1;
  }
  return failed;
}
