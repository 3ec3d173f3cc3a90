// Kernels of libraries, which are functions here: they belong to no context until they are launched.
#include "softgpu/driver/entry.h"

using namespace tutti::softgpu;

namespace {

CUfunction functionOf(CUkernel kernel) {
  return reinterpret_cast<CUfunction>(kernel);
}

}  // namespace

extern "C" {

CUresult cuKernelGetFunction(CUfunction* result, CUkernel kernel) {
  return call("cuKernelGetFunction", [&]() -> CUresult {
    if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *result = functionOf(kernel);
    return CUDA_SUCCESS;
  });
}

CUresult cuKernelGetLibrary(CUlibrary* result, CUkernel kernel) {
  return call("cuKernelGetLibrary", [&]() -> CUresult {
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    // Looked for, not followed: callers ask whether a pointer is a kernel at all.
    for (const auto& module : machine().modules.all()) {
      for (const auto& [name, function] : module->functions()) {
        if (reinterpret_cast<CUkernel>(function.get()) != kernel) continue;
        *result = reinterpret_cast<CUlibrary>(module.get());
        return CUDA_SUCCESS;
      }
    }
    return CUDA_ERROR_INVALID_HANDLE;
  });
}

CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  return cuFuncGetName(name, functionOf(kernel));
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* bytes) {
  return cuFuncGetParamInfo(functionOf(kernel), index, offset, bytes);
}

CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel, CUdevice) {
  return cuFuncGetAttribute(value, attribute, functionOf(kernel));
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice) {
  return cuFuncSetAttribute(functionOf(kernel), attribute, value);
}

}  // extern "C"
