// ncclMemAlloc and ncclMemFree: memory for the application that other devices and processes can map.
#pragma once

#include <cstddef>

#include "base/status.h"
#include "gpu/driver.h"

namespace tutti::gpu {

/// Allocates for device `ordinal`: virtual-memory-managed, exportable as a file descriptor, readable and writable by
/// this and every visible device that can reach it; plain device memory where the device or `allowVmm` (NCCL_CUMEM_
/// ENABLE) says no. Size 0 gives nullptr. Thread-safe. Errors: ncclUnhandledCudaError.
Result<void*> allocateShared(const Driver& driver, int ordinal, std::size_t bytes, bool allowVmm);

/// Frees what allocateShared gave; size and owning device are looked up. nullptr is fine. `allowVmm` as in the
/// allocation. Errors: ncclUnhandledCudaError for a pointer that is not such an allocation.
Status freeShared(const Driver& driver, void* pointer, bool allowVmm);

}  // namespace tutti::gpu
