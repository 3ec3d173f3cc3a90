// Two copies of the library in one process, as where two packages bring one each: a communicator of each, used at the
// same time on the same devices.
//
//   two_copies LIBRARY KERNELS
#include <dlfcn.h>
#include <array>
#include <barrier>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "cuda_runtime.h"
#include "nccl.h"

namespace {

constexpr int kRanks = 2;
constexpr int kRounds = 20;
constexpr std::size_t kCount = 50'001;

/// The functions of one copy.
struct Copy {
  decltype(&ncclGetUniqueId) getUniqueId;
  decltype(&ncclCommInitRank) commInitRank;
  decltype(&ncclAllReduce) allReduce;
  decltype(&ncclCommDestroy) commDestroy;
  ncclUniqueId id;
};

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  CHECK(function != nullptr, true);
}

Copy load(const std::string& path) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) std::printf("%s\n", ::dlerror());
  CHECK(library != nullptr, true);
  Copy copy{};
  find(library, "ncclGetUniqueId", copy.getUniqueId);
  find(library, "ncclCommInitRank", copy.commInitRank);
  find(library, "ncclAllReduce", copy.allReduce);
  find(library, "ncclCommDestroy", copy.commDestroy);
  CHECK(copy.getUniqueId(&copy.id), ncclSuccess);
  return copy;
}

/// Sums of round + rank + 1, so that no round finds the result of another.
void live(const Copy& copy, int rank, std::barrier<>& allocated) {
  CHECK(cudaSetDevice(rank), cudaSuccess);
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ncclComm_t comm;
  CHECK(copy.commInitRank(&comm, kRanks, copy.id, rank), ncclSuccess);
  int* data;
  CHECK(cudaMalloc(reinterpret_cast<void**>(&data), kCount * sizeof(int)), cudaSuccess);
  allocated.arrive_and_wait();
  std::vector<int> values(kCount);
  for (int round = 0; round < kRounds; ++round) {
    values.assign(kCount, round + rank + 1);
    CHECK(cudaMemcpyAsync(data, values.data(), kCount * sizeof(int), cudaMemcpyHostToDevice, stream), cudaSuccess);
    CHECK(copy.allReduce(data, data, kCount, ncclInt32, ncclSum, comm, stream), ncclSuccess);
    CHECK(cudaMemcpyAsync(values.data(), data, kCount * sizeof(int), cudaMemcpyDeviceToHost, stream), cudaSuccess);
    CHECK(cudaStreamSynchronize(stream), cudaSuccess);
    CHECK(values == std::vector<int>(kCount, 2 * round + 3), true);
  }
  allocated.arrive_and_wait();  // freeing waits for the other copy's kernels
  CHECK(cudaFree(data), cudaSuccess);
  CHECK(copy.commDestroy(comm), ncclSuccess);
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc, 3);
  std::string folder = (std::filesystem::temp_directory_path() / "two_copies-XXXXXX").string();
  CHECK(::mkdtemp(folder.data()) != nullptr, true);
  for (const char* file : {argv[1], argv[2]}) {
    std::filesystem::copy_file(file, std::filesystem::path(folder) / std::filesystem::path(file).filename());
  }
  const std::array<Copy, 2> copies{load(argv[1]),
                                   load(folder + "/" + std::filesystem::path(argv[1]).filename().string())};
  CHECK(copies[0].allReduce != copies[1].allReduce, true);
  std::barrier<> allocated(2 * kRanks);
  std::vector<std::thread> threads;
  for (const Copy& copy : copies) {
    for (int rank = 0; rank < kRanks; ++rank) threads.emplace_back([&, rank] { live(copy, rank, allocated); });
  }
  for (std::thread& thread : threads) thread.join();
  std::filesystem::remove_all(folder);
  std::printf("Success\n");
  return 0;
}
