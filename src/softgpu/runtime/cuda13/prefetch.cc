// Moving memory ahead of its use. Built twice: as it stands, and for the per-thread default stream (_ptsz).
#include "softgpu/runtime/cuda13/names.h"

using namespace tutti::softgpu;

extern "C" {

cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t, cudaMemLocation, unsigned int, cudaStream_t) {
  // All memory of the software GPU is the machine's memory: it is there already.
  return inContext([&] { return pointer == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; });
}

}  // extern "C"
