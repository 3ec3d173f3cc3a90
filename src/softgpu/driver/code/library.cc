// Libraries: images that belong to no context. A CUlibrary is a module without a home, a CUkernel its function.
#include "softgpu/driver/code/image.h"

using namespace tutti::softgpu;

namespace {

CUresult makeLibrary(CUlibrary* result, const Image& image, const JitOptions& options) {
  if (result == nullptr || image.data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = CUDA_SUCCESS;
  auto code = readImage(image, options, &error);
  if (code == nullptr) return error;
  *result = reinterpret_cast<CUlibrary>(machine().modules.add(std::make_shared<Module>(std::move(code), nullptr)));
  return CUDA_SUCCESS;
}

CUmodule moduleOf(CUlibrary library) {
  return reinterpret_cast<CUmodule>(library);
}

}  // namespace

extern "C" {

CUresult cuLibraryLoadData(CUlibrary* result, const void* image, CUjit_option* options, void** values,
                           unsigned int count, CUlibraryOption*, void**, unsigned int) {
  return call("cuLibraryLoadData", [&] { return makeLibrary(result, {image, 0}, {count, options, values}); });
}

CUresult cuLibraryLoadFromFile(CUlibrary* result, const char* path, CUjit_option* options, void** values,
                               unsigned int count, CUlibraryOption*, void**, unsigned int) {
  return call("cuLibraryLoadFromFile", [&]() -> CUresult {
    std::vector<char> content;
    if (const CUresult error = readImageFile(path, &content); error != CUDA_SUCCESS) return error;
    return makeLibrary(result, {content.data(), content.size() - 1}, {count, options, values});
  });
}

CUresult cuLibraryUnload(CUlibrary library) {
  return cuModuleUnload(moduleOf(library));
}

CUresult cuLibraryGetKernel(CUkernel* result, CUlibrary library, const char* name) {
  return cuModuleGetFunction(reinterpret_cast<CUfunction*>(result), moduleOf(library), name);
}

CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary library) {
  return cuModuleGetFunctionCount(count, moduleOf(library));
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int room, CUlibrary library) {
  return cuModuleEnumerateFunctions(reinterpret_cast<CUfunction*>(kernels), room, moduleOf(library));
}

CUresult cuLibraryGetModule(CUmodule* result, CUlibrary library) {
  return call("cuLibraryGetModule", [&]() -> CUresult {
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (machine().modules.find(library) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    *result = moduleOf(library);
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
  return cuModuleGetGlobal_v2(address, bytes, moduleOf(library), name);
}

CUresult cuLibraryGetManaged(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
  return cuModuleGetGlobal_v2(address, bytes, moduleOf(library), name);
}

}  // extern "C"
