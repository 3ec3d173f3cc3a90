// GPU code of the application: what the code that nvcc writes registers before main. An image is loaded when something
// of it is used for the first time.
#pragma once

#include "softgpu/runtime/call.h"

namespace tutti::softgpu {

/// What a kernel is launched by: `handle` is the address of its host stub, or a cudaKernel_t.
/// cudaErrorInvalidDeviceFunction where it is neither; a kernel whose image cannot be loaded is named on stderr. Needs
/// a context. Any thread.
cudaError_t findFunction(const void* handle, CUfunction* function);
/// Some cudaKernel_t are about to go: whether a handle is one is asked of the driver again.
void forgetKernels();

/// A variable of GPU code on the current device.
struct Symbol {
  CUdeviceptr address = 0;
  size_t bytes = 0;
};
/// `variable` is the address of its shadow on the host. cudaErrorInvalidSymbol where there is none. Needs a context.
cudaError_t findSymbol(const void* variable, Symbol* symbol);

}  // namespace tutti::softgpu
