// What api/ needs of the library without a communicator: its start, and memory for the application's buffers.
#pragma once

#include <cstddef>

#include "base/status.h"

namespace tutti::comm {

/// Library start (env plugin, settings, driver, version line): once per process, cheap afterwards. Any thread.
/// ncclUnhandledCudaError without a usable driver; an env plugin's error where its init fails.
Status startLibrary();
/// As startLibrary, but without CUDA: what ncclGetUniqueId needs.
Status startLibraryWithoutCuda();

/// ncclMemAlloc / ncclMemFree on the current device. Any thread.
Status memAlloc(void** pointer, std::size_t bytes);
Status memFree(void* pointer);

}  // namespace tutti::comm
