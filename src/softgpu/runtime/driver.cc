#include "softgpu/runtime/driver.h"

#include <dlfcn.h>

#include "softgpu/runtime/report.h"
#include "softgpu/runtime/version.h"

#define TEXT_OF(name) #name
#define VERSIONED_NAME(name) TEXT_OF(name)

namespace tutti::softgpu {
namespace {

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

Driver load() {
  Driver result;
  // The run path of this library is $ORIGIN, so that the software GPU's driver beside it is found even where
  // LD_LIBRARY_PATH does not name the folder. The library is never closed: exit handlers may still call it.
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    reportOnce("libcuda.so.1", "libcudart.so.%d cannot load libcuda.so.1 (%s); run the program with softgpu-run",
               kRuntimeVersion / 1000, dlerror());
    return result;
  }
  result.loaded = true;
#define FUNCTION(name) find(library, VERSIONED_NAME(name), result.name);
#include "softgpu/runtime/driver_functions.def"
#undef FUNCTION
  if (result.cuInit != nullptr) result.initialised = result.cuInit(0);
  return result;
}

}  // namespace

const Driver& driver() {
  static const Driver instance = load();
  return instance;
}

CUresult missingDriverFunction(const char* name) {
  if (driver().loaded) reportOnce(name, "the driver has no %s; the call that needs it is not supported", name);
  return driver().loaded ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_NO_DEVICE;
}

}  // namespace tutti::softgpu
