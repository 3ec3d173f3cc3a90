#include "gpu/ipc.h"

#include <string>

namespace tutti::gpu {

void detail::IpcMemoryTraits::close(Type held) {
  giveBack(held, &Driver::cuIpcCloseMemHandle, "cuIpcCloseMemHandle");
}

Result<CUipcMemHandle> IpcMemory::exportHandle(const DeviceBuffer& buffer) {
  const Device& device = buffer.device();
  ASSIGN(const ContextGuard guard, device.enter());
  CUipcMemHandle handle{};
  TRY(device.check(device.driver().cuIpcGetMemHandle(&handle, buffer.address()), "cuIpcGetMemHandle"));
  return handle;
}

Result<CUresult> IpcMemory::map(const Device& device, const CUipcMemHandle& handle, CUdeviceptr& address) {
  ASSIGN(const ContextGuard guard, device.enter());
  return device.driver().cuIpcOpenMemHandle(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}

Result<std::optional<IpcMemory>> IpcMemory::openIfAllowed(const Device& device, const CUipcMemHandle& handle,
                                                          std::string& why) {
  CUdeviceptr address = 0;
  ASSIGN(const CUresult result, map(device, handle, address));
  if (result == CUDA_SUCCESS) return std::optional(IpcMemory({&device, address}));
  why = describeCu(device.driver(), result);
  return std::optional<IpcMemory>();
}

Result<IpcMemory> IpcMemory::open(const Device& device, const CUipcMemHandle& handle, std::string_view about) {
  CUdeviceptr address = 0;
  ASSIGN(const CUresult result, map(device, handle, address));
  if (result != CUDA_SUCCESS) {
    return checkCu(device.driver(), result,
                   CuCall{"cuIpcOpenMemHandle", device.ordinal(), 0, "memory of " + std::string(about)});
  }
  return IpcMemory({&device, address});
}

Result<MemoryWindow> memoryWindow(const Device& device) {
  const Driver& driver = device.driver();
  MemoryWindow window;
  if (driver.softgpuMemoryWindow == nullptr) return window;
  void* base = nullptr;
  std::size_t bytes = 0;
  const auto result = static_cast<CUresult>(driver.softgpuMemoryWindow(device.handle(), &base, &bytes, &window.ipc));
  if (result == CUDA_ERROR_NOT_SUPPORTED) return MemoryWindow{};
  TRY(device.check(result, "softgpuMemoryWindow"));
  window.base = reinterpret_cast<std::uintptr_t>(base);
  window.bytes = bytes;
  return window;
}

}  // namespace tutti::gpu
