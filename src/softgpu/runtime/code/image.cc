#include "softgpu/runtime/code/image.h"

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "softgpu/runtime/api.h"
#include "softgpu/runtime/error_table.h"
#include "softgpu/runtime/report.h"

namespace tutti::softgpu {
namespace {

/// A managed variable: the program's pointer to it, which is null until the image is loaded.
struct Managed {
  void** pointer;
  std::string name;
};

/// A registered binary.
struct Binary {
  const void* code = nullptr;
  std::vector<Managed> managed;
  std::once_flag once;
  CUlibrary library = nullptr;
  cudaError_t error = cudaSuccess;  ///< why there is no library
};
using BinaryPointer = std::shared_ptr<Binary>;

struct Entity {
  BinaryPointer image;
  std::string name;
  CUkernel kernel = nullptr;  ///< of a stub, once it is known
};

/// All that is registered, by the addresses that programs name it by.
struct Registered {
  std::mutex mutex;
  std::unordered_map<const void*, BinaryPointer> images;
  std::unordered_map<const void*, Entity> stubs;
  std::unordered_map<const void*, Entity> variables;
  std::unordered_set<const void*> kernels;  ///< that the driver knows
};

Registered& all() {
  // Never destroyed: the binary unregisters in an exit handler, in no order that we know.
  static auto& instance = *new Registered;
  return instance;
}

BinaryPointer imageOf(void** handle) {
  const std::lock_guard lock(all().mutex);
  const auto found = all().images.find(handle);
  return found == all().images.end() ? nullptr : found->second;
}

void load(Binary& image) {
  CUlibrary library = nullptr;
  image.error = toRuntimeError(CU(cuLibraryLoadData, &library, image.code, nullptr, nullptr, 0, nullptr, nullptr, 0));
  if (image.error != cudaSuccess) return;
  image.library = library;
  for (const Managed& variable : image.managed) {
    CUdeviceptr address = 0;
    size_t bytes = 0;
    const CUresult result = CU(cuLibraryGetManaged, &address, &bytes, library, variable.name.c_str());
    if (result == CUDA_SUCCESS) *variable.pointer = reinterpret_cast<void*>(address);
  }
}

cudaError_t loaded(Binary& image) {
  std::call_once(image.once, load, image);
  return image.error;
}

void enter(std::unordered_map<const void*, Entity>& entities, void** handle, const void* address, const char* name) {
  BinaryPointer image = imageOf(handle);
  if (image == nullptr || name == nullptr) return;
  const std::lock_guard lock(all().mutex);
  entities[address] = {std::move(image), name, nullptr};
}

/// A copy of what is known of `address`; false if nothing is.
bool look(const std::unordered_map<const void*, Entity>& entities, const void* address, Entity* entity) {
  const std::lock_guard lock(all().mutex);
  const auto found = entities.find(address);
  if (found == entities.end()) return false;
  *entity = found->second;
  return true;
}

cudaError_t kernelOfStub(const void* stub, Entity& entity, CUkernel* kernel) {
  cudaError_t error = loaded(*entity.image);
  if (error == cudaSuccess) {
    const CUresult result = CU(cuLibraryGetKernel, kernel, entity.image->library, entity.name.c_str());
    error = result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidDeviceFunction : toRuntimeError(result);
  }
  if (error != cudaSuccess) {
    reportOnce(("kernel " + entity.name).c_str(), "kernel '%s' cannot run: %s", entity.name.c_str(),
               cudaGetErrorString(error));
    return error;
  }
  const std::lock_guard lock(all().mutex);
  if (const auto found = all().stubs.find(stub); found != all().stubs.end()) found->second.kernel = *kernel;
  return cudaSuccess;
}

/// The kernel that `handle` stands for, or is, if that is known already.
bool kernelAtHand(const void* handle, CUkernel* kernel) {
  const std::lock_guard lock(all().mutex);
  if (const auto found = all().stubs.find(handle); found != all().stubs.end()) {
    *kernel = found->second.kernel;
    return *kernel != nullptr;
  }
  *kernel = static_cast<CUkernel>(const_cast<void*>(handle));
  return all().kernels.contains(handle);
}

/// Whether the driver knows `handle` as a kernel.
bool isKernel(const void* handle) {
  CUlibrary library = nullptr;
  const auto kernel = static_cast<CUkernel>(const_cast<void*>(handle));
  if (handle == nullptr || CU(cuKernelGetLibrary, &library, kernel) != CUDA_SUCCESS) return false;
  const std::lock_guard lock(all().mutex);
  all().kernels.insert(handle);
  return true;
}

}  // namespace

cudaError_t findFunction(const void* handle, CUfunction* function) {
  Entity entity;
  CUkernel kernel = nullptr;
  if (kernelAtHand(handle, &kernel)) {
    // The usual case, short.
  } else if (look(all().stubs, handle, &entity)) {
    if (const cudaError_t error = kernelOfStub(handle, entity, &kernel); error != cudaSuccess) return error;
  } else if (isKernel(handle)) {
    kernel = static_cast<CUkernel>(const_cast<void*>(handle));
  } else {
    return cudaErrorInvalidDeviceFunction;
  }
  *function = reinterpret_cast<CUfunction>(kernel);
  return cudaSuccess;
}

void forgetKernels() {
  const std::lock_guard lock(all().mutex);
  all().kernels.clear();
}

cudaError_t findSymbol(const void* variable, Symbol* symbol) {
  Entity entity;
  if (!look(all().variables, variable, &entity)) return cudaErrorInvalidSymbol;
  if (const cudaError_t error = loaded(*entity.image); error != cudaSuccess) return error;
  const CUresult result =
      CU(cuLibraryGetGlobal, &symbol->address, &symbol->bytes, entity.image->library, entity.name.c_str());
  return result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : toRuntimeError(result);
}

}  // namespace tutti::softgpu

using namespace tutti::softgpu;

// The compiler's side of the runtime: names and shapes as the toolkit's crt/host_runtime.h declares them.
extern "C" {

void** __cudaRegisterFatBinary(void* binary);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaUnregisterFatBinary(void** handle);
void __cudaRegisterFunction(void** handle, const char* stub, char* deviceStub, const char* name, int threadLimit,
                            uint3* tid, uint3* bid, dim3* blockDim, dim3* gridDim, int* warpSize);
void __cudaRegisterVar(void** handle, char* host, char* device, const char* name, int ext, size_t size, int constant,
                       int global);
void __cudaRegisterManagedVar(void** handle, void** host, char* device, const char* name, int ext, size_t size,
                              int constant, int global);
void __cudaRegisterHostVar(void** handle, const char* name, char* host, size_t size);
void __cudaRegisterUnifiedTable(void);
char __cudaInitModule(void** handle);
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub);

void** __cudaRegisterFatBinary(void* binary) {
  auto image = std::make_shared<Binary>();
  image->code = binary;
  auto** handle = reinterpret_cast<void**>(image.get());
  const std::lock_guard lock(all().mutex);
  all().images[handle] = std::move(image);
  return handle;
}

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void** handle) {
  const BinaryPointer image = imageOf(handle);
  if (image == nullptr) return;
  const auto isOfImage = [&](const auto& entry) { return entry.second.image == image; };
  {
    const std::lock_guard lock(all().mutex);
    all().images.erase(handle);
    all().kernels.clear();
    std::erase_if(all().stubs, isOfImage);
    std::erase_if(all().variables, isOfImage);
  }
  if (image->library != nullptr) CU(cuLibraryUnload, image->library);
}

void __cudaRegisterFunction(void** handle, const char* stub, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  enter(all().stubs, handle, stub, name);
}

void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, size_t, int, int) {
  enter(all().variables, handle, host, name);
}

void __cudaRegisterManagedVar(void** handle, void** host, char*, const char* name, int, size_t, int, int) {
  const BinaryPointer image = imageOf(handle);
  if (image == nullptr || name == nullptr) return;
  image->managed.push_back({host, name});
  enter(all().variables, handle, host, name);
}

void __cudaRegisterHostVar(void**, const char*, char*, size_t) {}

void __cudaRegisterUnifiedTable(void) {}

/// Called where the host first uses a managed variable of the binary.
char __cudaInitModule(void** handle) {
  const BinaryPointer image = imageOf(handle);
  if (image == nullptr) return 0;
  return inContext([&] { return loaded(*image); }) == cudaSuccess ? 1 : 0;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
  // The stub's address is the handle: the launch finds what it is, or says why it is not there.
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(stub));
  return cudaSuccess;
}

}  // extern "C"
