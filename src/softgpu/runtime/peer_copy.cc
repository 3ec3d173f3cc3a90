// Copies between devices. With one address space for all of them they are plain copies; the ordinals are checked.
#include "softgpu/runtime/api.h"

using namespace tutti::softgpu;

namespace {

cudaError_t checkBoth(int a, int b) {
  const cudaError_t error = checkDevice(a);
  return error != cudaSuccess ? error : checkDevice(b);
}

}  // namespace

extern "C" {

cudaError_t cudaMemcpyPeer(void* to, int toDeviceId, const void* from, int fromDeviceId, size_t count) {
  if (const cudaError_t error = checkBoth(toDeviceId, fromDeviceId); error != cudaSuccess) return keep(error);
  return inContext([&] { return count == 0 ? CUDA_SUCCESS : CU(cuMemcpy, toDevice(to), toDevice(from), count); });
}

cudaError_t cudaMemcpyPeerAsync(void* to, int toDeviceId, const void* from, int fromDeviceId, size_t count,
                                cudaStream_t stream) {
  if (const cudaError_t error = checkBoth(toDeviceId, fromDeviceId); error != cudaSuccess) return keep(error);
  return inContext([&] {
    return count == 0 ? CUDA_SUCCESS : CU(cuMemcpyAsync, toDevice(to), toDevice(from), count, toDriver(stream));
  });
}

}  // extern "C"
