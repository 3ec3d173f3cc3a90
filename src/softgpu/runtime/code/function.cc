// What the application's kernels and variables are: attributes, occupancy, addresses.
#include "softgpu/runtime/api.h"
#include "softgpu/runtime/code/image.h"

using namespace tutti::softgpu;

namespace {

/// Runs `body` (returns CUresult) on the kernel.
template <class Body>
cudaError_t withFunction(const void* handle, Body body) {
  return inContext([&] {
    CUfunction function = nullptr;
    const cudaError_t error = findFunction(handle, &function);
    return error != cudaSuccess ? error : toRuntimeError(body(function));
  });
}

CUresult fillAttributes(cudaFuncAttributes* result, CUfunction function) {
  CUresult error = CUDA_SUCCESS;
  const auto ask = [&](CUfunction_attribute attribute) {
    int value = 0;
    if (error == CUDA_SUCCESS) error = CU(cuFuncGetAttribute, &value, attribute, function);
    return value;
  };
  *result = {};
  result->sharedSizeBytes = static_cast<size_t>(ask(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
  result->constSizeBytes = static_cast<size_t>(ask(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES));
  result->localSizeBytes = static_cast<size_t>(ask(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
  result->maxThreadsPerBlock = ask(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  result->numRegs = ask(CU_FUNC_ATTRIBUTE_NUM_REGS);
  result->ptxVersion = ask(CU_FUNC_ATTRIBUTE_PTX_VERSION);
  result->binaryVersion = ask(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
  result->maxDynamicSharedSizeBytes = ask(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  result->preferredShmemCarveout = ask(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  return error;
}

}  // namespace

extern "C" {

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* result, const void* handle) {
  if (result == nullptr) return keep(cudaErrorInvalidValue);
  return withFunction(handle, [&](CUfunction function) { return fillAttributes(result, function); });
}

cudaError_t cudaFuncSetAttribute(const void* handle, cudaFuncAttribute attribute, int value) {
  return withFunction(handle, [&](CUfunction function) {
    return CU(cuFuncSetAttribute, function, static_cast<CUfunction_attribute>(attribute), value);
  });
}

cudaError_t cudaFuncSetCacheConfig(const void* handle, cudaFuncCache) {
  return withFunction(handle, [](CUfunction) { return CUDA_SUCCESS; });
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* result, const void* handle) {
  if (result == nullptr) return keep(cudaErrorInvalidValue);
  return withFunction(handle, [&](CUfunction function) {
    *result = function;
    return CUDA_SUCCESS;
  });
}

cudaError_t cudaGetKernel(cudaKernel_t* result, const void* handle) {
  if (result == nullptr) return keep(cudaErrorInvalidValue);
  return withFunction(handle, [&](CUfunction function) {
    *result = reinterpret_cast<cudaKernel_t>(function);
    return CUDA_SUCCESS;
  });
}

cudaError_t cudaFuncGetName(const char** name, const void* handle) {
  return withFunction(handle, [&](CUfunction function) { return CU(cuFuncGetName, name, function); });
}

cudaError_t cudaFuncGetParamInfo(const void* handle, size_t index, size_t* offset, size_t* bytes) {
  return withFunction(handle,
                      [&](CUfunction function) { return CU(cuFuncGetParamInfo, function, index, offset, bytes); });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* handle, int blockSize,
                                                          size_t sharedBytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, handle, blockSize, sharedBytes, 0);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* handle, int blockSize,
                                                                   size_t sharedBytes, unsigned int flags) {
  return withFunction(handle, [&](CUfunction function) {
    return CU(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, blocks, function, blockSize, sharedBytes, flags);
  });
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* handle, int blocks, int blockSize) {
  return withFunction(handle, [&](CUfunction function) {
    return CU(cuOccupancyAvailableDynamicSMemPerBlock, bytes, function, blocks, blockSize);
  });
}

cudaError_t cudaGetSymbolAddress(void** address, const void* variable) {
  if (address == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] {
    Symbol symbol;
    const cudaError_t error = findSymbol(variable, &symbol);
    if (error == cudaSuccess) *address = reinterpret_cast<void*>(symbol.address);
    return error;
  });
}

cudaError_t cudaGetSymbolSize(size_t* bytes, const void* variable) {
  if (bytes == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] {
    Symbol symbol;
    const cudaError_t error = findSymbol(variable, &symbol);
    if (error == cudaSuccess) *bytes = symbol.bytes;
    return error;
  });
}

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

}  // extern "C"
