// What programs with kernels of their own do with the runtime: cooperative grids, libraries with kernels, streams and
// events, launches that cannot be.
//
//   own_code LIBRARY
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace cg = cooperative_groups;

namespace {

void check(bool holds, const std::string& what) {
  if (holds) return;
  std::printf("FAILED: %s\n", what.c_str());
  std::exit(1);
}
void check(cudaError_t error, const std::string& what) {
  check(error == cudaSuccess, what + ": " + cudaGetErrorString(error));
}

constexpr int kBlocks = 6;
constexpr int kThreads = 96;
constexpr int kRounds = 20;

/// In each round every block adds what its neighbour had before it.
__global__ void passAround(int* cells, int rounds) {
  const auto grid = cg::this_grid();
  const unsigned neighbour = (blockIdx.x + 1) % gridDim.x;
  for (int round = 0; round < rounds; ++round) {
    const int theirs = *const_cast<volatile int*>(cells + neighbour);
    grid.sync();
    if (threadIdx.x == 0) cells[blockIdx.x] += theirs;
    grid.sync();
  }
}

void gridsMeet() {
  int* cells = nullptr;
  check(cudaMallocManaged(&cells, kBlocks * sizeof(int)), "cudaMallocManaged");
  std::vector<int> expected;
  for (int i = 0; i < kBlocks; ++i) {
    cells[i] = i + 1;
    expected.push_back(i + 1);
  }
  int rounds = kRounds;
  void* arguments[] = {&cells, &rounds};
  check(cudaLaunchCooperativeKernel(passAround, kBlocks, kThreads, arguments, 0, nullptr), "a cooperative launch");
  check(cudaDeviceSynchronize(), "a cooperative kernel");
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<int> before = expected;
    for (int i = 0; i < kBlocks; ++i) expected[i] = before[i] + before[(i + 1) % kBlocks];
  }
  for (int i = 0; i < kBlocks; ++i) check(cells[i] == expected[i], "block " + std::to_string(i) + " of a grid");
  check(cudaFree(cells), "cudaFree");
}

void librariesBringKernels(const char* path) {
  constexpr int kCount = 1000;
  int* words = nullptr;
  check(cudaMalloc(&words, kCount * sizeof(int)), "cudaMalloc");
  const std::vector<int> ones(kCount, 1);
  check(cudaMemcpy(words, ones.data(), kCount * sizeof(int), cudaMemcpyHostToDevice), "cudaMemcpy");
  int product = 1;
  for (int load = 0; load < 3; ++load) {
    void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    check(library != nullptr, std::string("dlopen: ") + (library == nullptr ? ::dlerror() : ""));
    const auto multiply = reinterpret_cast<int (*)(int*, int, int)>(::dlsym(library, "multiplyOnDevice"));
    check(multiply != nullptr, "dlsym");
    check(multiply(words, kCount, 0) == 1, "the first call of a library that was just loaded");
    check(multiply(words, kCount, 2) == 2, "the second call");
    product *= 3 * 2;
    ::dlclose(library);
  }
  std::vector<int> result(kCount);
  check(cudaMemcpy(result.data(), words, kCount * sizeof(int), cudaMemcpyDeviceToHost), "cudaMemcpy back");
  for (const int word : result) check(word == product, "a library's kernel: " + std::to_string(word));
  check(cudaFree(words), "cudaFree");
}

__global__ void append(int* list, int value) {
  list[1 + list[0]++] = value;
}

void streamsAreOrderedByEvents() {
  int* list = nullptr;
  check(cudaMallocManaged(&list, 64 * sizeof(int)), "cudaMallocManaged");
  list[0] = 0;
  cudaStream_t streams[2] = {};
  cudaEvent_t event = nullptr;
  for (cudaStream_t& stream : streams) check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event");
  for (int i = 0; i < 30; ++i) {
    append<<<1, 1, 0, streams[i % 2]>>>(list, i);
    check(cudaEventRecord(event, streams[i % 2]), "cudaEventRecord");
    check(cudaStreamWaitEvent(streams[(i + 1) % 2], event, 0), "cudaStreamWaitEvent");
  }
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  check(list[0] == 30, "every kernel of two streams ran once");
  for (int i = 0; i < 30; ++i) check(list[1 + i] == i, "kernel " + std::to_string(i) + " of two streams");
  for (cudaStream_t stream : streams) check(cudaStreamDestroy(stream), "cudaStreamDestroy");
  check(cudaEventDestroy(event), "cudaEventDestroy");
  check(cudaFree(list), "cudaFree");
}

void launchesThatCannotBeAreRefused() {
  append<<<1, 2048>>>(nullptr, 0);
  check(cudaGetLastError() == cudaErrorInvalidConfiguration, "2048 threads in a block are too many");
  check(cudaGetLastError(), "the error is told once");
  void* arguments[] = {nullptr, nullptr};
  check(cudaLaunchCooperativeKernel(passAround, 100000, kThreads, arguments, 0, nullptr) ==
            cudaErrorCooperativeLaunchTooLarge,
        "100000 blocks are never there at once");
  static_cast<void>(cudaGetLastError());
}

}  // namespace

int main(int count, char** names) {
  check(count == 2, "own_code LIBRARY");
  gridsMeet();
  librariesBringKernels(names[1]);
  streamsAreOrderedByEvents();
  launchesThatCannotBeAreRefused();
  std::printf("OK\n");
  return 0;
}
