// Modules: reading images, what is in them.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "softgpu/device/ptx_code.h"
#include "softgpu/driver/code/image.h"
#include "softgpu/driver/code/jit_log.h"
#include "softgpu/say.h"

using namespace tutti::softgpu;

namespace {

void sayOnce(const std::string& line) {
  static auto& lock = *new std::mutex;
  static auto& told = *new std::set<std::string>;
  const std::lock_guard guard(lock);
  if (told.insert(line).second) say("%s", line.c_str());
}

CUresult makeModule(Context& context, CUmodule* result, const Image& image, const JitOptions& options) {
  if (result == nullptr || image.data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = CUDA_SUCCESS;
  auto code = readImage(image, options, &error);
  if (code == nullptr) return error;
  *result = reinterpret_cast<CUmodule>(machine().modules.add(std::make_shared<Module>(std::move(code), &context)));
  return CUDA_SUCCESS;
}

CUresult load(const char* name, CUmodule* result, const void* image, const JitOptions& options = {}) {
  return callInContext(name, [&](Context& context) { return makeModule(context, result, {image, 0}, options); });
}

/// Runs `body` on a live module.
template <class Body>
CUresult withModule(const char* name, CUmodule handle, Body&& body) {
  return call(name, [&]() -> CUresult {
    const auto module = machine().modules.find(handle);
    return module == nullptr ? CUDA_ERROR_INVALID_HANDLE : body(*module);
  });
}

}  // namespace

std::shared_ptr<const PtxCode> tutti::softgpu::readImage(const Image& image, const JitOptions& options,
                                                         CUresult* error) {
  const Context* context = currentContext();
  const Device& device = context != nullptr ? context->device() : *machine().devices.front();
  CodeFailure failure;
  auto code = PtxCode::read(image.data, image.bytes, device.facts().capability, &failure);
  writeJitLogs(options.count, options.names, options.values, failure.why);
  *error = failure.error;
  if (code == nullptr) sayOnce("GPU code cannot be read: " + failure.why);
  return code;
}

CUresult tutti::softgpu::readImageFile(const char* path, std::vector<char>* content) {
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::ifstream file(path, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  content->assign(std::istreambuf_iterator<char>(file), {});
  if (content->empty()) return CUDA_ERROR_INVALID_IMAGE;
  content->push_back('\0');
  return CUDA_SUCCESS;
}

extern "C" {

__attribute__((visibility("default"))) int softgpuRegisterKernels(const tutti::simt::HostKernelTable* table,
                                                                  void** module) {
  return call("softgpuRegisterKernels", [&]() -> CUresult {
    if (table == nullptr || module == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (table->abiVersion != tutti::simt::kHostAbiVersion) {
      say("kernels have ABI version %u, this libcuda.so.1 has %u: take both from one build", table->abiVersion,
          tutti::simt::kHostAbiVersion);
      return CUDA_ERROR_INVALID_SOURCE;
    }
    *module = machine().modules.add(std::make_shared<Module>(*table));
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleLoad(CUmodule* result, const char* path) {
  return callInContext("cuModuleLoad", [&](Context& context) -> CUresult {
    std::vector<char> content;
    if (const CUresult error = readImageFile(path, &content); error != CUDA_SUCCESS) return error;
    return makeModule(context, result, {content.data(), content.size() - 1}, {});
  });
}
CUresult cuModuleLoadData(CUmodule* result, const void* image) {
  return load("cuModuleLoadData", result, image);
}
CUresult cuModuleLoadDataEx(CUmodule* result, const void* image, unsigned int count, CUjit_option* options,
                            void** values) {
  return load("cuModuleLoadDataEx", result, image, {count, options, values});
}
CUresult cuModuleLoadFatBinary(CUmodule* result, const void* image) {
  return load("cuModuleLoadFatBinary", result, image);
}

CUresult cuModuleUnload(CUmodule handle) {
  return call("cuModuleUnload", [&]() -> CUresult {
    return machine().modules.take(handle) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
  });
}

CUresult cuModuleGetFunction(CUfunction* result, CUmodule handle, const char* name) {
  return withModule("cuModuleGetFunction", handle, [&](Module& module) -> CUresult {
    if (result == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Function* function = module.find(name);
    if (function == nullptr) return CUDA_ERROR_NOT_FOUND;
    *result = reinterpret_cast<CUfunction>(function);
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule handle) {
  return withModule("cuModuleGetFunctionCount", handle, [&](const Module& module) -> CUresult {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<unsigned>(module.functions().size());
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned int room, CUmodule handle) {
  return withModule("cuModuleEnumerateFunctions", handle, [&](const Module& module) -> CUresult {
    if (functions == nullptr || room == 0) return CUDA_ERROR_INVALID_VALUE;
    for (const auto& [name, function] : module.functions()) {
      if (room-- == 0) break;
      *functions++ = reinterpret_cast<CUfunction>(function.get());
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule handle, const char* name) {
  return withModule("cuModuleGetGlobal", handle, [&](Module& module) -> CUresult {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return module.findVariable(currentContext(), name, address, bytes);
  });
}

}  // extern "C"
