// Kernels of the application. Programs built by nvcc register theirs before main and must start; launching one is an
// error whose line on stderr says why: there is no code generator for GPUs here.
#include <array>
#include <map>
#include <mutex>
#include <string>

#include "softgpu/runtime/call.h"
#include "softgpu/runtime/report.h"

namespace tutti::softgpu {
namespace {

/// Names of the registered kernels by the address of their host stub.
struct KernelNames {
  std::mutex mutex;
  std::map<const void*, std::string> names;
};

KernelNames& kernelNames() {
  // Never destroyed: the binary unregisters in an exit handler, in no order that we know.
  static auto& instance = *new KernelNames;
  return instance;
}

std::string nameOf(const void* stub) {
  KernelNames& all = kernelNames();
  const std::lock_guard lock(all.mutex);
  const auto found = all.names.find(stub);
  return found == all.names.end() ? "unknown" : found->second;
}

cudaError_t refuseLaunch(const void* stub) {
  const std::string name = nameOf(stub);
  reportOnce(("launch " + name).c_str(),
             "kernel '%s' cannot run: the software GPU runs no kernels of applications, only tutti's own. "
             "Run this program on a GPU, or without its kernels",
             name.c_str());
  return keep(cudaErrorNotSupported);
}

/// What <<<…>>> leaves for the stub that it then calls.
struct LaunchConfiguration {
  dim3 grid;
  dim3 block;
  size_t sharedBytes = 0;
  cudaStream_t stream = nullptr;
};
/// One inside the other, where arguments of a launch launch. Never destroyed: static objects may launch at the end.
struct LaunchConfigurations {
  std::array<LaunchConfiguration, 16> all{};
  std::size_t count = 0;
};
constinit thread_local LaunchConfigurations configurations;

}  // namespace
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
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t sharedBytes, CUstream_st* stream);
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* sharedBytes, void* stream);
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args, size_t sharedBytes,
                               cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** args, size_t sharedBytes,
                                    cudaStream_t stream);
cudaError_t cudaLaunchKernel_ptsz(const void* stub, dim3 grid, dim3 block, void** args, size_t sharedBytes,
                                  cudaStream_t stream);
cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t* config, const void* stub, void** args);
cudaError_t cudaLaunchCooperativeKernel_ptsz(const void* stub, dim3 grid, dim3 block, void** args, size_t sharedBytes,
                                             cudaStream_t stream);

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;  // nothing is loaded: one handle serves all binaries
  return &handle;
}

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void**) {}

void __cudaRegisterFunction(void**, const char* stub, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  KernelNames& all = kernelNames();
  const std::lock_guard lock(all.mutex);
  all.names[stub] = name;
}

void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}

void __cudaRegisterManagedVar(void**, void**, char*, const char*, int, size_t, int, int) {}

void __cudaRegisterHostVar(void**, const char*, char*, size_t) {}

void __cudaRegisterUnifiedTable(void) {}

char __cudaInitModule(void**) {
  return 1;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t sharedBytes, CUstream_st* stream) {
  if (configurations.count == configurations.all.size()) return 1;
  configurations.all[configurations.count++] = {grid, block, sharedBytes, stream};
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* sharedBytes, void* stream) {
  if (configurations.count == 0) return keep(cudaErrorMissingConfiguration);
  const LaunchConfiguration& top = configurations.all[--configurations.count];
  *grid = top.grid;
  *block = top.block;
  *sharedBytes = top.sharedBytes;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
  // The stub's address is the handle: it finds the name again when the launch is refused.
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(stub));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3, dim3, void**, size_t, cudaStream_t) {
  return refuseLaunch(kernel);
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3, dim3, void**, size_t, cudaStream_t) {
  return refuseLaunch(kernel);
}

cudaError_t cudaLaunchKernel(const void* stub, dim3, dim3, void**, size_t, cudaStream_t) {
  return refuseLaunch(stub);
}

cudaError_t cudaLaunchKernel_ptsz(const void* stub, dim3, dim3, void**, size_t, cudaStream_t) {
  return refuseLaunch(stub);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t*, const void* stub, void**) {
  return refuseLaunch(stub);
}

cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t*, const void* stub, void**) {
  return refuseLaunch(stub);
}

cudaError_t cudaLaunchCooperativeKernel(const void* stub, dim3, dim3, void**, size_t, cudaStream_t) {
  return refuseLaunch(stub);
}

cudaError_t cudaLaunchCooperativeKernel_ptsz(const void* stub, dim3, dim3, void**, size_t, cudaStream_t) {
  return refuseLaunch(stub);
}

// No kernel has an image here: exactly what "invalid device function" says.
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, const void*) {
  return keep(cudaErrorInvalidDeviceFunction);
}

cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) {
  return keep(cudaErrorInvalidDeviceFunction);
}

cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) {
  return keep(cudaErrorInvalidDeviceFunction);
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t*, const void*) {
  return keep(cudaErrorInvalidDeviceFunction);
}

cudaError_t cudaGetKernel(cudaKernel_t*, const void*) {
  return keep(cudaErrorInvalidDeviceFunction);
}

cudaError_t cudaFuncGetName(const char**, const void*) {
  return keep(cudaErrorInvalidDeviceFunction);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int*, const void*, int, size_t) {
  return keep(cudaErrorInvalidDeviceFunction);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int*, const void*, int, size_t, unsigned int) {
  return keep(cudaErrorInvalidDeviceFunction);
}

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

}  // extern "C"
