// What a device and what a pointer is, in the structures of CUDA 13.
#include "softgpu/runtime/api.h"
#include "softgpu/runtime/device_properties.h"
#include "softgpu/runtime/pointer_facts.h"

using namespace tutti::softgpu;

namespace {

constexpr AttributeRow<cudaDeviceProp, int> kIntegersOf13[] = {
    {CU_DEVICE_ATTRIBUTE_NUMA_CONFIG, &cudaDeviceProp::deviceNumaConfig},
    {CU_DEVICE_ATTRIBUTE_NUMA_ID, &cudaDeviceProp::deviceNumaId},
    {CU_DEVICE_ATTRIBUTE_MPS_ENABLED, &cudaDeviceProp::mpsEnabled},
    {CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, &cudaDeviceProp::hostNumaId},
};

constexpr AttributeRow<cudaDeviceProp, unsigned> kUnsignedsOf13[] = {
    {CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID, &cudaDeviceProp::gpuPciDeviceID},
    {CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID, &cudaDeviceProp::gpuPciSubsystemID},
};

CUresult describe(cudaDeviceProp& properties, int device) {
  fillAttributes(properties, device, kIntegersOf13);
  fillAttributes(properties, device, kUnsignedsOf13);
  return describeDevice(properties, device);
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return giveProperties(properties, device, describe);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  if (attributes == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] { return describePointer(*attributes, pointer); });
}

}  // extern "C"
