// Device memory as a dma-buf: a descriptor by which other drivers, those of NICs, reach it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/fd.h"
#include "base/status.h"
#include "gpu/context.h"

namespace tutti::gpu {

/// Whether the device's memory can be reached by NICs, as the driver says (GPUDirect RDMA).
bool reachedByNics(const Driver& driver, CUdevice device);

/// Whether the driver can give memory of the device away as dma-bufs.
bool exportsDmaBufs(const Driver& driver, CUdevice device);
/// The same of a device that is in use.
bool exportsDmaBufs(const Device& device);

/// Whole pages, for drivers give no parts of one away, while allocations share pages.
struct DmaBuf {
  Fd fd;
  std::uint64_t offset = 0;  ///< where the memory begins in it
};

/// A descriptor for the pages in which `bytes` from `memory` on lie. The memory must outlive its use. `about` names the
/// purpose in errors. Errors: ncclUnhandledCudaError.
Result<DmaBuf> dmaBufOf(const Device& device, void* memory, std::size_t bytes, std::string_view about);

}  // namespace tutti::gpu
