// Driver functions by name and version. Built twice: as it stands, and for the per-thread default stream (_ptsz).
#include "softgpu/runtime/api.h"
#include "softgpu/runtime/version.h"

using namespace tutti::softgpu;

namespace {

/// What the caller asked for, or what its own default stream asks for.
cuuint64_t lookupFlags(unsigned long long flags) {
  if (flags != cudaEnableDefault) return flags;
  return kPerThreadDefaultStream ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_DEFAULT;
}

cudaDriverEntryPointQueryResult toRuntime(CUdriverProcAddressQueryResult status) {
  return static_cast<cudaDriverEntryPointQueryResult>(status);
}

cudaError_t find(const char* symbol, void** function, int version, unsigned long long flags,
                 cudaDriverEntryPointQueryResult* status) {
  if (symbol == nullptr || symbol[0] == '\0' || function == nullptr) return keep(cudaErrorInvalidValue);
  return inDriver([&] {
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    void* address = nullptr;
    const CUresult result = CU(cuGetProcAddress, symbol, &address, version, lookupFlags(flags), &found);
    *function = found == CU_GET_PROC_ADDRESS_SUCCESS ? address : nullptr;
    // A name that is not there is an answer for callers that ask for the status, an error for the others.
    if (status == nullptr) return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
    *status = toRuntime(found);
    return result == CUDA_ERROR_NOT_FOUND ? CUDA_SUCCESS : result;
  });
}

}  // namespace

extern "C" {

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* status) {
  return find(symbol, function, kRuntimeVersion, flags, status);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int version,
                                             unsigned long long flags, cudaDriverEntryPointQueryResult* status) {
  return find(symbol, function, static_cast<int>(version), flags, status);
}

}  // extern "C"
