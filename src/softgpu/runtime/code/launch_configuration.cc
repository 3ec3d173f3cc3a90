// What <<<…>>> leaves for the stub that it then calls.
#include <array>

#include "softgpu/runtime/api.h"

using namespace tutti::softgpu;

namespace {

struct LaunchConfiguration {
  dim3 grid;
  dim3 block;
  size_t sharedBytes = 0;
  cudaStream_t stream = nullptr;
};
/// One inside the other, where arguments of a launch launch. Never destroyed: static objects may launch at the end.
struct LaunchConfigurations {
  std::array<LaunchConfiguration, 16> all{};
  std::size_t count = 0;
};
constinit thread_local LaunchConfigurations configurations;

}  // namespace

extern "C" {

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t sharedBytes, CUstream_st* stream);
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* sharedBytes, void* stream);

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t sharedBytes, CUstream_st* stream) {
  if (configurations.count == configurations.all.size()) return 1;
  configurations.all[configurations.count++] = {grid, block, sharedBytes, stream};
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* sharedBytes, void* stream) {
  if (configurations.count == 0) return keep(cudaErrorMissingConfiguration);
  const LaunchConfiguration& top = configurations.all[--configurations.count];
  *grid = top.grid;
  *block = top.block;
  *sharedBytes = top.sharedBytes;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}

}  // extern "C"
