// Stream-ordered allocation. Pools keep nothing: memory comes from the device and returns to it, and they count it.
#include <optional>

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

/// Which cuMemAllocAsync takes from.
std::shared_ptr<Pool> currentPool(int device) {
  auto set = machine().devices[static_cast<std::size_t>(device)]->currentPool();
  return set != nullptr ? set : defaultPool(device);
}

/// Null for attributes that are no switches.
int* switchOf(Pool& pool, CUmemPool_attribute attribute) {
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      return &pool.reuses[0];
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      return &pool.reuses[1];
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      return &pool.reuses[2];
    default:
      return nullptr;
  }
}

/// Unset for attributes that there are not.
std::optional<std::uint64_t> figureOf(const Pool& pool, CUmemPool_attribute attribute) {
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      return pool.releaseThreshold;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      return pool.used.now();
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return pool.used.most();
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      return pool.reserved.now();
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      return pool.reserved.most();
    default:
      return std::nullopt;
  }
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
  allocation->pool = pool;
  pool->used.add(allocation->size);
  pool->reserved.add(allocation->size);
  *result = allocation->base;
  return CUDA_SUCCESS;
}

bool ofGraphs(CUgraphMem_attribute attribute) {
  return attribute == CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT || attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH ||
         attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT || attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
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
  return call("cuDeviceGetMemPool", [&]() -> CUresult {
    if (deviceOf(ordinal) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *result = reinterpret_cast<CUmemoryPool>(currentPool(ordinal).get());
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool* result, CUmemLocation* location, CUmemAllocationType type) {
  if (location == nullptr || location->type != CU_MEM_LOCATION_TYPE_DEVICE || type != CU_MEM_ALLOCATION_TYPE_PINNED) {
    return location == nullptr ? CUDA_ERROR_INVALID_VALUE : unsupported("cuMemGetDefaultMemPool of what is no device");
  }
  return cuDeviceGetDefaultMemPool(result, location->id);
}

CUresult cuMemGetMemPool(CUmemoryPool* result, CUmemLocation* location, CUmemAllocationType type) {
  const CUresult known = cuMemGetDefaultMemPool(result, location, type);
  return known == CUDA_SUCCESS ? cuDeviceGetMemPool(result, location->id) : known;
}

CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  CUmemoryPool known = nullptr;
  const CUresult result = cuMemGetDefaultMemPool(&known, location, type);
  return result == CUDA_SUCCESS ? cuDeviceSetMemPool(location->id, pool) : result;
}

CUresult cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool handle) {
  return call("cuDeviceSetMemPool", [&]() -> CUresult {
    Device* const device = deviceOf(ordinal);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const auto pool = machine().pools.find(handle);
    if (pool == nullptr || pool->device != device->index()) return CUDA_ERROR_INVALID_VALUE;
    device->setCurrentPool(pool);
    return CUDA_SUCCESS;
  });
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
    // Where it was the current one the default takes its place; what came from it stays until it is freed.
    machine().devices[static_cast<std::size_t>(pool.device)]->forgetPool(pool);
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
    if (int* const reuse = switchOf(pool, attribute); reuse != nullptr) {
      *reuse = *static_cast<int*>(value) != 0 ? 1 : 0;
      return CUDA_SUCCESS;
    }
    const std::uint64_t number = *static_cast<cuuint64_t*>(value);
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
      pool.releaseThreshold = number;
      return CUDA_SUCCESS;
    }
    // Of the figures only the highest can be set, and only to begin anew.
    if (number != 0) return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) return pool.used.beginAnew(), CUDA_SUCCESS;
    if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) return pool.reserved.beginAnew(), CUDA_SUCCESS;
    return CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  return withPool("cuMemPoolGetAttribute", handle, [&](Pool& pool) -> CUresult {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard<std::mutex> guard(machine().lock);
    if (const int* const reuse = switchOf(pool, attribute); reuse != nullptr) {
      *static_cast<int*>(value) = *reuse;
      return CUDA_SUCCESS;
    }
    const std::optional<std::uint64_t> figure = figureOf(pool, attribute);
    if (!figure) return CUDA_ERROR_INVALID_VALUE;
    *static_cast<cuuint64_t*>(value) = *figure;
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
    return allocate(result, size, currentPool(stream.context().device().index()), stream);
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

// Graphs of the software GPU allocate nothing, so these figures are zero for ever.

CUresult cuDeviceGetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute, void* value) {
  return call("cuDeviceGetGraphMemAttribute", [&]() -> CUresult {
    if (deviceOf(ordinal) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (value == nullptr || !ofGraphs(attribute)) return CUDA_ERROR_INVALID_VALUE;
    *static_cast<cuuint64_t*>(value) = 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute, void* value) {
  return call("cuDeviceSetGraphMemAttribute", [&]() -> CUresult {
    if (deviceOf(ordinal) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const bool high = attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
    if (value == nullptr || !high || *static_cast<cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGraphMemTrim(CUdevice ordinal) {
  return call("cuDeviceGraphMemTrim",
              [&]() -> CUresult { return deviceOf(ordinal) == nullptr ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS; });
}

}  // extern "C"
