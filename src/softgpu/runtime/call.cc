#include "softgpu/runtime/call.h"

#include <array>
#include <atomic>

#include "softgpu/runtime/error_table.h"

namespace tutti::softgpu {
namespace {

inline constexpr int kMaxDevices = 256;

/// Resets so far of each device: a thread whose binding is older must bind again.
std::array<std::atomic<unsigned>, kMaxDevices> resets;

struct ThreadState {
  int device = 0;             ///< what cudaSetDevice chose last
  CUcontext bound = nullptr;  ///< the primary context this thread got from us
  unsigned boundAtReset = 0;  ///< resets[device] at that moment
  cudaError_t last = cudaSuccess;
};
thread_local ThreadState thread;

std::atomic<unsigned>& resetsOf(int device) {
  return resets[static_cast<unsigned>(device) % kMaxDevices];
}

/// Makes the primary context of `device` current in this thread. The reference taken here is never given back: the
/// runtime keeps primary contexts until a reset or the end of the process, as programs expect.
cudaError_t bindPrimary(int device) {
  const unsigned generation = resetsOf(device).load(std::memory_order_acquire);
  CUcontext context = nullptr;
  if (const CUresult result = CU(cuDevicePrimaryCtxRetain, &context, device); result != CUDA_SUCCESS)
    return toRuntimeError(result);
  if (const CUresult result = CU(cuCtxSetCurrent, context); result != CUDA_SUCCESS) return toRuntimeError(result);
  thread.device = device;
  thread.bound = context;
  thread.boundAtReset = generation;
  return cudaSuccess;
}

bool bindingIsStale() {
  return thread.boundAtReset != resetsOf(thread.device).load(std::memory_order_acquire);
}

}  // namespace

cudaError_t toRuntimeError(CUresult result) {
  const auto error = static_cast<cudaError_t>(result);
  return findError(error) != nullptr ? error : cudaErrorUnknown;
}

cudaError_t keep(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) thread.last = error;
  return error;
}

cudaError_t lastError(bool clear) {
  const cudaError_t error = thread.last;
  if (clear) thread.last = cudaSuccess;
  return error;
}

cudaError_t ensureDriver() {
  const Driver& table = driver();
  if (!table.loaded) return cudaErrorInsufficientDriver;
  return toRuntimeError(table.initialised);
}

cudaError_t ensureContext() {
  if (const cudaError_t error = ensureDriver(); error != cudaSuccess) return error;
  CUcontext current = nullptr;
  if (const CUresult result = CU(cuCtxGetCurrent, &current); result != CUDA_SUCCESS) return toRuntimeError(result);
  if (current != nullptr && !(current == thread.bound && bindingIsStale())) return cudaSuccess;
  return bindPrimary(thread.device);
}

int currentDevice() {
  if (ensureDriver() != cudaSuccess) return thread.device;
  CUcontext current = nullptr;
  CUdevice device = thread.device;
  if (CU(cuCtxGetCurrent, &current) != CUDA_SUCCESS || current == nullptr || current == thread.bound)
    return thread.device;
  return CU(cuCtxGetDevice, &device) == CUDA_SUCCESS ? device : thread.device;
}

cudaError_t selectDevice(int device) {
  if (const cudaError_t error = checkDevice(device); error != cudaSuccess) return error;
  return bindPrimary(device);
}

cudaError_t resetCurrentDevice() {
  const int device = currentDevice();
  if (const CUresult result = CU(cuDevicePrimaryCtxReset, device); result != CUDA_SUCCESS)
    return toRuntimeError(result);
  resetsOf(device).fetch_add(1, std::memory_order_acq_rel);
  thread.device = device;
  thread.bound = nullptr;
  return toRuntimeError(CU(cuCtxSetCurrent, nullptr));
}

cudaError_t checkDevice(int device) {
  if (const cudaError_t error = ensureDriver(); error != cudaSuccess) return error;
  int count = 0;
  if (const CUresult result = CU(cuDeviceGetCount, &count); result != CUDA_SUCCESS) return toRuntimeError(result);
  if (count == 0) return cudaErrorNoDevice;
  return device >= 0 && device < count ? cudaSuccess : cudaErrorInvalidDevice;
}

}  // namespace tutti::softgpu
