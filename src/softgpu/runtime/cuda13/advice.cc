// Advice about memory.
#include "softgpu/runtime/cuda13/names.h"

using namespace tutti::softgpu;

extern "C" {

cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, cudaMemLocation) {
  return cudaSuccess;
}

}  // extern "C"
