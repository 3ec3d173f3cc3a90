// Memory and events shared with other processes: the opener reaches the memfd through /proc/PID/fd.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "softgpu/api/entry.h"

using namespace tutti::softgpu;

namespace {

/// What is inside a CUipcMemHandle or CUipcEventHandle.
struct IpcHandle {
  char magic[8];
  std::int32_t pid;
  std::int32_t fd;
  std::uint64_t inode;  ///< a descriptor number alone could mean another file by now
  std::uint64_t mapBytes;
  std::uint64_t offset;
  std::uint64_t size;
  std::int32_t physicalDevice;
  std::uint32_t eventFlags;
};
static_assert(sizeof(IpcHandle) <= CU_IPC_HANDLE_SIZE);

constexpr char kMagic[8] = {'s', 'o', 'f', 't', 'g', 'p', 'u', '1'};

IpcHandle describe(const Backing& backing) {
  struct stat status = {};
  ::fstat(backing.fd(), &status);
  IpcHandle handle = {};
  std::memcpy(handle.magic, kMagic, sizeof(kMagic));
  handle.pid = ::getpid();
  handle.fd = backing.fd();
  handle.inode = status.st_ino;
  handle.mapBytes = backing.size();
  return handle;
}

template <class Handle>
CUresult unpack(const Handle& packed, IpcHandle* handle) {
  std::memcpy(handle, packed.reserved, sizeof(*handle));
  if (std::memcmp(handle->magic, kMagic, sizeof(kMagic)) != 0) return CUDA_ERROR_INVALID_VALUE;
  return handle->pid == ::getpid() ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

std::shared_ptr<Backing> open(const IpcHandle& handle) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/fd/%d", handle.pid, handle.fd);
  Fd fd(::open(path, O_RDWR | O_CLOEXEC));
  struct stat status = {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) {
    std::fprintf(stderr, "softgpu: memory of process %d cannot be opened: %s: %s (is it gone, or another user's?)\n",
                 handle.pid, path, std::strerror(errno));
    return nullptr;
  }
  if (status.st_ino != handle.inode) {
    std::fprintf(stderr, "softgpu: memory of process %d was freed before it was opened\n", handle.pid);
    return nullptr;
  }
  return Backing::adopt(std::move(fd), handle.mapBytes);
}

int indexOf(int physical, Context& context) {
  for (const auto& device : machine().devices) {
    if (device->facts().physical == physical) return device->index();
  }
  return context.device().index();
}

}  // namespace

extern "C" {

CUresult cuIpcGetMemHandle(CUipcMemHandle* result, CUdeviceptr pointer) {
  return callInContext("cuIpcGetMemHandle", [&](Context&) -> CUresult {
    const auto allocation = machine().memory.find(addressOf(pointer));
    if (result == nullptr || allocation == nullptr || allocation->kind != MemoryKind::Device || allocation->pooled) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    IpcHandle handle = describe(*allocation->backing);
    handle.offset = allocation->offset;
    handle.size = allocation->size;
    handle.physicalDevice = machine().devices[static_cast<std::size_t>(allocation->device)]->facts().physical;
    std::memset(result, 0, sizeof(*result));
    std::memcpy(result->reserved, &handle, sizeof(handle));
    return CUDA_SUCCESS;
  });
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* pointer, CUipcMemHandle packed, unsigned int) {
  return callInContext("cuIpcOpenMemHandle", [&](Context& context) -> CUresult {
    if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    IpcHandle handle;
    if (const CUresult error = unpack(packed, &handle); error != CUDA_SUCCESS) return error;
    auto allocation = std::make_shared<Allocation>();
    allocation->backing = open(handle);
    if (allocation->backing == nullptr) return CUDA_ERROR_MAP_FAILED;
    allocation->base = reinterpret_cast<std::uintptr_t>(allocation->backing->base()) + handle.offset;
    allocation->size = handle.size;
    allocation->offset = handle.offset;
    allocation->kind = MemoryKind::Imported;
    allocation->device = indexOf(handle.physicalDevice, context);
    allocation->context = &context;
    allocation->id = machine().memory.nextId();
    *pointer = allocation->base;
    machine().memory.insert(std::move(allocation));
    return CUDA_SUCCESS;
  });
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
  return callInContext("cuIpcCloseMemHandle", [&](Context&) -> CUresult {
    const auto allocation = machine().memory.find(addressOf(pointer));
    if (allocation == nullptr || allocation->base != addressOf(pointer) || allocation->kind != MemoryKind::Imported) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const CUresult result = allocation->context->synchronize();
    machine().memory.take(allocation->base);
    return result;
  });
}

CUresult cuIpcGetEventHandle(CUipcEventHandle* result, CUevent event) {
  return call("cuIpcGetEventHandle", [&]() -> CUresult {
    const auto found = machine().events.find(event);
    if (found == nullptr || found->shared() == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    IpcHandle handle = describe(*found->sharedPage);
    handle.eventFlags = found->flags();
    std::memset(result, 0, sizeof(*result));
    std::memcpy(result->reserved, &handle, sizeof(handle));
    return CUDA_SUCCESS;
  });
}

CUresult cuIpcOpenEventHandle(CUevent* result, CUipcEventHandle packed) {
  return callInContext("cuIpcOpenEventHandle", [&](Context& context) -> CUresult {
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    IpcHandle handle;
    if (const CUresult error = unpack(packed, &handle); error != CUDA_SUCCESS) return error;
    auto event = std::make_shared<Event>(context, handle.eventFlags);
    event->sharedPage = open(handle);
    if (event->sharedPage == nullptr) return CUDA_ERROR_MAP_FAILED;
    *result = reinterpret_cast<CUevent>(machine().events.add(std::move(event)));
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
