// Memory and events shared with other processes: the opener reaches the memfd through /proc/PID/fd.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "softgpu/driver/entry.h"
#include "softgpu/memory_window.h"
#include "softgpu/say.h"

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
  std::uint32_t detail;  ///< memory: its mark in a window (Window::marked), 0 for none; events: their flags
  std::uint64_t id;      ///< what is marked; 0: a window
};
static_assert(sizeof(IpcHandle) <= CU_IPC_HANDLE_SIZE);

constexpr char kMagic[8] = {'s', 'o', 'f', 't', 'g', 'p', 'u', '2'};

/// CUDA_ERROR_OPERATING_SYSTEM where other processes cannot reach it.
CUresult describe(const Backing& backing, IpcHandle* handle) {
  const int fd = backing.fd();
  if (fd < 0) {
    say("the program has closed the descriptor of its device memory: no other process can map that memory");
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  *handle = {};
  std::memcpy(handle->magic, kMagic, sizeof(kMagic));
  handle->pid = ::getpid();
  handle->fd = fd;
  handle->inode = backing.inode();
  handle->mapBytes = backing.size();
  return CUDA_SUCCESS;
}

template <class Handle>
CUresult unpack(const Handle& packed, IpcHandle* handle) {
  std::memcpy(handle, packed.reserved, sizeof(*handle));
  if (std::memcmp(handle->magic, kMagic, sizeof(kMagic)) != 0) return CUDA_ERROR_INVALID_VALUE;
  return handle->pid == ::getpid() ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

std::shared_ptr<Backing> refuseFreed(const IpcHandle& handle) {
  say("memory of process %d was freed before it was opened", handle.pid);
  return nullptr;
}

std::shared_ptr<Backing> open(const IpcHandle& handle) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/fd/%d", handle.pid, handle.fd);
  Fd fd(::open(path, O_RDWR | O_CLOEXEC));
  struct stat status = {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) {
    say("memory of process %d cannot be opened: %s: %s (is it gone, or another user's?)", handle.pid, path,
        std::strerror(errno));
    return nullptr;
  }
  if (status.st_ino != handle.inode) return refuseFreed(handle);
  return machine().imports.map(std::move(fd), handle.inode, handle.mapBytes);
}

int indexOf(int physical, Context& context) {
  for (const auto& device : machine().devices) {
    if (device->facts().physical == physical) return device->index();
  }
  return context.device().index();
}

template <class Handle>
void pack(const IpcHandle& handle, Handle* result) {
  std::memset(result, 0, sizeof(*result));
  std::memcpy(result->reserved, &handle, sizeof(handle));
}

std::shared_ptr<Backing> openMemory(const IpcHandle& handle) {
  std::shared_ptr<Backing> backing = open(handle);
  if (backing == nullptr || handle.detail == 0 || Window::marked(*backing, handle.detail, handle.id)) return backing;
  return refuseFreed(handle);
}

}  // namespace

extern "C" {

CUresult cuIpcGetMemHandle(CUipcMemHandle* result, CUdeviceptr pointer) {
  return callInContext("cuIpcGetMemHandle", [&](Context&) -> CUresult {
    const auto allocation = machine().memory.find(addressOf(pointer));
    if (result == nullptr || allocation == nullptr || allocation->kind != MemoryKind::Device ||
        allocation->pool != nullptr) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    IpcHandle handle;
    if (const CUresult error = describe(*allocation->backing, &handle); error != CUDA_SUCCESS) return error;
    handle.offset = allocation->offset;
    handle.size = allocation->size;
    Device& device = *machine().devices[static_cast<std::size_t>(allocation->device)];
    handle.physicalDevice = device.facts().physical;
    if (allocation->backing == device.window().backing()) handle.detail = device.window().exportRange(*allocation);
    handle.id = allocation->id;
    pack(handle, result);
    return CUDA_SUCCESS;
  });
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* pointer, CUipcMemHandle packed, unsigned int) {
  return callInContext("cuIpcOpenMemHandle", [&](Context& context) -> CUresult {
    if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    IpcHandle handle;
    if (const CUresult error = unpack(packed, &handle); error != CUDA_SUCCESS) return error;
    auto allocation = std::make_shared<Allocation>();
    allocation->backing = openMemory(handle);
    if (allocation->backing == nullptr) return CUDA_ERROR_MAP_FAILED;
    allocation->base = reinterpret_cast<std::uintptr_t>(allocation->backing->base()) + handle.offset;
    allocation->size = handle.size;
    allocation->offset = handle.offset;
    allocation->kind = MemoryKind::Imported;
    allocation->device = indexOf(handle.physicalDevice, context);
    allocation->context = &context;
    allocation->id = machine().memory.nextId();
    *pointer = allocation->base;
    machine().imports.open(allocation, handle.id == 0 ? nullptr : &machine().memory);  // 0: a whole window
    return CUDA_SUCCESS;
  });
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
  return callInContext("cuIpcCloseMemHandle", [&](Context&) -> CUresult {
    const auto allocation = machine().imports.find(addressOf(pointer));
    if (allocation == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = allocation->context->synchronize();
    machine().imports.close(allocation->base);
    return result;
  });
}

__attribute__((visibility("default"))) int softgpuMemoryWindow(int ordinal, void** base, std::size_t* bytes,
                                                               CUipcMemHandle* result) {
  return call("softgpuMemoryWindow", [&]() -> CUresult {
    Device* device = deviceOf(ordinal);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (base == nullptr || bytes == nullptr || result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::shared_ptr<Backing> window = device->window().backing();
    if (window == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    *base = window->base();
    *bytes = window->size();
    IpcHandle handle;
    if (const CUresult error = describe(*window, &handle); error != CUDA_SUCCESS) return error;
    handle.size = window->size();
    handle.physicalDevice = device->facts().physical;
    pack(handle, result);
    return CUDA_SUCCESS;
  });
}

CUresult cuIpcGetEventHandle(CUipcEventHandle* result, CUevent event) {
  return call("cuIpcGetEventHandle", [&]() -> CUresult {
    const auto found = machine().events.find(event);
    if (found == nullptr || found->shared() == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    IpcHandle handle;
    if (const CUresult error = describe(*found->sharedPage, &handle); error != CUDA_SUCCESS) return error;
    handle.detail = found->flags();
    pack(handle, result);
    return CUDA_SUCCESS;
  });
}

CUresult cuIpcOpenEventHandle(CUevent* result, CUipcEventHandle packed) {
  return callInContext("cuIpcOpenEventHandle", [&](Context& context) -> CUresult {
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    IpcHandle handle;
    if (const CUresult error = unpack(packed, &handle); error != CUDA_SUCCESS) return error;
    auto event = std::make_shared<Event>(context, handle.detail);
    event->sharedPage = open(handle);
    if (event->sharedPage == nullptr) return CUDA_ERROR_MAP_FAILED;
    *result = reinterpret_cast<CUevent>(machine().events.add(std::move(event)));
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
