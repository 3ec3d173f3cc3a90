// Modules, functions and launches. Kernels come from softgpuRegisterKernels: GPU code cannot run here.
#include <cstring>

#include "softgpu/driver/graph_support.h"
#include "softgpu/say.h"

using namespace tutti::softgpu;

namespace {

constexpr unsigned kMaxThreads = 1024;

CUresult refuseCode(const char* name) {
  return call(name, [&]() -> CUresult {
    static std::atomic<bool> told{false};
    if (!told.exchange(true)) {
      say("%s: the software GPU cannot run GPU code; only kernels compiled for it can", name);
    }
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  });
}

CUresult findFunction(const Module& module, const char* name, Function** result) {
  const auto it = module.functions.find(name);
  if (it == module.functions.end()) return CUDA_ERROR_NOT_FOUND;
  *result = it->second.get();
  return CUDA_SUCCESS;
}

CUresult attributeOf(int* value, CUfunction_attribute attribute, const Function& function) {
  switch (static_cast<int>(attribute)) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = static_cast<int>(function.kernel->maxThreads);
      break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(function.kernel->staticSharedBytes);
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 32;
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = 90;
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = function.dynamicSharedLimit;
      break;
    default:
      if (attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
      *value = 0;
  }
  return CUDA_SUCCESS;
}

/// The params of the caller, copied: `extra` as of cuLaunchKernel is understood as well.
CUresult packParams(const Function& function, void** params, void** extra, KernelOperation* operation) {
  const void* source = params == nullptr ? nullptr : params[0];
  for (void** word = extra; source == nullptr && word != nullptr && *word != CU_LAUNCH_PARAM_END; word += 2) {
    if (*word == CU_LAUNCH_PARAM_BUFFER_POINTER) source = word[1];
  }
  const std::size_t bytes = function.kernel->paramBytes;
  if (bytes != 0 && source == nullptr) return CUDA_ERROR_INVALID_VALUE;
  operation->params = copyParams(source, bytes);
  return CUDA_SUCCESS;
}

CUresult launch(const char* name, CUfunction handle, CUstream stream, const LaunchShape& shape) {
  return callOnStream(name, stream, [&](Stream& queue) -> CUresult {
    KernelOperation operation;
    const CUresult error = kernelOperation(handle, shape, &operation);
    return error == CUDA_SUCCESS ? queue.submit(operation) : error;
  });
}

}  // namespace

CUresult tutti::softgpu::kernelOperation(CUfunction handle, const LaunchShape& shape, KernelOperation* operation) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto& function = *reinterpret_cast<const Function*>(handle);
  const bool flat = shape.grid[1] == 1 && shape.grid[2] == 1 && shape.block[1] == 1 && shape.block[2] == 1;
  if (!flat || shape.grid[0] == 0 || shape.block[0] == 0) return CUDA_ERROR_INVALID_VALUE;
  if (shape.block[0] > kMaxThreads || shape.block[0] > function.kernel->maxThreads) return CUDA_ERROR_INVALID_VALUE;
  operation->kernel = function.kernel;
  operation->blocks = shape.grid[0];
  operation->threads = shape.block[0];
  operation->dynamicSharedBytes = shape.sharedBytes;
  return packParams(function, shape.params, shape.extra, operation);
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
    auto made = std::make_shared<Module>();
    for (std::uint32_t i = 0; i < table->count; ++i) {
      auto function = std::make_unique<Function>();
      function->kernel = &table->kernels[i];
      function->module = made.get();
      made->functions[table->kernels[i].name] = std::move(function);
    }
    *module = machine().modules.add(std::move(made));
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetFunction(CUfunction* result, CUmodule handle, const char* name) {
  return call("cuModuleGetFunction", [&]() -> CUresult {
    const auto module = machine().modules.find(handle);
    if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (result == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Function* function = nullptr;
    const CUresult error = findFunction(*module, name, &function);
    if (error == CUDA_SUCCESS) *result = reinterpret_cast<CUfunction>(function);
    return error;
  });
}

CUresult cuModuleUnload(CUmodule handle) {
  return call("cuModuleUnload", [&]() -> CUresult {
    return machine().modules.take(handle) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
  });
}

CUresult cuModuleLoad(CUmodule*, const char*) {
  return refuseCode("cuModuleLoad");
}
CUresult cuModuleLoadData(CUmodule*, const void*) {
  return refuseCode("cuModuleLoadData");
}
CUresult cuModuleLoadDataEx(CUmodule*, const void*, unsigned int, CUjit_option*, void**) {
  return refuseCode("cuModuleLoadDataEx");
}
CUresult cuModuleLoadFatBinary(CUmodule*, const void*) {
  return refuseCode("cuModuleLoadFatBinary");
}
CUresult cuLibraryLoadData(CUlibrary*, const void*, CUjit_option*, void**, unsigned int, CUlibraryOption*, void**,
                           unsigned int) {
  return refuseCode("cuLibraryLoadData");
}

CUresult cuLibraryGetKernel(CUkernel* result, CUlibrary library, const char* name) {
  return cuModuleGetFunction(reinterpret_cast<CUfunction*>(result), reinterpret_cast<CUmodule>(library), name);
}
CUresult cuLibraryUnload(CUlibrary library) {
  return cuModuleUnload(reinterpret_cast<CUmodule>(library));
}
CUresult cuLibraryGetModule(CUmodule* result, CUlibrary library) {
  *result = reinterpret_cast<CUmodule>(library);
  return CUDA_SUCCESS;
}
CUresult cuKernelGetFunction(CUfunction* result, CUkernel kernel) {
  *result = reinterpret_cast<CUfunction>(kernel);
  return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  return call("cuFuncGetAttribute", [&]() -> CUresult {
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return attributeOf(value, attribute, *reinterpret_cast<Function*>(function));
  });
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return call("cuFuncSetAttribute", [&]() -> CUresult {
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
      reinterpret_cast<Function*>(function)->dynamicSharedLimit = value;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncGetModule(CUmodule* result, CUfunction function) {
  return call("cuFuncGetModule", [&]() -> CUresult {
    if (function == nullptr || result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *result = reinterpret_cast<CUmodule>(reinterpret_cast<Function*>(function)->module);
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncGetName(const char** name, CUfunction function) {
  return call("cuFuncGetName", [&]() -> CUresult {
    if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *name = reinterpret_cast<Function*>(function)->kernel->name;
    return CUDA_SUCCESS;
  });
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                        unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void** params,
                        void** extra) {
  return launch("cuLaunchKernel", f, stream, {{gx, gy, gz}, {bx, by, bz}, shared, params, extra});
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction f, void** params, void** extra) {
  if (c == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return launch("cuLaunchKernelEx", f, c->hStream,
                {{c->gridDimX, c->gridDimY, c->gridDimZ},
                 {c->blockDimX, c->blockDimY, c->blockDimZ},
                 c->sharedMemBytes,
                 params,
                 extra});
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                                   unsigned int by, unsigned int bz, unsigned int shared, CUstream stream,
                                   void** params) {
  return launch("cuLaunchCooperativeKernel", f, stream, {{gx, gy, gz}, {bx, by, bz}, shared, params, nullptr});
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int blockSize, size_t) {
  return call("cuOccupancyMaxActiveBlocksPerMultiprocessor", [&]() -> CUresult {
    if (blocks == nullptr || function == nullptr || blockSize <= 0) return CUDA_ERROR_INVALID_VALUE;
    *blocks = 2048 / blockSize;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
