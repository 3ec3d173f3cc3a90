// Stream-ordered allocation. Pools are names: memory comes from the device and returns to it.
#include "softgpu/driver/entry.h"

using namespace tutti::softgpu;

namespace {

std::shared_ptr<Pool> defaultPool(int device) {
  static auto* creation = new std::mutex;
  std::lock_guard<std::mutex> guard(*creation);
  for (const auto& pool : machine().pools.all()) {
    if (pool->isDefault && pool->device == device) return pool;
  }
  auto made = std::make_shared<Pool>();
  made->device = device;
  made->isDefault = true;
  machine().pools.add(made);
  return made;
}

CUresult allocate(CUdeviceptr* result, std::size_t size, const std::shared_ptr<Pool>& pool, Stream& stream) {
  if (result == nullptr || pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  {
    std::lock_guard<std::mutex> guard(machine().lock);
    if (stream.capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  Device& device = *machine().devices[static_cast<std::size_t>(pool->device)];
  std::shared_ptr<Allocation> allocation;
  const CUresult error = device.allocate(device.primary(), size == 0 ? 1 : size, MemoryKind::Device, &allocation);
  if (error != CUDA_SUCCESS) return error;
  allocation->pooled = true;
  allocation->pool = pool.get();
  *result = allocation->base;
  return CUDA_SUCCESS;
}

template <class Body>
CUresult withPool(const char* name, CUmemoryPool handle, Body&& body) {
  return call(name, [&]() -> CUresult {
    const auto pool = machine().pools.find(handle);
    return pool == nullptr ? CUDA_ERROR_INVALID_HANDLE : body(*pool);
  });
}

}  // namespace

extern "C" {

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* result, CUdevice ordinal) {
  return call("cuDeviceGetDefaultMemPool", [&]() -> CUresult {
    if (deviceOf(ordinal) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *result = reinterpret_cast<CUmemoryPool>(defaultPool(ordinal).get());
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetMemPool(CUmemoryPool* result, CUdevice ordinal) {
  return cuDeviceGetDefaultMemPool(result, ordinal);
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool* result, CUmemLocation* location, CUmemAllocationType type) {
  if (location == nullptr || location->type != CU_MEM_LOCATION_TYPE_DEVICE || type != CU_MEM_ALLOCATION_TYPE_PINNED) {
    return location == nullptr ? CUDA_ERROR_INVALID_VALUE : unsupported("cuMemGetDefaultMemPool of what is no device");
  }
  return cuDeviceGetDefaultMemPool(result, location->id);
}

CUresult cuMemGetMemPool(CUmemoryPool* result, CUmemLocation* location, CUmemAllocationType type) {
  return cuMemGetDefaultMemPool(result, location, type);
}

CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  CUmemoryPool known = nullptr;
  const CUresult result = cuMemGetDefaultMemPool(&known, location, type);
  return result == CUDA_SUCCESS ? cuDeviceSetMemPool(location->id, pool) : result;
}

CUresult cuDeviceSetMemPool(CUdevice, CUmemoryPool pool) {
  return withPool("cuDeviceSetMemPool", pool, [](Pool&) { return CUDA_SUCCESS; });
}

CUresult cuMemPoolCreate(CUmemoryPool* result, const CUmemPoolProps* properties) {
  return call("cuMemPoolCreate", [&]() -> CUresult {
    if (result == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (deviceOf(properties->location.id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    auto pool = std::make_shared<Pool>();
    pool->device = properties->location.id;
    *result = reinterpret_cast<CUmemoryPool>(machine().pools.add(std::move(pool)));
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  return withPool("cuMemPoolDestroy", handle, [&](Pool& pool) -> CUresult {
    if (pool.isDefault) return CUDA_ERROR_INVALID_VALUE;
    machine().pools.take(handle);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t) {
  return withPool("cuMemPoolTrimTo", handle, [](Pool&) { return CUDA_SUCCESS; });
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  return withPool("cuMemPoolSetAttribute", handle, [&](Pool& pool) -> CUresult {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard<std::mutex> guard(machine().lock);
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) pool.releaseThreshold = *static_cast<cuuint64_t*>(value);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  return withPool("cuMemPoolGetAttribute", handle, [&](Pool& pool) -> CUresult {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard<std::mutex> guard(machine().lock);
    const bool isSwitch = attribute == CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES ||
                          attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC ||
                          attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
    if (isSwitch) {
      *static_cast<int*>(value) = 1;
    } else {
      *static_cast<cuuint64_t*>(value) = attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD ? pool.releaseThreshold : 0;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc*, size_t) {
  return withPool("cuMemPoolSetAccess", handle, [](Pool&) { return CUDA_SUCCESS; });
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle, CUmemLocation*) {
  return withPool("cuMemPoolGetAccess", handle, [&](Pool&) -> CUresult {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAllocAsync(CUdeviceptr* result, size_t size, CUstream handle) {
  return callOnStream("cuMemAllocAsync", handle, [&](Stream& stream) {
    return allocate(result, size, defaultPool(stream.context().device().index()), stream);
  });
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* result, size_t size, CUmemoryPool pool, CUstream handle) {
  return callOnStream("cuMemAllocFromPoolAsync", handle,
                      [&](Stream& stream) { return allocate(result, size, machine().pools.find(pool), stream); });
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream handle) {
  return callOnStream("cuMemFreeAsync", handle, [&](Stream& stream) -> CUresult {
    if (pointer == 0) return CUDA_SUCCESS;
    const auto allocation = machine().memory.find(addressOf(pointer));
    if (allocation == nullptr || allocation->base != addressOf(pointer) || allocation->kind != MemoryKind::Device) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return stream.submit(FreeOperation{allocation->base});
  });
}

}  // extern "C"
