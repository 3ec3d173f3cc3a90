// A device and its primary context; which device the calling thread uses; switching to one and back.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/handle.h"
#include "base/status.h"
#include "gpu/driver.h"

namespace tutti::gpu {

/// How long the library waits for a piece of its own work on a device before it says that the device is stuck.
inline constexpr std::chrono::milliseconds kDeviceWaitBound{60'000};

/// Plain facts about a device.
struct CudaDeviceFacts {
  std::string name;
  int computeCapability = 0;  ///< major * 10 + minor
  std::string busIdText;      ///< "0000:1b:00.0", lower case
  std::int64_t busId = 0;     ///< the digits of busIdText, packed
  std::array<std::uint8_t, 16> uuid{};
  std::size_t memoryBytes = 0;
  int multiprocessors = 0;
  int nvmlIndex = -1;  ///< number that nvidia-smi gives it, -1: unknown; on the software GPU, its
                       ///< ordinal without CUDA_VISIBLE_DEVICES
  bool vmm = false;    ///< virtual memory management with POSIX file descriptors
};

/// Makes a context current and restores the caller's on destruction; meanwhile this thread may allocate and wait even
/// if it is in the middle of a stream capture. Lives on one thread's stack.
class ContextGuard {
 public:
  static Result<ContextGuard> enter(const Driver& driver, CUcontext context);
  ContextGuard(ContextGuard&& other) noexcept;
  ContextGuard& operator=(ContextGuard&&) = delete;
  ~ContextGuard();

 private:
  ContextGuard(const Driver& driver, CUstreamCaptureMode mode) : driver_(&driver), mode_(mode) {}
  const Driver* driver_;
  CUstreamCaptureMode mode_;  ///< the caller's, restored on destruction
};

/// One reference to the primary context of a device (the context the CUDA runtime uses), a stream for this library's
/// own copies, and the device's facts. Must outlive everything created on it. Thread-safe.
class Device {
 public:
  /// Errors: ncclInvalidArgument for an ordinal that does not exist, ncclUnhandledCudaError.
  static Result<std::unique_ptr<Device>> create(const Driver& driver, int ordinal);
  Device(const Device&) = delete;
  ~Device();

  const Driver& driver() const { return *driver_; }
  int ordinal() const { return ordinal_; }
  CUdevice handle() const { return handle_; }
  CUcontext context() const { return context_.get().context; }
  const CudaDeviceFacts& facts() const { return facts_; }
  /// A non-blocking stream for copies of the library's own: never waits for the application's streams.
  CUstream ownStream() const { return ownStream_; }
  /// Makes this device's context current for as long as the result lives.
  Result<ContextGuard> enter() const { return ContextGuard::enter(*driver_, context()); }
  /// checkCu with this device filled in.
  Status check(CUresult result, const char* call) const { return checkCu(*driver_, result, call, ordinal_); }

 private:
  struct RetainedContext {
    struct Type {
      const Driver* driver = nullptr;
      CUdevice device = 0;
      CUcontext context = nullptr;
      friend bool operator==(const Type&, const Type&) = default;
    };
    static Type invalid() { return {}; }
    static void close(Type held);
  };
  Device(const Driver& driver, int ordinal, CUdevice handle, CudaDeviceFacts facts)
      : driver_(&driver), ordinal_(ordinal), handle_(handle), facts_(std::move(facts)) {}

  const Driver* driver_;
  int ordinal_;
  CUdevice handle_;
  CudaDeviceFacts facts_;
  Handle<RetainedContext> context_;
  CUstream ownStream_ = nullptr;
};

namespace detail {
/// Traits of Handles to what a device gives out; nothing is held without a device. Who derives from it adds close().
template <class Raw>
struct DeviceTraits {
  struct Type {
    const Device* device = nullptr;
    Raw raw{};
    friend bool operator==(const Type&, const Type&) = default;
  };
  static Type invalid() { return {}; }

 protected:
  /// Calls the driver's `function` with what is held, in the device's context. A failure is logged and forgotten.
  template <class Function>
  static void giveBack(const Type& held, Function Driver::*function, const char* name) {
    const auto guard = held.device->enter();
    if (guard.ok()) held.device->check((held.device->driver().*function)(held.raw), name).ignore();
  }
};
}  // namespace detail

/// Number of devices this process sees.
Result<int> deviceCount(const Driver& driver);
/// The ordinal of the calling thread's current device: that of its current context, 0 when it has none.
Result<int> currentDevice(const Driver& driver);
/// Reads the facts of one device; needs no context.
Result<CudaDeviceFacts> readDeviceFacts(const Driver& driver, int ordinal);
/// "0000:1B:00.0" -> 0x1b000; characters that are no hexadecimal digit are skipped.
std::int64_t packBusId(const std::string& text);

/// The visible devices by their uuids, asked of the driver once. Any thread may use it.
class DeviceIndex {
 public:
  /// Errors: ncclUnhandledCudaError.
  static Result<DeviceIndex> read(const Driver& driver);
  /// The ordinal of the device with this uuid, -1 if this process sees none.
  int ordinalOf(const std::array<std::uint8_t, 16>& uuid) const;

 private:
  std::map<std::array<std::uint8_t, 16>, int> ordinals_;
};

}  // namespace tutti::gpu
