// Libraries: GPU code that the application loads itself.
#include "softgpu/runtime/api.h"
#include "softgpu/runtime/code/image.h"

using namespace tutti::softgpu;

namespace {

/// The names of options agree but for the types.
CUjit_option* toDriver(cudaJitOption* options) {
  return reinterpret_cast<CUjit_option*>(options);
}

CUlibraryOption* toDriver(cudaLibraryOption* options) {
  return reinterpret_cast<CUlibraryOption*>(options);
}

CUlibrary toDriver(cudaLibrary_t library) {
  return reinterpret_cast<CUlibrary>(library);
}

}  // namespace

extern "C" {

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption* jitOptions, void** jitValues,
                                unsigned int jitCount, cudaLibraryOption* options, void** values, unsigned int count) {
  return inDriver([&] {
    return CU(cuLibraryLoadData, reinterpret_cast<CUlibrary*>(library), code, toDriver(jitOptions), jitValues, jitCount,
              toDriver(options), values, count);
  });
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* path, cudaJitOption* jitOptions,
                                    void** jitValues, unsigned int jitCount, cudaLibraryOption* options, void** values,
                                    unsigned int count) {
  return inDriver([&] {
    return CU(cuLibraryLoadFromFile, reinterpret_cast<CUlibrary*>(library), path, toDriver(jitOptions), jitValues,
              jitCount, toDriver(options), values, count);
  });
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  forgetKernels();
  return inDriver([&] { return CU(cuLibraryUnload, toDriver(library)); });
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  return inDriver([&] { return CU(cuLibraryGetKernel, reinterpret_cast<CUkernel*>(kernel), toDriver(library), name); });
}

cudaError_t cudaLibraryGetKernelCount(unsigned int* count, cudaLibrary_t library) {
  return inDriver([&] { return CU(cuLibraryGetKernelCount, count, toDriver(library)); });
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned int room, cudaLibrary_t library) {
  return inDriver(
      [&] { return CU(cuLibraryEnumerateKernels, reinterpret_cast<CUkernel*>(kernels), room, toDriver(library)); });
}

cudaError_t cudaLibraryGetGlobal(void** address, size_t* bytes, cudaLibrary_t library, const char* name) {
  return inContext(
      [&] { return CU(cuLibraryGetGlobal, reinterpret_cast<CUdeviceptr*>(address), bytes, toDriver(library), name); });
}

cudaError_t cudaLibraryGetManaged(void** address, size_t* bytes, cudaLibrary_t library, const char* name) {
  return inContext(
      [&] { return CU(cuLibraryGetManaged, reinterpret_cast<CUdeviceptr*>(address), bytes, toDriver(library), name); });
}

}  // extern "C"
