#include "gpu/memory.h"

#include <cstring>

#include "base/log.h"
#include "gpu/stream.h"

namespace tutti {

void detail::DeviceMemoryTraits::close(Type held) {
  const auto guard = held.device->enter();
  if (guard.ok()) held.device->check(held.device->driver().cuMemFree(held.address), "cuMemFree").ignore();
}

void detail::PinnedMemoryTraits::close(Type held) {
  const auto guard = held.device->enter();
  if (guard.ok()) held.device->check(held.device->driver().cuMemFreeHost(held.host), "cuMemFreeHost").ignore();
}

Result<DeviceBuffer> DeviceBuffer::create(const Device& device, std::size_t bytes, std::string_view about) {
  const Driver& driver = device.driver();
  ASSIGN(const ContextGuard guard, device.enter());
  CUdeviceptr address = 0;
  const CUresult result = driver.cuMemAlloc(&address, bytes);
  if (result != CUDA_SUCCESS) {
    return checkCu(driver, result, CuCall{"cuMemAlloc", device.ordinal(), bytes, std::string(about)});
  }
  DeviceBuffer buffer({&device, address}, bytes);
  TRY(zeroDevice(device, address, bytes));
  trace(kAlloc, "{} bytes on device {} at {:#x} for {}", bytes, device.ordinal(), address, about);
  return buffer;
}

Result<PinnedBuffer> PinnedBuffer::create(const Device& device, std::size_t bytes, std::string_view about) {
  const Driver& driver = device.driver();
  ASSIGN(const ContextGuard guard, device.enter());
  void* host = nullptr;
  const CUresult result =
      driver.cuMemHostAlloc(&host, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
  if (result != CUDA_SUCCESS) {
    return checkCu(driver, result, CuCall{"cuMemHostAlloc", device.ordinal(), bytes, std::string(about)});
  }
  Handle<detail::PinnedMemoryTraits> handle({&device, host});
  CUdeviceptr onDevice = 0;
  TRY(device.check(driver.cuMemHostGetDevicePointer(&onDevice, host, 0), "cuMemHostGetDevicePointer"));
  std::memset(host, 0, bytes);
  return PinnedBuffer(std::move(handle), reinterpret_cast<std::byte*>(onDevice), bytes);
}

Status copyToDevice(const Device& device, CUdeviceptr to, std::span<const std::byte> from) {
  if (from.empty()) return {};
  ASSIGN(const ContextGuard guard, device.enter());
  TRY(device.check(device.driver().cuMemcpyHtoDAsync(to, from.data(), from.size(), device.ownStream()),
                   "cuMemcpyHtoDAsync"));
  return waitStream(device, device.ownStream(), nullptr);
}

Status copyToHost(const Device& device, std::span<std::byte> to, CUdeviceptr from) {
  if (to.empty()) return {};
  ASSIGN(const ContextGuard guard, device.enter());
  TRY(device.check(device.driver().cuMemcpyDtoHAsync(to.data(), from, to.size(), device.ownStream()),
                   "cuMemcpyDtoHAsync"));
  return waitStream(device, device.ownStream(), nullptr);
}

Status zeroDevice(const Device& device, CUdeviceptr address, std::size_t bytes) {
  if (bytes == 0) return {};
  ASSIGN(const ContextGuard guard, device.enter());
  TRY(device.check(device.driver().cuMemsetD8Async(address, 0, bytes, device.ownStream()), "cuMemsetD8Async"));
  return waitStream(device, device.ownStream(), nullptr);
}

}  // namespace tutti
