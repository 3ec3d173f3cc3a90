// Advice that the software GPU has no use for, and questions with the same answer for all: nothing changes here.
#include "softgpu/driver/entry.h"

using namespace tutti::softgpu;

namespace {

CUresult hint(const char* name) {
  return callInContext(name, [](Context&) { return CUDA_SUCCESS; });
}

CUresult hintOf(const char* name, CUfunction function) {
  return callInContext(name, [&](Context&) { return function == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS; });
}

/// Of a function that tells one constant.
template <class T>
CUresult answer(const char* name, T* result, T value) {
  return call(name, [&]() -> CUresult {
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *result = value;
    return CUDA_SUCCESS;
  });
}

/// Host and devices read the same memory, so there is nowhere to move it, and no advice to follow.
CUresult hintOfMemory(const char* name, CUdeviceptr pointer, std::size_t count) {
  return callInContext(name, [&](Context&) {
    const auto allocation = machine().memory.find(addressOf(pointer));
    const bool whole = allocation != nullptr && addressOf(pointer) + count <= allocation->base + allocation->size;
    return whole && count > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // namespace

extern "C" {

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache) {
  return hintOf("cuFuncSetCacheConfig", function);
}
CUresult cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig) {
  return hintOf("cuFuncSetSharedMemConfig", function);
}
CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache, CUdevice) {
  return hintOf("cuKernelSetCacheConfig", reinterpret_cast<CUfunction>(kernel));
}
CUresult cuFuncLoad(CUfunction function) {
  return hintOf("cuFuncLoad", function);
}
CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  const CUresult result = hintOf("cuFuncIsLoaded", function);
  return result == CUDA_SUCCESS ? answer("cuFuncIsLoaded", state, CU_FUNCTION_LOADING_STATE_LOADED) : result;
}
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return answer("cuModuleGetLoadingMode", mode, CU_MODULE_EAGER_LOADING);
}

CUresult cuCtxSetCacheConfig(CUfunc_cache) {
  return hint("cuCtxSetCacheConfig");
}
CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  return answer("cuCtxGetCacheConfig", config, CU_FUNC_CACHE_PREFER_NONE);
}
CUresult cuCtxSetSharedMemConfig(CUsharedconfig) {
  return hint("cuCtxSetSharedMemConfig");
}
CUresult cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  return answer("cuCtxGetSharedMemConfig", config, CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE);
}
CUresult cuCtxResetPersistingL2Cache() {
  return hint("cuCtxResetPersistingL2Cache");
}
CUresult cuDeviceGetExecAffinitySupport(int* supported, CUexecAffinityType, CUdevice ordinal) {
  if (deviceOf(ordinal) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  return answer("cuDeviceGetExecAffinitySupport", supported, 0);
}

CUresult cuMemAdvise_v2(CUdeviceptr pointer, size_t count, CUmem_advise, CUmemLocation) {
  return hintOfMemory("cuMemAdvise", pointer, count);
}
CUresult cuMemPrefetchAsync_v2(CUdeviceptr pointer, size_t count, CUmemLocation, unsigned int, CUstream) {
  return hintOfMemory("cuMemPrefetchAsync", pointer, count);
}

// Declared by cudaProfiler.h, which a toolkit may lack.
__attribute__((visibility("default"))) CUresult cuProfilerStart();
__attribute__((visibility("default"))) CUresult cuProfilerStop();
CUresult cuProfilerStart() {
  return hint("cuProfilerStart");
}
CUresult cuProfilerStop() {
  return hint("cuProfilerStop");
}

/// There are no private tables, which is what this function is for: who looks for one finds none. It may come first
/// of all calls.
CUresult cuGetExportTable(const void** table, const CUuuid* id) {
  if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *table = nullptr;
  return CUDA_ERROR_NOT_SUPPORTED;
}

/// The software GPU says what it has to say on standard error: nobody is ever called.
CUresult cuLogsRegisterCallback(CUlogsCallback callback, void*, CUlogsCallbackHandle* handle) {
  static char only = 0;
  if (callback == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return answer("cuLogsRegisterCallback", handle, reinterpret_cast<CUlogsCallbackHandle>(&only));
}
CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle handle) {
  return call("cuLogsUnregisterCallback", [&] { return handle == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; });
}

}  // extern "C"
