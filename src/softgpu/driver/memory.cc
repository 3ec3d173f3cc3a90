// Device and host memory, and what is known about an address.
#include <sys/mman.h>

#include <cstring>

#include "softgpu/device/capture.h"
#include "softgpu/driver/entry.h"

using namespace tutti::softgpu;

namespace {

bool ownedByDevice(const Allocation& a) {
  return a.kind == MemoryKind::Device || a.kind == MemoryKind::Managed;
}

CUresult allocateFor(Context& context, CUdeviceptr* pointer, std::size_t size, MemoryKind kind) {
  if (pointer == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = refuseUnsafeCall(); error != CUDA_SUCCESS) return error;
  std::shared_ptr<Allocation> allocation;
  const CUresult result = context.device().allocate(context, size, kind, &allocation);
  if (result == CUDA_SUCCESS) *pointer = allocation->base;
  return result;
}

CUresult enterHostRange(Context& context, void* base, std::size_t size, MemoryKind kind, unsigned flags) {
  auto allocation = std::make_shared<Allocation>();
  allocation->base = reinterpret_cast<std::uintptr_t>(base);
  allocation->size = size;
  allocation->kind = kind;
  allocation->device = context.device().index();
  allocation->context = &context;
  allocation->id = machine().memory.nextId();
  allocation->flags = flags;
  return machine().memory.insert(std::move(allocation)) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

}  // namespace

extern "C" {

CUresult cuMemGetInfo_v2(size_t* freeBytes, size_t* total) {
  return callInContext("cuMemGetInfo", [&](Context& context) -> CUresult {
    const Device& device = context.device();
    const std::uint64_t used = device.usedBytes();
    if (freeBytes != nullptr) *freeBytes = used < device.memoryBytes() ? device.memoryBytes() - used : 0;
    if (total != nullptr) *total = device.memoryBytes();
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t size) {
  return callInContext("cuMemAlloc",
                       [&](Context& context) { return allocateFor(context, pointer, size, MemoryKind::Device); });
}

CUresult cuMemAllocManaged(CUdeviceptr* pointer, size_t size, unsigned int) {
  return callInContext("cuMemAllocManaged",
                       [&](Context& context) { return allocateFor(context, pointer, size, MemoryKind::Managed); });
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* pointer, size_t* pitch, size_t width, size_t height, unsigned int) {
  return callInContext("cuMemAllocPitch", [&](Context& context) -> CUresult {
    if (pitch == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (width > context.device().memoryBytes()) return CUDA_ERROR_OUT_OF_MEMORY;
    const std::size_t row = (width + 511) / 512 * 512;
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(row, height, &bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = allocateFor(context, pointer, bytes, MemoryKind::Device);
    if (result == CUDA_SUCCESS) *pitch = row;
    return result;
  });
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  return call("cuMemFree", [&]() -> CUresult {
    if (pointer == 0) return CUDA_SUCCESS;
    const auto allocation = machine().memory.find(addressOf(pointer));
    if (allocation == nullptr || allocation->base != addressOf(pointer) || !ownedByDevice(*allocation)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (const CUresult error = refuseUnsafeCall(); error != CUDA_SUCCESS) return error;
    const CUresult result = allocation->context->synchronize();
    if (machine().memory.take(allocation->base) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    machine().devices[static_cast<std::size_t>(allocation->device)]->release(*allocation);
    return result;
  });
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr pointer) {
  return call("cuMemGetAddressRange", [&]() -> CUresult {
    const auto allocation = machine().memory.find(addressOf(pointer));
    if (allocation == nullptr) return CUDA_ERROR_NOT_FOUND;
    if (base != nullptr) *base = allocation->base;
    if (size != nullptr) *size = allocation->size;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostAlloc(void** pointer, size_t size, unsigned int flags) {
  return callInContext("cuMemHostAlloc", [&](Context& context) -> CUresult {
    if (pointer == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
    void* base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = enterHostRange(context, base, size, MemoryKind::Host, flags);
    if (result == CUDA_SUCCESS) *pointer = base;
    return result;
  });
}

CUresult cuMemAllocHost_v2(void** pointer, size_t size) {
  return cuMemHostAlloc(pointer, size, 0);
}

CUresult cuMemFreeHost(void* pointer) {
  return call("cuMemFreeHost", [&]() -> CUresult {
    if (pointer == nullptr) return CUDA_SUCCESS;
    const auto base = reinterpret_cast<std::uintptr_t>(pointer);
    const auto allocation = machine().memory.find(base);
    if (allocation == nullptr || allocation->base != base || allocation->kind != MemoryKind::Host) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const CUresult result = allocation->context->synchronize();
    if (machine().memory.take(base) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    ::munmap(pointer, allocation->size);
    return result;
  });
}

CUresult cuMemHostRegister_v2(void* pointer, size_t size, unsigned int flags) {
  return callInContext("cuMemHostRegister", [&](Context& context) -> CUresult {
    if (pointer == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
    return enterHostRange(context, pointer, size, MemoryKind::Registered, flags);
  });
}

CUresult cuMemHostUnregister(void* pointer) {
  return call("cuMemHostUnregister", [&]() -> CUresult {
    const auto base = reinterpret_cast<std::uintptr_t>(pointer);
    const auto allocation = machine().memory.find(base);
    if (allocation == nullptr || allocation->base != base || allocation->kind != MemoryKind::Registered) {
      return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    }
    machine().memory.take(base);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* result, void* pointer, unsigned int) {
  return call("cuMemHostGetDevicePointer", [&]() -> CUresult {
    const auto allocation = machine().memory.find(reinterpret_cast<std::uintptr_t>(pointer));
    if (result == nullptr || allocation == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *result = reinterpret_cast<CUdeviceptr>(pointer);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostGetFlags(unsigned int* flags, void* pointer) {
  return call("cuMemHostGetFlags", [&]() -> CUresult {
    const auto allocation = machine().memory.find(reinterpret_cast<std::uintptr_t>(pointer));
    if (flags == nullptr || allocation == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (allocation->kind != MemoryKind::Host && allocation->kind != MemoryKind::Registered)
      return CUDA_ERROR_INVALID_VALUE;
    *flags = allocation->flags;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
