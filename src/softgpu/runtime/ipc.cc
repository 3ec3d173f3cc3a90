// Memory and events of other processes. A runtime handle is the driver's handle, byte for byte.
#include <cstring>

#include "softgpu/runtime/api.h"

using namespace tutti::softgpu;

static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle));
static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle));

extern "C" {

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
  if (handle == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] {
    CUipcMemHandle raw{};
    const CUresult result = CU(cuIpcGetMemHandle, &raw, toDevice(pointer));
    if (result == CUDA_SUCCESS) std::memcpy(handle, &raw, sizeof raw);
    return result;
  });
}

cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned int flags) {
  if (pointer == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] {
    CUipcMemHandle raw{};
    std::memcpy(&raw, &handle, sizeof raw);
    CUdeviceptr address = 0;
    const CUresult result = CU(cuIpcOpenMemHandle, &address, raw, flags);
    if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(address);
    return result;
  });
}

cudaError_t cudaIpcCloseMemHandle(void* pointer) {
  return inContext([&] { return CU(cuIpcCloseMemHandle, toDevice(pointer)); });
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  if (handle == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] {
    CUipcEventHandle raw{};
    const CUresult result = CU(cuIpcGetEventHandle, &raw, event);
    if (result == CUDA_SUCCESS) std::memcpy(handle, &raw, sizeof raw);
    return result;
  });
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  if (event == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] {
    CUipcEventHandle raw{};
    std::memcpy(&raw, &handle, sizeof raw);
    return CU(cuIpcOpenEventHandle, event, raw);
  });
}

}  // extern "C"
