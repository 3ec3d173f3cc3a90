// Device memory as a dma-buf: a descriptor by which other drivers, those of NICs, reach it.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/fd.h"
#include "base/status.h"
#include "gpu/context.h"

namespace tutti {

/// Whether the driver can give memory of the device away as dma-bufs.
bool exportsDmaBufs(const Device& device);

/// A descriptor for whole pages from `memory` on that cover `bytes`. The memory must outlive its use. `about` names the
/// purpose in errors. Errors: ncclUnhandledCudaError.
Result<Fd> dmaBufOf(const Device& device, void* memory, std::size_t bytes, std::string_view about);

}  // namespace tutti
