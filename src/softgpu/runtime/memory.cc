// Memory: device, pinned host and managed allocations, registration, what a pointer is.
#include <algorithm>
#include <cstdint>

#include "softgpu/runtime/api.h"

using namespace tutti::softgpu;

namespace {

/// Rows of pitched allocations start on multiples of this, as textures of real devices want it.
constexpr size_t kPitchAlignment = 512;

size_t pitchFor(size_t width) {
  return (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
}

CUresult allocate(void** pointer, size_t size) {
  CUdeviceptr address = 0;
  // Asking for nothing succeeds in the runtime and fails in the driver.
  if (size != 0) {
    if (const CUresult result = CU(cuMemAlloc, &address, size); result != CUDA_SUCCESS) return result;
  }
  *pointer = reinterpret_cast<void*>(address);
  return CUDA_SUCCESS;
}

CUresult allocateHost(void** pointer, size_t size, unsigned flags) {
  void* address = nullptr;
  if (size != 0) {
    if (const CUresult result = CU(cuMemHostAlloc, &address, size, flags); result != CUDA_SUCCESS) return result;
  }
  *pointer = address;
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t size) {
  if (pointer == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] { return allocate(pointer, size); });
}

cudaError_t cudaMallocManaged(void** pointer, size_t size, unsigned int flags) {
  if (pointer == nullptr || size == 0) return keep(cudaErrorInvalidValue);
  return inContext([&] { return CU(cuMemAllocManaged, reinterpret_cast<CUdeviceptr*>(pointer), size, flags); });
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  if (pointer == nullptr || pitch == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] {
    const CUresult result = allocate(pointer, pitchFor(width) * height);
    if (result == CUDA_SUCCESS) *pitch = pitchFor(width);
    return result;
  });
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pitched, cudaExtent extent) {
  if (pitched == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] {
    void* pointer = nullptr;
    const size_t pitch = pitchFor(extent.width);
    const CUresult result = allocate(&pointer, pitch * extent.height * extent.depth);
    if (result == CUDA_SUCCESS) *pitched = {pointer, pitch, extent.width, extent.height};
    return result;
  });
}

cudaError_t cudaFree(void* pointer) {
  // Freeing null only makes the runtime start: programs use it for that.
  return inContext([&] { return pointer == nullptr ? CUDA_SUCCESS : CU(cuMemFree, toDevice(pointer)); });
}

cudaError_t cudaMallocHost(void** pointer, size_t size) {
  if (pointer == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] { return allocateHost(pointer, size, 0); });
}

cudaError_t cudaHostAlloc(void** pointer, size_t size, unsigned int flags) {
  if (pointer == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] { return allocateHost(pointer, size, flags); });
}

cudaError_t cudaFreeHost(void* pointer) {
  return inContext([&] { return pointer == nullptr ? CUDA_SUCCESS : CU(cuMemFreeHost, pointer); });
}

cudaError_t cudaHostRegister(void* pointer, size_t size, unsigned int flags) {
  return inContext([&] { return CU(cuMemHostRegister, pointer, size, flags); });
}

cudaError_t cudaHostUnregister(void* pointer) {
  return inContext([&] { return CU(cuMemHostUnregister, pointer); });
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned int flags) {
  if (device == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] {
    CUdeviceptr address = 0;
    const CUresult result = CU(cuMemHostGetDevicePointer, &address, host, flags);
    if (result == CUDA_SUCCESS) *device = reinterpret_cast<void*>(address);
    return result;
  });
}

cudaError_t cudaHostGetFlags(unsigned int* flags, void* host) {
  return inContext([&] { return CU(cuMemHostGetFlags, flags, host); });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  if (free == nullptr || total == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] { return CU(cuMemGetInfo, free, total); });
}

}  // extern "C"
