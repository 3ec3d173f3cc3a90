// The structure of cudaGetDeviceProperties: the driver's attributes under other names. Its layout is another one in
// each major version of CUDA, so it is a parameter.
#pragma once

#include <cstring>
#include <type_traits>

#include "softgpu/runtime/call.h"

namespace tutti::softgpu {

/// One attribute and the member of a structure that shows it.
template <class Properties, class Member>
struct AttributeRow {
  CUdevice_attribute attribute;
  Member Properties::*member;
};

template <class Properties>
constexpr AttributeRow<Properties, int> kIntegers[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, &Properties::regsPerBlock},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, &Properties::warpSize},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &Properties::maxThreadsPerBlock},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &Properties::major},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &Properties::minor},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &Properties::multiProcessorCount},
    {CU_DEVICE_ATTRIBUTE_INTEGRATED, &Properties::integrated},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, &Properties::canMapHostMemory},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, &Properties::concurrentKernels},
    {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, &Properties::ECCEnabled},
    {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, &Properties::pciBusID},
    {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, &Properties::pciDeviceID},
    {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, &Properties::pciDomainID},
    {CU_DEVICE_ATTRIBUTE_TCC_DRIVER, &Properties::tccDriver},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, &Properties::asyncEngineCount},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, &Properties::unifiedAddressing},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &Properties::memoryBusWidth},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &Properties::l2CacheSize},
    {CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, &Properties::persistingL2CacheMaxSize},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &Properties::maxThreadsPerMultiProcessor},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, &Properties::streamPrioritiesSupported},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, &Properties::globalL1CacheSupported},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, &Properties::localL1CacheSupported},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, &Properties::regsPerMultiprocessor},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, &Properties::managedMemory},
    {CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD, &Properties::isMultiGpuBoard},
    {CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID, &Properties::multiGpuBoardGroupID},
    {CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, &Properties::hostNativeAtomicSupported},
    {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, &Properties::pageableMemoryAccess},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, &Properties::concurrentManagedAccess},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, &Properties::computePreemptionSupported},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, &Properties::canUseHostPointerForRegisteredMem},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, &Properties::cooperativeLaunch},
    {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
     &Properties::pageableMemoryAccessUsesHostPageTables},
    {CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, &Properties::directManagedMemAccessFromHost},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, &Properties::maxBlocksPerMultiProcessor},
    {CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE, &Properties::accessPolicyMaxWindowSize},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, &Properties::hostRegisterSupported},
    {CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED, &Properties::sparseCudaArraySupported},
    {CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, &Properties::hostRegisterReadOnlySupported},
    {CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED, &Properties::timelineSemaphoreInteropSupported},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, &Properties::memoryPoolsSupported},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, &Properties::gpuDirectRDMASupported},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, &Properties::gpuDirectRDMAWritesOrdering},
    {CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, &Properties::deferredMappingCudaArraySupported},
    {CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, &Properties::ipcEventSupported},
    {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, &Properties::clusterLaunch},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS, &Properties::unifiedFunctionPointers},
};

template <class Properties>
constexpr AttributeRow<Properties, unsigned> kUnsigneds[] = {
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, &Properties::gpuDirectRDMAFlushWritesOptions},
    {CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, &Properties::memoryPoolSupportedHandleTypes},
};

template <class Properties>
constexpr AttributeRow<Properties, size_t> kSizes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, &Properties::sharedMemPerBlock},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, &Properties::memPitch},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, &Properties::totalConstMem},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, &Properties::textureAlignment},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, &Properties::texturePitchAlignment},
    {CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, &Properties::surfaceAlignment},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, &Properties::sharedMemPerMultiprocessor},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &Properties::sharedMemPerBlockOptin},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, &Properties::reservedSharedMemPerBlock},
};

/// The attribute's value, 0 where the driver does not know it.
inline int attributeOf(int device, int attribute) {
  int value = 0;
  return CU(cuDeviceGetAttribute, &value, static_cast<CUdevice_attribute>(attribute), device) == CUDA_SUCCESS ? value
                                                                                                              : 0;
}

template <class Properties, class Rows>
void fillAttributes(Properties& properties, int device, const Rows& rows) {
  for (const auto& row : rows) {
    auto& member = properties.*row.member;
    member = static_cast<std::remove_reference_t<decltype(member)>>(attributeOf(device, row.attribute));
  }
}

/// Writes what all versions of the structure have; its other members stay.
template <class Properties>
CUresult describeDevice(Properties& properties, int device) {
  if (const CUresult result = CU(cuDeviceGetName, properties.name, sizeof properties.name, device);
      result != CUDA_SUCCESS)
    return result;
  if (const CUresult result = CU(cuDeviceTotalMem, &properties.totalGlobalMem, device); result != CUDA_SUCCESS)
    return result;
  CUuuid uuid{};
  if (const CUresult result = CU(cuDeviceGetUuid, &uuid, device); result != CUDA_SUCCESS) return result;
  std::memcpy(&properties.uuid, &uuid, sizeof uuid);
  fillAttributes(properties, device, kIntegers<Properties>);
  fillAttributes(properties, device, kUnsigneds<Properties>);
  fillAttributes(properties, device, kSizes<Properties>);
  for (int i = 0; i < 3; ++i) {
    properties.maxThreadsDim[i] = attributeOf(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i);
    properties.maxGridSize[i] = attributeOf(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i);
  }
  return CUDA_SUCCESS;
}

/// The exported call for a structure that `describe(properties, device)` (returns CUresult) fills; it is written only
/// on success.
template <class Properties, class Describe>
cudaError_t giveProperties(Properties* properties, int device, Describe describe) {
  if (properties == nullptr) return keep(cudaErrorInvalidValue);
  if (const cudaError_t error = checkDevice(device); error != cudaSuccess) return keep(error);
  Properties result{};
  if (const CUresult failed = describe(result, device); failed != CUDA_SUCCESS) return keep(failed);
  *properties = result;
  return cudaSuccess;
}

}  // namespace tutti::softgpu
