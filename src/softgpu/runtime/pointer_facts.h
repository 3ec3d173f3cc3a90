// The structure of cudaPointerGetAttributes. CUDA 13 has made it longer, so it is a parameter.
#pragma once

#include "softgpu/runtime/call.h"

namespace tutti::softgpu {

inline cudaMemoryType memoryTypeOf(unsigned driverType, bool managed) {
  if (managed) return cudaMemoryTypeManaged;
  if (driverType == CU_MEMORYTYPE_HOST) return cudaMemoryTypeHost;
  return driverType == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
}

/// What memory `pointer` leads to.
template <class Attributes>
CUresult describePointer(Attributes& out, const void* pointer) {
  unsigned type = 0;
  unsigned managed = 0;
  int ordinal = cudaInvalidDeviceId;
  void* host = nullptr;
  CUdeviceptr device = 0;
  CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_HOST_POINTER,
                                 CU_POINTER_ATTRIBUTE_DEVICE_POINTER};
  void* values[] = {&type, &managed, &ordinal, &host, &device};
  const CUresult result = CU(cuPointerGetAttributes, 5, names, values, toDevice(pointer));
  if (result != CUDA_SUCCESS) return result;
  out = {};
  out.type = memoryTypeOf(type, (managed & 0xff) != 0);
  const bool known = out.type != cudaMemoryTypeUnregistered;
  out.device = known ? ordinal : cudaInvalidDeviceId;
  out.devicePointer = known ? reinterpret_cast<void*>(device) : nullptr;
  out.hostPointer = known ? host : const_cast<void*>(pointer);
  if (out.type == cudaMemoryTypeDevice) out.hostPointer = nullptr;
  return CUDA_SUCCESS;
}

}  // namespace tutti::softgpu
