// Names and texts of the runtime's errors.
#pragma once

#include <cuda_runtime_api.h>

namespace tutti::softgpu {

struct ErrorText {
  cudaError_t code;
  const char* name;
  const char* text;
};

/// The row of `error`, or null for a number that is no error of the runtime.
const ErrorText* findError(cudaError_t error);

}  // namespace tutti::softgpu
