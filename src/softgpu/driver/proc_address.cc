// cuGetProcAddress: name and version to entry point.
#include <dlfcn.h>

#include <cstring>

#include "softgpu/memory/cuda_types.h"

namespace {

struct EntryPoint {
  const char* name;
  int version;
  const char* symbol;
};

constexpr EntryPoint kEntryPoints[] = {
#define ENTRY(name, version, symbol) {name, version, symbol},
#include "softgpu/driver/entry_points.def"
#undef ENTRY
};

/// Symbols are looked up in this very library, not in whatever came first in the process.
void* ownSymbol(const char* symbol) {
  Dl_info info = {};
  if (::dladdr(reinterpret_cast<const void*>(&kEntryPoints), &info) == 0 || info.dli_fname == nullptr) return nullptr;
  static void* self = ::dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  return self == nullptr ? nullptr : ::dlsym(self, symbol);
}

}  // namespace

extern "C" {

CUresult cuGetProcAddress_v2(const char* name, void** result, int cudaVersion, cuuint64_t,
                             CUdriverProcAddressQueryResult* status) {
  if (name == nullptr || result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const EntryPoint* best = nullptr;
  bool known = false;
  for (const EntryPoint& entry : kEntryPoints) {
    if (std::strcmp(entry.name, name) != 0) continue;
    known = true;
    if (entry.version <= cudaVersion && (best == nullptr || entry.version >= best->version)) best = &entry;
  }
  void* symbol = best == nullptr ? nullptr : ownSymbol(best->symbol);
  *result = symbol;
  if (status != nullptr) {
    *status = symbol != nullptr          ? CU_GET_PROC_ADDRESS_SUCCESS
              : known && best == nullptr ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                         : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return symbol == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

__attribute__((visibility("default"))) CUresult softgpuProcAddressV1(const char* name, void** result, int cudaVersion,
                                                                     cuuint64_t flags) {
  return cuGetProcAddress_v2(name, result, cudaVersion, flags, nullptr);
}

}  // extern "C"
