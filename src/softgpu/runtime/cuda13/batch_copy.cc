// Many copies in one call. Built twice: as it stands, and for the per-thread default stream (_ptsz).
#include "softgpu/runtime/cuda13/names.h"

using namespace tutti::softgpu;

extern "C" {

cudaError_t cudaMemcpyBatchAsync(void* const* to, const void* const* from, const size_t* sizes, size_t count,
                                 cudaMemcpyAttributes* attributes, size_t* attributeIndices, size_t attributeCount,
                                 cudaStream_t stream) {
  static_assert(sizeof(cudaMemcpyAttributes) == sizeof(CUmemcpyAttributes));
  return inContext([&] {
    // The driver's prototype lacks the const that its contract keeps.
    return CU(cuMemcpyBatchAsync, reinterpret_cast<CUdeviceptr*>(const_cast<void**>(to)),
              reinterpret_cast<CUdeviceptr*>(const_cast<void**>(const_cast<void* const*>(from))),
              const_cast<size_t*>(sizes), count, reinterpret_cast<CUmemcpyAttributes*>(attributes), attributeIndices,
              attributeCount, toDriver(stream));
  });
}

}  // extern "C"
