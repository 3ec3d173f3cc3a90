// How many parameters a kernel has, which CUDA 13.0's header does not declare.
#include "softgpu/runtime/api.h"
#include "softgpu/runtime/code/image.h"

using namespace tutti::softgpu;

extern "C" cudaError_t cudaFuncGetParamCount(const void* handle, size_t* count) {
  if (count == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] {
    CUfunction function = nullptr;
    if (const cudaError_t error = findFunction(handle, &function); error != cudaSuccess) return error;
    size_t known = 0;
    size_t offset = 0;
    size_t bytes = 0;
    CUresult result = CUDA_SUCCESS;
    while ((result = CU(cuFuncGetParamInfo, function, known, &offset, &bytes)) == CUDA_SUCCESS) ++known;
    // That there is no next one is the answer.
    if (result != CUDA_ERROR_INVALID_VALUE) return toRuntimeError(result);
    *count = known;
    return cudaSuccess;
  });
}
