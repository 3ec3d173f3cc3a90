#include "gpu/ipc.h"

#include <string>

namespace tutti {

void detail::IpcMemoryTraits::close(Type held) {
  const auto guard = held.device->enter();
  if (!guard.ok()) return;
  held.device->check(held.device->driver().cuIpcCloseMemHandle(held.address), "cuIpcCloseMemHandle").ignore();
}

Result<CUipcMemHandle> IpcMemory::exportHandle(const DeviceBuffer& buffer) {
  const Device& device = buffer.device();
  ASSIGN(const ContextGuard guard, device.enter());
  CUipcMemHandle handle{};
  TRY(device.check(device.driver().cuIpcGetMemHandle(&handle, buffer.address()), "cuIpcGetMemHandle"));
  return handle;
}

Result<IpcMemory> IpcMemory::open(const Device& device, const CUipcMemHandle& handle, std::string_view about) {
  ASSIGN(const ContextGuard guard, device.enter());
  CUdeviceptr address = 0;
  const CUresult result =
      device.driver().cuIpcOpenMemHandle(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  if (result != CUDA_SUCCESS) {
    return checkCu(device.driver(), result,
                   CuCall{"cuIpcOpenMemHandle", device.ordinal(), 0, "memory of " + std::string(about)});
  }
  return IpcMemory({&device, address});
}

}  // namespace tutti
