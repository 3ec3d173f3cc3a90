// The start of the library.
#pragma once

#include "base/status.h"

namespace tutti::comm {

/// Library start (env plugin, settings, driver, version line): once per process, cheap afterwards. Any thread.
/// ncclUnhandledCudaError without a usable driver; an env plugin's error where its init fails.
Status startLibrary();
/// As startLibrary, but without CUDA: what ncclGetUniqueId needs.
Status startLibraryWithoutCuda();

}  // namespace tutti::comm
