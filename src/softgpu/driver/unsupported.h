// What the generated functions of the driver answer.
#pragma once

namespace tutti::softgpu {

/// Says once that `name` is not supported; returns CUDA_ERROR_NOT_SUPPORTED, for functions that know no type of CUDA.
int unsupportedFunction(const char* name);

}  // namespace tutti::softgpu
