// Attributes of addresses.
#include <cstring>

#include "softgpu/driver/entry.h"

using namespace tutti::softgpu;

namespace {

bool isHost(const Allocation& a) {
  return a.kind == MemoryKind::Host || a.kind == MemoryKind::Registered;
}

template <class T>
CUresult give(void* data, T value) {
  std::memcpy(data, &value, sizeof(T));  // NOLINT(bugprone-sizeof-expression): where T is a pointer, that is given
  return CUDA_SUCCESS;
}

/// Outputs for one attribute; `allocation` may be null for an unknown address, which reads as zero.
CUresult answer(void* data, CUpointer_attribute attribute, CUdeviceptr pointer, const Allocation* a) {
  const bool known = a != nullptr;
  switch (static_cast<int>(attribute)) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return give<CUcontext>(data, known && a->context != nullptr ? a->context->handle() : nullptr);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return give<unsigned>(data, !known       ? 0u
                                  : isHost(*a) ? unsigned{CU_MEMORYTYPE_HOST}
                                               : unsigned{CU_MEMORYTYPE_DEVICE});
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return give<CUdeviceptr>(data, known ? pointer : 0);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER: {
      const bool visible = known && (isHost(*a) || a->kind == MemoryKind::Managed);
      return give<void*>(data, visible ? bytesOf(pointer) : nullptr);
    }
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return give<unsigned long long>(data, known ? a->id : 0);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return give<unsigned>(data, known && a->kind == MemoryKind::Managed);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return give<int>(data, known ? a->device : -2);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return give<unsigned>(data, known && a->kind == MemoryKind::Device && a->pool == nullptr);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return give<CUdeviceptr>(data, known ? a->base : 0);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return give<std::size_t>(data, known ? a->size : 0);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return give<unsigned>(data, known);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return give<unsigned>(
          data, known && a->kind == MemoryKind::Virtual ? unsigned{CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR} : 0u);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return give<unsigned>(data, 0);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: {
      return give<const void*>(data, known ? a->pool.get() : nullptr);
    }
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return give<unsigned>(data, known ? unsigned{CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE} : 0u);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return give<unsigned>(data, 0);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return give<CUdeviceptr>(data, known ? a->base : 0);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return give<std::size_t>(data, known ? a->size : 0);
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return give<unsigned long long>(data, known ? a->id : 0);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

extern "C" {

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  return call("cuPointerGetAttribute", [&]() -> CUresult {
    const auto allocation = machine().memory.find(addressOf(pointer));
    if (data == nullptr || allocation == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return answer(data, attribute, pointer, allocation.get());
  });
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data, CUdeviceptr pointer) {
  return call("cuPointerGetAttributes", [&]() -> CUresult {
    if (attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto allocation = machine().memory.find(addressOf(pointer));
    for (unsigned i = 0; i < count; ++i) {
      const CUresult result = answer(data[i], attributes[i], pointer, allocation.get());
      if (result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr pointer) {
  return call("cuPointerSetAttribute", [&]() -> CUresult {
    if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
    return machine().memory.find(addressOf(pointer)) == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  });
}

}  // extern "C"
