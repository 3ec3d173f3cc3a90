// Device memory of another process of this host, mapped by its IPC handle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/handle.h"
#include "base/status.h"
#include "gpu/context.h"
#include "gpu/memory.h"

namespace tutti::gpu {

namespace detail {
struct IpcMemoryTraits : DeviceTraits<CUdeviceptr> {
  static void close(Type held);
};
}  // namespace detail

/// Owns the mapping of one exported allocation. The device must outlive it; the exporter must outlive the mapping's
/// use, which is the protocol's business.
class IpcMemory {
 public:
  /// The handle that another process opens. The buffer stays owned by this one.
  static Result<CUipcMemHandle> exportHandle(const DeviceBuffer& buffer);
  /// Maps memory exported by another process (never this one: CUDA refuses that) into `device`'s context. `about`
  /// names its owner in errors: "rank 3 on node7".
  static Result<IpcMemory> open(const Device& device, const CUipcMemHandle& handle, std::string_view about);
  /// The same for memory that one can do without. Unset where CUDA refuses, which is no error: `why` says how.
  static Result<std::optional<IpcMemory>> openIfAllowed(const Device& device, const CUipcMemHandle& handle,
                                                        std::string& why);

  CUdeviceptr address() const { return handle_.get().raw; }
  std::byte* data() const { return reinterpret_cast<std::byte*>(address()); }

 private:
  static Result<CUresult> map(const Device& device, const CUipcMemHandle& handle, CUdeviceptr& address);
  explicit IpcMemory(detail::IpcMemoryTraits::Type raw) : handle_(raw) {}
  Handle<detail::IpcMemoryTraits> handle_;
};

/// Where all memory lies that this process has of a device (virtual memory management apart), as long as it lives.
struct MemoryWindow {
  std::uint64_t base = 0;   ///< in this process
  std::uint64_t bytes = 0;  ///< 0: there is none
  CUipcMemHandle ipc{};     ///< IpcMemory::open maps all of it
};

/// The window of `device`; none on GPUs, and where the software GPU did not get so large a range.
Result<MemoryWindow> memoryWindow(const Device& device);

}  // namespace tutti::gpu
