// Virtual memory management: physical memory, addresses, and the mapping between them.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softgpu/driver/entry.h"

using namespace tutti::softgpu;

namespace {

constexpr std::size_t kGranularity = std::size_t{2} << 20;

CUmemGenericAllocationHandle handleOf(const Physical* physical) {
  return reinterpret_cast<CUmemGenericAllocationHandle>(physical);
}

std::shared_ptr<Physical> physicalOf(CUmemGenericAllocationHandle handle) {
  return machine().physicals.find(reinterpret_cast<const void*>(handle));
}

bool wholePieces(std::uintptr_t address, std::size_t size) {
  return size != 0 && size % kGranularity == 0 && address % kGranularity == 0;
}

std::vector<std::shared_ptr<Allocation>> mappingsIn(std::uintptr_t base, std::size_t size) {
  std::vector<std::shared_ptr<Allocation>> found;
  for (const auto& allocation : machine().memory.all()) {
    if (allocation->kind == MemoryKind::Virtual && allocation->base >= base && allocation->base < base + size) {
      found.push_back(allocation);
    }
  }
  return found;
}

/// The file of an allocation, if its first byte is the one at `address`; -1: there is none such.
int fileFrom(const Allocation& allocation, std::uintptr_t address) {
  if (allocation.offset != 0 || address != allocation.base) return -1;
  if (allocation.physical != nullptr) return allocation.physical->fd.get();
  return allocation.backing == nullptr ? -1 : allocation.backing->fd();
}

}  // namespace

tutti::softgpu::Physical::~Physical() {
  if (chargedDevice >= 0) machine().devices[static_cast<std::size_t>(chargedDevice)]->discharge(size);
}

extern "C" {

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  return call("cuMemGetAllocationGranularity", [&]() -> CUresult {
    if (granularity == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *granularity = kGranularity;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* result, size_t size, const CUmemAllocationProp* p,
                     unsigned long long) {
  return call("cuMemCreate", [&]() -> CUresult {
    if (result == nullptr || p == nullptr || !wholePieces(0, size)) return CUDA_ERROR_INVALID_VALUE;
    if ((p->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC) != 0) return CUDA_ERROR_NOT_SUPPORTED;
    auto physical = std::make_shared<Physical>();
    int owner = -1;
    if (p->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
      Device* device = deviceOf(p->location.id);
      if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
      if (!device->charge(size)) return CUDA_ERROR_OUT_OF_MEMORY;
      physical->chargedDevice = device->index();
      owner = device->facts().physical;
    }
    physical->size = size;
    physical->properties = *p;
    physical->fd = createMemfd(size, owner);
    if (!physical->fd.valid()) return CUDA_ERROR_OUT_OF_MEMORY;
    *result = handleOf(machine().physicals.add(std::move(physical)));
    return CUDA_SUCCESS;
  });
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return call("cuMemRelease", [&]() -> CUresult {
    const auto physical = physicalOf(handle);
    if (physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard<std::mutex> guard(machine().lock);
    if (--physical->references == 0) machine().physicals.take(physical.get());
    return CUDA_SUCCESS;
  });
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* result, void* address) {
  return call("cuMemRetainAllocationHandle", [&]() -> CUresult {
    const auto allocation = machine().memory.find(reinterpret_cast<std::uintptr_t>(address));
    if (result == nullptr || allocation == nullptr || allocation->physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard<std::mutex> guard(machine().lock);
    if (allocation->physical->references++ == 0) machine().physicals.add(allocation->physical);
    *result = handleOf(allocation->physical.get());
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* result, CUmemGenericAllocationHandle handle) {
  return call("cuMemGetAllocationPropertiesFromHandle", [&]() -> CUresult {
    const auto physical = physicalOf(handle);
    if (result == nullptr || physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *result = physical->properties;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemExportToShareableHandle(void* result, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                                      unsigned long long) {
  return call("cuMemExportToShareableHandle", [&]() -> CUresult {
    const auto physical = physicalOf(handle);
    if (result == nullptr || physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    const int fd = ::fcntl(physical->fd.get(), F_DUPFD_CLOEXEC, 0);
    if (fd < 0) return CUDA_ERROR_OUT_OF_MEMORY;
    *static_cast<int*>(result) = fd;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* result, void* osHandle,
                                        CUmemAllocationHandleType type) {
  return call("cuMemImportFromShareableHandle", [&]() -> CUresult {
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    const int given = static_cast<int>(reinterpret_cast<std::intptr_t>(osHandle));
    struct stat status = {};
    if (::fstat(given, &status) != 0 || status.st_size == 0) return CUDA_ERROR_INVALID_VALUE;
    auto physical = std::make_shared<Physical>();
    physical->fd = Fd(::fcntl(given, F_DUPFD_CLOEXEC, 0));
    if (!physical->fd.valid()) return CUDA_ERROR_OUT_OF_MEMORY;
    physical->size = static_cast<std::size_t>(status.st_size);
    physical->properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    physical->properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    physical->properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    const int owner = deviceOfMemfd(given);
    for (const auto& device : machine().devices) {
      if (device->facts().physical == owner) physical->properties.location.id = device->index();
    }
    *result = handleOf(machine().physicals.add(std::move(physical)));
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAddressReserve(CUdeviceptr* result, size_t size, size_t alignment, CUdeviceptr, unsigned long long) {
  return call("cuMemAddressReserve", [&]() -> CUresult {
    if (result == nullptr || !wholePieces(0, size) || (alignment & (alignment - 1)) != 0)
      return CUDA_ERROR_INVALID_VALUE;
    const std::size_t unit = alignment > kGranularity ? alignment : kGranularity;
    void* raw = ::mmap(nullptr, size + unit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (raw == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    const auto begin = reinterpret_cast<std::uintptr_t>(raw);
    const std::uintptr_t base = (begin + unit - 1) / unit * unit;
    if (base > begin) ::munmap(raw, base - begin);
    if (begin + unit > base) ::munmap(reinterpret_cast<void*>(base + size), begin + unit - base);
    *result = base;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAddressFree(CUdeviceptr pointer, size_t size) {
  return call("cuMemAddressFree", [&]() -> CUresult {
    if (!wholePieces(addressOf(pointer), size)) return CUDA_ERROR_INVALID_VALUE;
    if (!mappingsIn(addressOf(pointer), size).empty()) return CUDA_ERROR_INVALID_VALUE;
    return ::munmap(bytesOf(pointer), size) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuMemMap(CUdeviceptr pointer, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long) {
  return call("cuMemMap", [&]() -> CUresult {
    const auto physical = physicalOf(handle);
    if (physical == nullptr || !wholePieces(addressOf(pointer), size)) return CUDA_ERROR_INVALID_VALUE;
    if (offset > physical->size || size > physical->size - offset) return CUDA_ERROR_INVALID_VALUE;
    auto allocation = std::make_shared<Allocation>();
    allocation->base = addressOf(pointer);
    allocation->size = size;
    allocation->kind = MemoryKind::Virtual;
    const bool onDevice = physical->properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    allocation->device = onDevice ? physical->properties.location.id : 0;
    allocation->context = &machine().devices[static_cast<std::size_t>(allocation->device)]->primary();
    allocation->id = machine().memory.nextId();
    allocation->offset = offset;
    allocation->physical = physical;
    if (!machine().memory.insert(allocation)) return CUDA_ERROR_INVALID_VALUE;
    // No access before cuMemSetAccess, as on a GPU.
    void* mapped = ::mmap(bytesOf(pointer), size, PROT_NONE, MAP_SHARED | MAP_FIXED, physical->fd.get(),
                          static_cast<off_t>(offset));
    if (mapped != MAP_FAILED) return CUDA_SUCCESS;
    machine().memory.take(addressOf(pointer));
    return CUDA_ERROR_MAP_FAILED;
  });
}

CUresult cuMemUnmap(CUdeviceptr pointer, size_t size) {
  return call("cuMemUnmap", [&]() -> CUresult {
    const auto mappings = mappingsIn(addressOf(pointer), size);
    if (mappings.empty()) return CUDA_ERROR_INVALID_VALUE;
    for (const auto& mapping : mappings) {
      // Its addresses stay reserved.
      const void* reserved = ::mmap(bytesOf(mapping->base), mapping->size, PROT_NONE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
      if (reserved == MAP_FAILED) return CUDA_ERROR_UNMAP_FAILED;
      machine().memory.take(mapping->base);
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuMemSetAccess(CUdeviceptr pointer, size_t size, const CUmemAccessDesc* list, size_t count) {
  return call("cuMemSetAccess", [&]() -> CUresult {
    if (list == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    if (mappingsIn(addressOf(pointer), size).empty()) return CUDA_ERROR_INVALID_VALUE;
    int protection = PROT_NONE;
    for (std::size_t i = 0; i < count; ++i) {
      if (list[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE) protection |= PROT_READ | PROT_WRITE;
      if (list[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ) protection |= PROT_READ;
    }
    return ::mprotect(bytesOf(pointer), size, protection) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr pointer) {
  return call("cuMemGetAccess", [&]() -> CUresult {
    const auto allocation = machine().memory.find(addressOf(pointer));
    if (flags == nullptr || location == nullptr || allocation == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
  });
}

/// A file that stands for a dma-buf: its first byte is the first of the range, and whoever maps it sees the memory.
CUresult cuMemGetHandleForAddressRange(void* handle, CUdeviceptr pointer, size_t size, CUmemRangeHandleType type,
                                       unsigned long long flags) {
  return call("cuMemGetHandleForAddressRange", [&]() -> CUresult {
    constexpr std::uintptr_t kPage = 4096;
    if (handle == nullptr || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    const std::uintptr_t begin = addressOf(pointer);
    const auto allocation = machine().memory.find(begin);
    const bool ofDevice = allocation != nullptr && allocation->device >= 0 &&
                          (allocation->kind == MemoryKind::Device || allocation->kind == MemoryKind::Virtual);
    if (!ofDevice || size == 0 || begin % kPage != 0 || size % kPage != 0 ||
        begin + size > allocation->base + (allocation->size + kPage - 1) / kPage * kPage) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const Device& device = *machine().devices[static_cast<std::size_t>(allocation->device)];
    if (device.nicReach() != NicReach::DmaBufs) return unsupported("cuMemGetHandleForAddressRange");
    const int file = fileFrom(*allocation, begin);
    if (file < 0) return CUDA_ERROR_NOT_SUPPORTED;
    const int copy = ::fcntl(file, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    *static_cast<int*>(handle) = copy;
    return CUDA_SUCCESS;
  });
}

CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget, CUflushGPUDirectRDMAWritesScope) {
  return call("cuFlushGPUDirectRDMAWrites", []() { return CUDA_SUCCESS; });
}

}  // extern "C"
