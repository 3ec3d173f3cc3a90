// Device memory and pinned host memory with owners, and copies that never wait for the application's streams.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "base/handle.h"
#include "base/status.h"
#include "gpu/context.h"

namespace tutti::gpu {

class MemoryLedger;
struct MemoryUse;

namespace detail {
struct DeviceMemoryTraits : DeviceTraits<CUdeviceptr> {
  static void close(Type held);
};
struct PinnedMemoryTraits : DeviceTraits<void*> {
  static void close(Type held);
};
struct RegisteredMemoryTraits : PinnedMemoryTraits {
  static void close(Type held);
};
}  // namespace detail

/// Owns zeroed device memory (cuMemAlloc, so that cuIpcGetMemHandle can share it). The device must outlive it.
class DeviceBuffer {
 public:
  /// `bytes` > 0. `use` (gpu/memory_ledger.h) names the purpose in errors, and the ledger that counts it.
  static Result<DeviceBuffer> create(const Device& device, std::size_t bytes, const MemoryUse& use);
  const Device& device() const { return *handle_.get().device; }
  CUdeviceptr address() const { return handle_.get().raw; }
  /// The same as a pointer, for views handed to kernels. The host must not dereference it.
  std::byte* data() const { return reinterpret_cast<std::byte*>(address()); }
  std::size_t size() const { return size_; }

 private:
  DeviceBuffer(detail::DeviceMemoryTraits::Type raw, std::size_t bytes, const MemoryUse& use);
  std::shared_ptr<const void> entry_;  ///< in a ledger; null: in none. Goes after the memory
  Handle<detail::DeviceMemoryTraits> handle_;
  std::size_t size_ = 0;
};

/// Owns zeroed, page-locked host memory that every device of the process can read and write.
class PinnedBuffer {
 public:
  static Result<PinnedBuffer> create(const Device& device, std::size_t bytes, std::string_view about);
  std::byte* host() const { return static_cast<std::byte*>(handle_.get().raw); }
  /// The same memory as kernels address it.
  std::byte* onDevice() const { return onDevice_; }
  std::size_t size() const { return size_; }

 private:
  PinnedBuffer(Handle<detail::PinnedMemoryTraits> handle, std::byte* onDevice, std::size_t bytes)
      : handle_(std::move(handle)), onDevice_(onDevice), size_(bytes) {}
  Handle<detail::PinnedMemoryTraits> handle_;
  std::byte* onDevice_ = nullptr;
  std::size_t size_ = 0;
};

/// Owns the page-locking of host memory that somebody else owns and keeps mapped meanwhile: every device of the process
/// can read and write it. The device must outlive it.
class RegisteredMemory {
 public:
  /// `memory` in whole pages. `about` names the purpose in errors.
  static Result<RegisteredMemory> create(const Device& device, std::span<std::byte> memory, std::string_view about);
  /// The memory as kernels of the device address it.
  std::byte* onDevice() const { return onDevice_; }

 private:
  RegisteredMemory(Handle<detail::RegisteredMemoryTraits> handle, std::byte* onDevice)
      : handle_(std::move(handle)), onDevice_(onDevice) {}
  Handle<detail::RegisteredMemoryTraits> handle_;
  std::byte* onDevice_ = nullptr;
};

/// Page-locked host memory of this process, whichever device it was locked for, as kernels of `device` address it.
Result<std::byte*> addressOnDevice(const Device& device, void* host);

/// These return when the copy is done. They run on the device's own stream, so they neither wait for the
/// application's work nor disturb a capture. Any thread; bounded by kDeviceWaitBound.
Status copyToDevice(const Device& device, CUdeviceptr to, std::span<const std::byte> from);
Status copyToHost(const Device& device, std::span<std::byte> to, CUdeviceptr from);
Status zeroDevice(const Device& device, CUdeviceptr address, std::size_t bytes);

/// Eight bytes of device memory.
struct DeviceWord {
  CUdeviceptr address = 0;
  std::uint64_t value = 0;
};
/// Writes all words, and waits once. Otherwise like copyToDevice().
Status writeWords(const Device& device, std::span<const DeviceWord> words);
/// Fills in the values of all words and makes them zero on the device; waits once.
Status takeWords(const Device& device, std::span<DeviceWord> words);

}  // namespace tutti::gpu
