// What communicators cost while they idle, and what they leave behind.
//
//   leftovers idle SECONDS      two ranks reduce, then do nothing: prints "idle N.NNN % of a processor"
//   leftovers cycles COUNT      two ranks are made, reduce and are destroyed, so many times: prints
//                               "after A cycles: F descriptors, T threads, K KiB, D bytes of devices" for the first
//                               tenth and for all
//   leftovers splits COUNT      the same, and each time the ranks are split, and their child reduces as well
//   leftovers alone COUNT       the same for one rank of several processes: RANK, SIZE, and NCCL_COMM_ID names the root
//   leftovers late 0            two ranks reduce, and once more in an exit handler that was there before them, and
//                               are destroyed there: prints "late: S", the sum, 2 if it is right
#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "cuda_runtime_api.h"
#include "nccl.h"

namespace {

constexpr int kRanks = 2;
constexpr std::size_t kCount = 1 << 16;

#define CHECK(call)                                                                                    \
  do {                                                                                                 \
    if (const auto result = (call); static_cast<int>(result) != 0) {                                   \
      std::printf("%s returned %d: %s\n", #call, static_cast<int>(result), ncclGetLastError(nullptr)); \
      std::exit(1);                                                                                    \
    }                                                                                                  \
  } while (false)

struct Rank {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  float* data = nullptr;
};

void prepare(std::array<Rank, kRanks>& ranks) {
  for (int r = 0; r < kRanks; ++r) {
    CHECK(cudaSetDevice(r));
    CHECK(cudaStreamCreate(&ranks[r].stream));
    CHECK(cudaMalloc(reinterpret_cast<void**>(&ranks[r].data), kCount * sizeof(float)));
  }
}

void join(std::array<Rank, kRanks>& ranks) {
  std::array<ncclComm_t, kRanks> comms{};
  CHECK(ncclCommInitAll(comms.data(), kRanks, nullptr));
  for (int r = 0; r < kRanks; ++r) ranks[r].comm = comms[r];
}

void reduce(std::array<Rank, kRanks>& ranks) {
  CHECK(ncclGroupStart());
  for (Rank& rank : ranks) {
    CHECK(ncclAllReduce(rank.data, rank.data, kCount, ncclFloat, ncclSum, rank.comm, rank.stream));
  }
  CHECK(ncclGroupEnd());
  for (Rank& rank : ranks) CHECK(cudaStreamSynchronize(rank.stream));
}

void part(std::array<Rank, kRanks>& ranks) {
  for (Rank& rank : ranks) CHECK(ncclCommDestroy(rank.comm));
}

double processorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int idle(int seconds) {
  std::array<Rank, kRanks> ranks;
  prepare(ranks);
  join(ranks);
  reduce(ranks);
  sleep(1);  // threads fall asleep
  const double before = processorSeconds();
  sleep(static_cast<unsigned>(seconds));
  std::printf("idle %.3f %% of a processor\n", (processorSeconds() - before) / seconds * 100);
  part(ranks);
  return 0;
}

int entries(const char* folder) {
  DIR* const dir = opendir(folder);
  int count = 0;
  while (dir != nullptr && readdir(dir) != nullptr) ++count;
  if (dir != nullptr) closedir(dir);
  return count;
}

long residentKiB() {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  long total = 0, resident = 0;
  if (file == nullptr || std::fscanf(file, "%ld %ld", &total, &resident) != 2) resident = -1;
  if (file != nullptr) std::fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/// Of all devices; the current one stays current.
std::size_t deviceBytes() {
  std::size_t used = 0;
  int current = 0;
  CHECK(cudaGetDevice(&current));
  for (int r = 0; r < kRanks; ++r) {
    std::size_t available = 0, total = 0;
    CHECK(cudaSetDevice(r));
    CHECK(cudaMemGetInfo(&available, &total));
    used += total - available;
  }
  CHECK(cudaSetDevice(current));
  return used;
}

void report(int cycles) {
  std::printf("after %d cycles: %d descriptors, %d threads, %ld KiB, %zu bytes of devices\n", cycles,
              entries("/proc/self/fd"), entries("/proc/self/task"), residentKiB(), deviceBytes());
}

/// Their child, in the other order, reduces and ends.
void split(std::array<Rank, kRanks>& ranks) {
  std::array<Rank, kRanks> children = ranks;
  CHECK(ncclGroupStart());
  for (int r = 0; r < kRanks; ++r) CHECK(ncclCommSplit(ranks[r].comm, 0, -r, &children[r].comm, nullptr));
  CHECK(ncclGroupEnd());
  reduce(children);
  part(children);
}

int cycles(int count, bool splits) {
  std::array<Rank, kRanks> ranks;
  prepare(ranks);
  for (int done = 1; done <= count; ++done) {
    join(ranks);
    reduce(ranks);
    if (splits) split(ranks);
    part(ranks);
    if (done == count / 10 || done == count) report(done);
  }
  return 0;
}

/// As cycles(), with a communicator in each process.
int alone(int count) {
  Rank rank;
  const int number = std::atoi(std::getenv("RANK"));
  CHECK(cudaSetDevice(number));
  CHECK(cudaStreamCreate(&rank.stream));
  CHECK(cudaMalloc(reinterpret_cast<void**>(&rank.data), kCount * sizeof(float)));
  for (int done = 1; done <= count; ++done) {
    ncclUniqueId id;
    CHECK(ncclGetUniqueId(&id));
    CHECK(ncclCommInitRank(&rank.comm, std::atoi(std::getenv("SIZE")), id, number));
    CHECK(ncclAllReduce(rank.data, rank.data, kCount, ncclFloat, ncclSum, rank.comm, rank.stream));
    CHECK(cudaStreamSynchronize(rank.stream));
    CHECK(ncclCommDestroy(rank.comm));
    if (done == count / 10 || done == count) report(done);
  }
  return 0;
}

std::array<Rank, kRanks> lateRanks;

/// Runs after the end of all that was made since the process registered it.
void reduceLate() {
  const float one = 1;
  for (Rank& rank : lateRanks) CHECK(cudaMemcpy(rank.data, &one, sizeof(one), cudaMemcpyHostToDevice));
  reduce(lateRanks);
  float sum = 0;
  CHECK(cudaMemcpy(&sum, lateRanks[1].data, sizeof(sum), cudaMemcpyDeviceToHost));
  part(lateRanks);
  std::printf("late: %g\n", static_cast<double>(sum));
}

int late() {
  if (std::atexit(reduceLate) != 0) return 1;
  prepare(lateRanks);
  join(lateRanks);
  reduce(lateRanks);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (std::strcmp(argv[1], "idle") == 0) return idle(std::atoi(argv[2]));
  if (std::strcmp(argv[1], "cycles") == 0) return cycles(std::atoi(argv[2]), false);
  if (std::strcmp(argv[1], "splits") == 0) return cycles(std::atoi(argv[2]), true);
  if (std::strcmp(argv[1], "alone") == 0) return alone(std::atoi(argv[2]));
  if (std::strcmp(argv[1], "late") == 0) return late();
  return 2;
}
