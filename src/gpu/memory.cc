#include "gpu/memory.h"

#include <cstring>

#include "base/log.h"
#include "gpu/memory_ledger.h"
#include "gpu/stream.h"

namespace tutti::gpu {

namespace {

/// Waits for what is on the device's own stream. A thread that waits for the software GPU does the work itself, while
/// one that asks again and again waits for another thread to get a processor; and nothing there can get stuck.
Status waitForOwn(const Device& device) {
  if (!device.driver().softGpu) return waitStream(device, device.ownStream(), nullptr);
  return device.check(device.driver().cuStreamSynchronize(device.ownStream()), "cuStreamSynchronize");
}

}  // namespace

void detail::DeviceMemoryTraits::close(Type held) {
  giveBack(held, &Driver::cuMemFree, "cuMemFree");
}

void detail::PinnedMemoryTraits::close(Type held) {
  giveBack(held, &Driver::cuMemFreeHost, "cuMemFreeHost");
}

void detail::RegisteredMemoryTraits::close(Type held) {
  giveBack(held, &Driver::cuMemHostUnregister, "cuMemHostUnregister");
}

DeviceBuffer::DeviceBuffer(detail::DeviceMemoryTraits::Type raw, std::size_t bytes, const MemoryUse& use)
    : handle_(raw), size_(bytes) {
  if (use.ledger != nullptr) entry_ = std::make_shared<MemoryLedger::Entry>(use.ledger, use.kind, bytes);
}

Result<DeviceBuffer> DeviceBuffer::create(const Device& device, std::size_t bytes, const MemoryUse& use) {
  const Driver& driver = device.driver();
  ASSIGN(const ContextGuard guard, device.enter());
  CUdeviceptr address = 0;
  const CUresult result = driver.cuMemAlloc(&address, bytes);
  if (result != CUDA_SUCCESS) {
    return checkCu(driver, result, CuCall{"cuMemAlloc", device.ordinal(), bytes, std::string(use.about)});
  }
  DeviceBuffer buffer({&device, address}, bytes, use);
  TRY(zeroDevice(device, address, bytes));
  logTrace(kAlloc, "{} bytes on device {} at {:#x} for {}", bytes, device.ordinal(), address, use.about);
  return buffer;
}

Result<PinnedBuffer> PinnedBuffer::create(const Device& device, std::size_t bytes, std::string_view about) {
  const Driver& driver = device.driver();
  ASSIGN(const ContextGuard guard, device.enter());
  void* host = nullptr;
  const CUresult result = driver.cuMemHostAlloc(&host, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
  if (result != CUDA_SUCCESS) {
    return checkCu(driver, result, CuCall{"cuMemHostAlloc", device.ordinal(), bytes, std::string(about)});
  }
  Handle<detail::PinnedMemoryTraits> handle({&device, host});
  ASSIGN(std::byte* const onDevice, addressOnDevice(device, host));
  std::memset(host, 0, bytes);
  return PinnedBuffer(std::move(handle), onDevice, bytes);
}

Result<RegisteredMemory> RegisteredMemory::create(const Device& device, std::span<std::byte> memory,
                                                  std::string_view about) {
  const Driver& driver = device.driver();
  ASSIGN(const ContextGuard guard, device.enter());
  const CUresult result = driver.cuMemHostRegister(memory.data(), memory.size(),
                                                   CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
  if (result != CUDA_SUCCESS) {
    return checkCu(driver, result, CuCall{"cuMemHostRegister", device.ordinal(), memory.size(), std::string(about)});
  }
  Handle<detail::RegisteredMemoryTraits> handle({&device, memory.data()});
  ASSIGN(std::byte* const onDevice, addressOnDevice(device, memory.data()));
  return RegisteredMemory(std::move(handle), onDevice);
}

Result<std::byte*> addressOnDevice(const Device& device, void* host) {
  ASSIGN(const ContextGuard guard, device.enter());
  CUdeviceptr address = 0;
  TRY(device.check(device.driver().cuMemHostGetDevicePointer(&address, host, 0), "cuMemHostGetDevicePointer"));
  return reinterpret_cast<std::byte*>(address);
}

Status copyToDevice(const Device& device, CUdeviceptr to, std::span<const std::byte> from) {
  if (from.empty()) return {};
  ASSIGN(const ContextGuard guard, device.enter());
  TRY(device.check(device.driver().cuMemcpyHtoDAsync(to, from.data(), from.size(), device.ownStream()),
                   "cuMemcpyHtoDAsync"));
  return waitForOwn(device);
}

Status copyToHost(const Device& device, std::span<std::byte> to, CUdeviceptr from) {
  if (to.empty()) return {};
  ASSIGN(const ContextGuard guard, device.enter());
  TRY(device.check(device.driver().cuMemcpyDtoHAsync(to.data(), from, to.size(), device.ownStream()),
                   "cuMemcpyDtoHAsync"));
  return waitForOwn(device);
}

Status zeroDevice(const Device& device, CUdeviceptr address, std::size_t bytes) {
  if (bytes == 0) return {};
  ASSIGN(const ContextGuard guard, device.enter());
  TRY(device.check(device.driver().cuMemsetD8Async(address, 0, bytes, device.ownStream()), "cuMemsetD8Async"));
  return waitForOwn(device);
}

Status writeWords(const Device& device, std::span<const DeviceWord> words) {
  if (words.empty()) return {};
  ASSIGN(const ContextGuard guard, device.enter());
  Status begun;
  for (auto word = words.begin(); word != words.end() && begun.ok(); ++word) {
    begun = device.check(
        device.driver().cuMemcpyHtoDAsync(word->address, &word->value, sizeof(word->value), device.ownStream()),
        "cuMemcpyHtoDAsync");
  }
  // In any case: copies that have begun use the caller's memory.
  const Status done = waitForOwn(device);
  TRY(begun);
  return done;
}

Status takeWords(const Device& device, std::span<DeviceWord> words) {
  if (words.empty()) return {};
  ASSIGN(const ContextGuard guard, device.enter());
  const Driver& driver = device.driver();
  Status begun;
  for (auto word = words.begin(); word != words.end() && begun.ok(); ++word) {
    begun = device.check(driver.cuMemcpyDtoHAsync(&word->value, word->address, sizeof(word->value), device.ownStream()),
                         "cuMemcpyDtoHAsync");
    if (!begun.ok()) break;
    begun = device.check(driver.cuMemsetD8Async(word->address, 0, sizeof(word->value), device.ownStream()),
                         "cuMemsetD8Async");
  }
  const Status done = waitForOwn(device);
  TRY(begun);
  return done;
}

}  // namespace tutti::gpu
