// The buffers in which a caller of the just-in-time compiler wants to read what it had to say.
#pragma once

#include <string>

#include "softgpu/memory/cuda_types.h"

namespace tutti::softgpu {

/// Writes `error`, empty for none, into the error log that the options name, if they do; the info log becomes empty.
/// Sizes are set to what was written, as far as the buffers have room.
void writeJitLogs(unsigned count, const CUjit_option* options, void** values, const std::string& error);

}  // namespace tutti::softgpu
