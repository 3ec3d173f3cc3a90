// Memory pools: the driver's, with the runtime's names.
#include "softgpu/runtime/api.h"

using namespace tutti::softgpu;

static_assert(sizeof(cudaMemPoolProps) == sizeof(CUmemPoolProps));
static_assert(sizeof(cudaMemAccessDesc) == sizeof(CUmemAccessDesc));
static_assert(sizeof(cudaMemLocation) == sizeof(CUmemLocation));

extern "C" {

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  if (pool == nullptr || properties == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] { return CU(cuMemPoolCreate, pool, reinterpret_cast<const CUmemPoolProps*>(properties)); });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return inContext([&] { return CU(cuMemPoolDestroy, pool); });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keepBytes) {
  return inContext([&] { return CU(cuMemPoolTrimTo, pool, keepBytes); });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return inContext([&] { return CU(cuMemPoolSetAttribute, pool, static_cast<CUmemPool_attribute>(attribute), value); });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return inContext([&] { return CU(cuMemPoolGetAttribute, pool, static_cast<CUmemPool_attribute>(attribute), value); });
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* list, size_t count) {
  return inContext([&] { return CU(cuMemPoolSetAccess, pool, reinterpret_cast<const CUmemAccessDesc*>(list), count); });
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation* location) {
  return inContext([&] {
    return CU(cuMemPoolGetAccess, reinterpret_cast<CUmemAccess_flags*>(flags), pool,
              reinterpret_cast<CUmemLocation*>(location));
  });
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void* value) {
  return inContext(
      [&] { return CU(cuDeviceGetGraphMemAttribute, device, static_cast<CUgraphMem_attribute>(attribute), value); });
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void* value) {
  return inContext(
      [&] { return CU(cuDeviceSetGraphMemAttribute, device, static_cast<CUgraphMem_attribute>(attribute), value); });
}

cudaError_t cudaDeviceGraphMemTrim(int device) {
  return inContext([&] { return CU(cuDeviceGraphMemTrim, device); });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  if (const cudaError_t error = checkDevice(device); error != cudaSuccess) return keep(error);
  return inContext([&] { return CU(cuDeviceGetDefaultMemPool, pool, device); });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  if (const cudaError_t error = checkDevice(device); error != cudaSuccess) return keep(error);
  return inContext([&] { return CU(cuDeviceGetMemPool, pool, device); });
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  if (const cudaError_t error = checkDevice(device); error != cudaSuccess) return keep(error);
  return inContext([&] { return CU(cuDeviceSetMemPool, device, pool); });
}

}  // extern "C"
