// What the generated functions of CUPTI answer.
#pragma once

namespace tutti::softgpu::cupti {

/// Says once a process, with the first name, that nothing can be profiled; returns CUPTI_ERROR_NOT_SUPPORTED. Any
/// thread.
int unsupportedFunction(const char* name);

}  // namespace tutti::softgpu::cupti
