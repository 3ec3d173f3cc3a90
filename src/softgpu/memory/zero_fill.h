// Zeros for ranges of memory of which most has never been touched.
#pragma once

#include <cstddef>

#include "softgpu/memory/memory.h"

namespace tutti::softgpu {

/// Like memset(address, 0, bytes), for memory of `table` or any other. Pages of device memory that have never been
/// written read as zero and stay without memory behind them: a communicator's buffers are cleared when they are made,
/// and many of them are never used.
void zeroFill(const MemoryTable& table, char* address, std::size_t bytes);

}  // namespace tutti::softgpu
