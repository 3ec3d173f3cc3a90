// What the generated functions answer.
#pragma once

namespace tutti::softgpu {

/// Reports once that `name` is not supported; returns (and keeps for cudaGetLastError) cudaErrorNotSupported. The
/// generated functions know no CUDA type, hence the int.
int unsupported(const char* name);

}  // namespace tutti::softgpu
