// cudaGetDeviceProperties: the structure is the driver's attributes under other names.
#include <cstring>
#include <type_traits>

#include "softgpu/runtime/call.h"

namespace tutti::softgpu {
namespace {

/// One attribute and the member of cudaDeviceProp that shows it.
template <class Member>
struct Row {
  CUdevice_attribute attribute;
  Member cudaDeviceProp::*member;
};

constexpr Row<int> kIntegers[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, &cudaDeviceProp::regsPerBlock},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, &cudaDeviceProp::warpSize},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &cudaDeviceProp::maxThreadsPerBlock},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &cudaDeviceProp::major},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &cudaDeviceProp::minor},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &cudaDeviceProp::multiProcessorCount},
    {CU_DEVICE_ATTRIBUTE_INTEGRATED, &cudaDeviceProp::integrated},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, &cudaDeviceProp::canMapHostMemory},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, &cudaDeviceProp::concurrentKernels},
    {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, &cudaDeviceProp::ECCEnabled},
    {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, &cudaDeviceProp::pciBusID},
    {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, &cudaDeviceProp::pciDeviceID},
    {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, &cudaDeviceProp::pciDomainID},
    {CU_DEVICE_ATTRIBUTE_TCC_DRIVER, &cudaDeviceProp::tccDriver},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, &cudaDeviceProp::asyncEngineCount},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, &cudaDeviceProp::unifiedAddressing},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &cudaDeviceProp::memoryBusWidth},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &cudaDeviceProp::l2CacheSize},
    {CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, &cudaDeviceProp::persistingL2CacheMaxSize},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &cudaDeviceProp::maxThreadsPerMultiProcessor},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, &cudaDeviceProp::streamPrioritiesSupported},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, &cudaDeviceProp::globalL1CacheSupported},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, &cudaDeviceProp::localL1CacheSupported},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, &cudaDeviceProp::regsPerMultiprocessor},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, &cudaDeviceProp::managedMemory},
    {CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD, &cudaDeviceProp::isMultiGpuBoard},
    {CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID, &cudaDeviceProp::multiGpuBoardGroupID},
    {CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, &cudaDeviceProp::hostNativeAtomicSupported},
    {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, &cudaDeviceProp::pageableMemoryAccess},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, &cudaDeviceProp::concurrentManagedAccess},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, &cudaDeviceProp::computePreemptionSupported},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, &cudaDeviceProp::canUseHostPointerForRegisteredMem},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, &cudaDeviceProp::cooperativeLaunch},
    {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
     &cudaDeviceProp::pageableMemoryAccessUsesHostPageTables},
    {CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, &cudaDeviceProp::directManagedMemAccessFromHost},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, &cudaDeviceProp::maxBlocksPerMultiProcessor},
    {CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE, &cudaDeviceProp::accessPolicyMaxWindowSize},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, &cudaDeviceProp::hostRegisterSupported},
    {CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED, &cudaDeviceProp::sparseCudaArraySupported},
    {CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, &cudaDeviceProp::hostRegisterReadOnlySupported},
    {CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED, &cudaDeviceProp::timelineSemaphoreInteropSupported},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, &cudaDeviceProp::memoryPoolsSupported},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, &cudaDeviceProp::gpuDirectRDMASupported},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, &cudaDeviceProp::gpuDirectRDMAWritesOrdering},
    {CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, &cudaDeviceProp::deferredMappingCudaArraySupported},
    {CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, &cudaDeviceProp::ipcEventSupported},
    {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, &cudaDeviceProp::clusterLaunch},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS, &cudaDeviceProp::unifiedFunctionPointers},
    {CU_DEVICE_ATTRIBUTE_NUMA_CONFIG, &cudaDeviceProp::deviceNumaConfig},
    {CU_DEVICE_ATTRIBUTE_NUMA_ID, &cudaDeviceProp::deviceNumaId},
    {CU_DEVICE_ATTRIBUTE_MPS_ENABLED, &cudaDeviceProp::mpsEnabled},
    {CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, &cudaDeviceProp::hostNumaId},
};

constexpr Row<unsigned> kUnsigneds[] = {
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, &cudaDeviceProp::gpuDirectRDMAFlushWritesOptions},
    {CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, &cudaDeviceProp::memoryPoolSupportedHandleTypes},
    {CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID, &cudaDeviceProp::gpuPciDeviceID},
    {CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID, &cudaDeviceProp::gpuPciSubsystemID},
};

constexpr Row<size_t> kSizes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, &cudaDeviceProp::sharedMemPerBlock},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, &cudaDeviceProp::memPitch},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, &cudaDeviceProp::totalConstMem},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, &cudaDeviceProp::textureAlignment},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, &cudaDeviceProp::texturePitchAlignment},
    {CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, &cudaDeviceProp::surfaceAlignment},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, &cudaDeviceProp::sharedMemPerMultiprocessor},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &cudaDeviceProp::sharedMemPerBlockOptin},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, &cudaDeviceProp::reservedSharedMemPerBlock},
};

/// The attribute's value, 0 where the driver does not know it.
int attributeOf(int device, int attribute) {
  int value = 0;
  return CU(cuDeviceGetAttribute, &value, static_cast<CUdevice_attribute>(attribute), device) == CUDA_SUCCESS ? value
                                                                                                              : 0;
}

template <class Rows>
void fill(cudaDeviceProp& properties, int device, const Rows& rows) {
  for (const auto& row : rows) {
    auto& member = properties.*row.member;
    member = static_cast<std::remove_reference_t<decltype(member)>>(attributeOf(device, row.attribute));
  }
}

CUresult describe(cudaDeviceProp& properties, int device) {
  if (const CUresult result = CU(cuDeviceGetName, properties.name, sizeof properties.name, device);
      result != CUDA_SUCCESS)
    return result;
  if (const CUresult result = CU(cuDeviceTotalMem, &properties.totalGlobalMem, device); result != CUDA_SUCCESS)
    return result;
  CUuuid uuid{};
  if (const CUresult result = CU(cuDeviceGetUuid, &uuid, device); result != CUDA_SUCCESS) return result;
  std::memcpy(&properties.uuid, &uuid, sizeof uuid);
  fill(properties, device, kIntegers);
  fill(properties, device, kUnsigneds);
  fill(properties, device, kSizes);
  for (int i = 0; i < 3; ++i) {
    properties.maxThreadsDim[i] = attributeOf(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i);
    properties.maxGridSize[i] = attributeOf(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i);
  }
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace tutti::softgpu

using namespace tutti::softgpu;

extern "C" cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (properties == nullptr) return keep(cudaErrorInvalidValue);
  if (const cudaError_t error = checkDevice(device); error != cudaSuccess) return keep(error);
  cudaDeviceProp result{};
  if (const CUresult failed = describe(result, device); failed != CUDA_SUCCESS) return keep(failed);
  *properties = result;
  return cudaSuccess;
}
