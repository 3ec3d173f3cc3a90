// Memory for the application's buffers.
#pragma once

#include <cstddef>

#include "base/status.h"

namespace tutti::comm {

/// ncclMemAlloc / ncclMemFree on the current device. Any thread.
Status memAlloc(void** pointer, std::size_t bytes);
Status memFree(void* pointer);

}  // namespace tutti::comm
