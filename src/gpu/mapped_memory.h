// Device memory that consists of physical memory and a mapping (virtual memory management), so that it can be passed to
// other processes as a file descriptor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/fd.h"
#include "base/handle.h"
#include "base/status.h"
#include "gpu/context.h"

namespace tutti::gpu {

struct MemoryUse;

namespace detail {
struct PhysicalTraits : DeviceTraits<CUmemGenericAllocationHandle> {
  static void close(Type held);
};
struct AddressRange {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  friend bool operator==(const AddressRange&, const AddressRange&) = default;
};
struct ReservationTraits : DeviceTraits<AddressRange> {
  static void close(Type held);
};
struct MappingTraits : DeviceTraits<AddressRange> {
  static void close(Type held);
};
}  // namespace detail

/// Who may read and write it.
enum class MappedFor : std::uint8_t { OwnDevice, EveryDeviceThatReachesIt };

/// Owns physical memory of a device and a range of addresses where it is mapped. The devices' facts say whether there
/// is any (CudaDeviceFacts::vmm); the device must outlive it.
class MappedMemory {
 public:
  /// At least `bytes` > 0, rounded up to what the driver maps; not zeroed. `use`: as in DeviceBuffer. Errors:
  /// ncclUnhandledCudaError.
  static Result<MappedMemory> create(const Device& device, std::size_t bytes, const MemoryUse& use, MappedFor readers);
  /// Maps what descriptor() gave in another process, or in this one, for `device`. `bytes`: its size(). `about` names
  /// its owner in errors: "rank 3 on node7". Errors: ncclUnhandledCudaError.
  static Result<MappedMemory> adopt(const Device& device, const Fd& descriptor, std::size_t bytes,
                                    std::string_view about);

  MappedMemory(MappedMemory&&) = default;
  MappedMemory& operator=(MappedMemory&&) = delete;
  /// Unlike cuMemFree, unmapping waits for nothing: what this library's copies still write stays mapped, for ever where
  /// the device does not come to an end with them.
  ~MappedMemory();

  CUdeviceptr address() const { return mapping_.get().raw.address; }
  std::size_t size() const { return mapping_.get().raw.bytes; }
  /// For adopt(). The memory lives as long as somebody has it mapped, or has such a descriptor.
  Result<Fd> descriptor() const;
  /// Leaves the mapping, and with it the memory, to the caller.
  CUdeviceptr release();

 private:
  MappedMemory(const Device& device, Handle<detail::PhysicalTraits> physical)
      : device_(&device), physical_(std::move(physical)) {}
  Status map(std::size_t bytes, std::size_t grain, MappedFor readers);
  /// Whether nothing of ours is under way on the device, after waiting for it (kDeviceWaitBound).
  bool rests() const;

  const Device* device_;
  std::shared_ptr<const void> entry_;  ///< in a ledger; null: in none. Goes after the memory
  Handle<detail::PhysicalTraits> physical_;
  Handle<detail::ReservationTraits> reservation_;
  Handle<detail::MappingTraits> mapping_;
};

/// Frees what MappedMemory::release() left, by any address in it. Errors: ncclUnhandledCudaError for another pointer.
Status freeMapped(const Device& device, CUdeviceptr address);

}  // namespace tutti::gpu
