// The CUDA driver as the runtime sees it: one table of function pointers, filled from libcuda.so.1 at the first call.
#pragma once

#include <cuda.h>

namespace tutti::softgpu {

/// Pointers to the driver functions; one that the driver lacks is null, and CU() then answers "not supported".
struct Driver {
  bool loaded = false;                                ///< false: no libcuda.so.1 was found, every pointer is null
  CUresult initialised = CUDA_ERROR_NOT_INITIALIZED;  ///< what cuInit answered
#define FUNCTION(name) decltype(&::name) name = nullptr;
#include "softgpu/runtime/driver_functions.def"
#undef FUNCTION
};

/// The process's driver, loaded and initialised on first use. Thread-safe; lives as long as the process.
const Driver& driver();

/// Says once per name, on stderr, that `name` is not there. Returns CUDA_ERROR_NOT_SUPPORTED.
CUresult missingDriverFunction(const char* name);

}  // namespace tutti::softgpu

/// Calls a driver function: `CU(cuMemAlloc, &pointer, bytes)`. Evaluates to its CUresult.
#define CU(name, ...)                                                                        \
  (::tutti::softgpu::driver().name != nullptr ? ::tutti::softgpu::driver().name(__VA_ARGS__) \
                                              : ::tutti::softgpu::missingDriverFunction(#name))
