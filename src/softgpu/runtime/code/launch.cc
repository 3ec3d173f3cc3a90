// Launches of the application's kernels. Built twice: as it stands, and for the per-thread default stream.
#include "softgpu/runtime/api.h"
#include "softgpu/runtime/code/image.h"

#ifdef SOFTGPU_PER_THREAD_DEFAULT_STREAM
#define __cudaLaunchKernel __cudaLaunchKernel_ptsz  // the toolkit's headers do so only where the compiler includes them
#endif

using namespace tutti::softgpu;

static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute));

namespace {

bool isShape(dim3 grid, dim3 block) {
  const auto within = [](dim3 size, unsigned x, unsigned yAndZ) {
    return size.x != 0 && size.y != 0 && size.z != 0 && size.x <= x && size.y <= yAndZ && size.z <= yAndZ;
  };
  return within(grid, 0x7fffffff, 65535) && within(block, 1024, 1024) && block.z <= 64 &&
         std::uint64_t{block.x} * block.y * block.z <= 1024;
}

cudaError_t launch(const cudaLaunchConfig_t& c, const void* handle, void** args) {
  return inContext([&] {
    CUfunction function = nullptr;
    if (const cudaError_t error = findFunction(handle, &function); error != cudaSuccess) return error;
    if (!isShape(c.gridDim, c.blockDim)) return cudaErrorInvalidConfiguration;
    CUlaunchConfig config = {};
    config.gridDimX = c.gridDim.x;
    config.gridDimY = c.gridDim.y;
    config.gridDimZ = c.gridDim.z;
    config.blockDimX = c.blockDim.x;
    config.blockDimY = c.blockDim.y;
    config.blockDimZ = c.blockDim.z;
    config.sharedMemBytes = static_cast<unsigned>(c.dynamicSmemBytes);
    config.hStream = toDriver(c.stream);
    config.attrs = reinterpret_cast<CUlaunchAttribute*>(c.attrs);
    config.numAttrs = c.numAttrs;
    return toRuntimeError(CU(cuLaunchKernelEx, &config, function, args, nullptr));
  });
}

cudaLaunchConfig_t configOf(dim3 grid, dim3 block, size_t sharedBytes, cudaStream_t stream) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = sharedBytes;
  config.stream = stream;
  return config;
}

}  // namespace

extern "C" {

// As the toolkit's crt/host_runtime.h declares it.
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args, size_t sharedBytes,
                               cudaStream_t stream);

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args, size_t sharedBytes,
                               cudaStream_t stream) {
  return launch(configOf(grid, block, sharedBytes, stream), kernel, args);
}

cudaError_t cudaLaunchKernel(const void* stub, dim3 grid, dim3 block, void** args, size_t sharedBytes,
                             cudaStream_t stream) {
  return launch(configOf(grid, block, sharedBytes, stream), stub, args);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* stub, void** args) {
  return config == nullptr ? keep(cudaErrorInvalidValue) : launch(*config, stub, args);
}

cudaError_t cudaLaunchCooperativeKernel(const void* stub, dim3 grid, dim3 block, void** args, size_t sharedBytes,
                                        cudaStream_t stream) {
  cudaLaunchAttribute cooperative = {};
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.val.cooperative = 1;
  cudaLaunchConfig_t config = configOf(grid, block, sharedBytes, stream);
  config.attrs = &cooperative;
  config.numAttrs = 1;
  return launch(config, stub, args);
}

}  // extern "C"
