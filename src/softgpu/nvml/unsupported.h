// What the generated functions of NVML answer.
#pragma once

namespace tutti::softgpu::nvml {

/// "Not supported", or "uninitialized" before nvmlInit. Says nothing on standard error, unlike the driver: tools ask
/// for temperatures and clocks every second, and show what is not supported as such.
int unsupportedFunction(const char* name);

}  // namespace tutti::softgpu::nvml
