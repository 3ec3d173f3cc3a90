// Whose memory an address belongs to, as the driver knows it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "gpu/context.h"

namespace tutti::gpu {

enum class MemoryKind : std::uint8_t {
  Unknown,  ///< the driver does not know the address
  Host,     ///< page-locked
  Device,
  Managed,  ///< moves between host and devices
};

/// The allocation that holds an address.
struct AddressRange {
  MemoryKind kind = MemoryKind::Unknown;
  int device = -1;       ///< ordinal of the owner
  CUdeviceptr base = 0;  ///< of device and managed memory
  std::size_t bytes = 0;
};

/// Any thread. Errors: the driver's; an address that it does not know is none.
Result<AddressRange> rangeOf(const Device& device, CUdeviceptr address);

/// Bytes from `address` on, at most `bytes`, in allocations of the same kind and device without a gap between them: the
/// virtual memory management may have put several side by side.
Result<std::size_t> coveredFrom(const Device& device, CUdeviceptr address, std::size_t bytes);

}  // namespace tutti::gpu
