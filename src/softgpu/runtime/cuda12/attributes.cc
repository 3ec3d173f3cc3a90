// What a device and what a pointer is, in the structures of CUDA 12.
#include "softgpu/runtime/cuda12/structures.h"
#include "softgpu/runtime/device_properties.h"
#include "softgpu/runtime/pointer_facts.h"

namespace tutti::softgpu::cuda12 {
namespace {

constexpr AttributeRow<DeviceProperties, int> kIntegersOf12[] = {
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &DeviceProperties::clockRate},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, &DeviceProperties::deviceOverlap},
    {CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT, &DeviceProperties::kernelExecTimeoutEnabled},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, &DeviceProperties::computeMode},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, &DeviceProperties::memoryClockRate},
    {CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, &DeviceProperties::singleToDoublePrecisionPerfRatio},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH, &DeviceProperties::cooperativeMultiDeviceLaunch},
};

CUresult describe(DeviceProperties& properties, int device) {
  fillAttributes(properties, device, kIntegersOf12);
  return describeDevice(properties, device);
}

}  // namespace
}  // namespace tutti::softgpu::cuda12

using namespace tutti::softgpu;

extern "C" {

cudaError_t cudaGetDeviceProperties_v2(cuda12::DeviceProperties* properties, int device) {
  return giveProperties(properties, device, cuda12::describe);
}

/// The form of CUDA 11, whose structure is the beginning of the newer one.
cudaError_t cudaGetDeviceProperties(void* properties, int device) {
  if (properties == nullptr) return keep(cudaErrorInvalidValue);
  cuda12::DeviceProperties whole;
  const cudaError_t error = cudaGetDeviceProperties_v2(&whole, device);
  if (error == cudaSuccess) std::memcpy(properties, &whole, cuda12::kSizeOfPropertiesIn11);
  return error;
}

cudaError_t cudaPointerGetAttributes(cuda12::PointerAttributes* attributes, const void* pointer) {
  if (attributes == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] { return describePointer(*attributes, pointer); });
}

}  // extern "C"
