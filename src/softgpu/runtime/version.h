// Which CUDA this library is the runtime of.
#pragma once

namespace tutti::softgpu {

/// What cudaRuntimeGetVersion tells, and whose driver functions cudaGetDriverEntryPoint finds: 1000 * major + 10 *
/// minor.
extern const int kRuntimeVersion;

}  // namespace tutti::softgpu
