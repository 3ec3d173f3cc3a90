// Calls that CUDA 13 has no longer: those with another name today, and advice about a device.
#include "softgpu/runtime/call.h"
#include "softgpu/runtime/cuda12/place.h"

using namespace tutti::softgpu;

extern "C" {

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache*);
cudaError_t cudaDeviceGetLimit(size_t*, cudaLimit);
cudaError_t cudaDeviceReset();
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache);
cudaError_t cudaDeviceSetLimit(cudaLimit, size_t);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaEventElapsedTime(float*, cudaEvent_t, cudaEvent_t);
cudaError_t cudaMemAdvise_v2(const void*, size_t, cudaMemoryAdvise, cudaMemLocation);

cudaError_t cudaThreadExit() {
  return cudaDeviceReset();
}

cudaError_t cudaThreadSynchronize() {
  return cudaDeviceSynchronize();
}

cudaError_t cudaThreadSetLimit(cudaLimit limit, size_t value) {
  return cudaDeviceSetLimit(limit, value);
}

cudaError_t cudaThreadGetLimit(size_t* value, cudaLimit limit) {
  return cudaDeviceGetLimit(value, limit);
}

cudaError_t cudaThreadGetCacheConfig(cudaFuncCache* config) {
  return cudaDeviceGetCacheConfig(config);
}

cudaError_t cudaThreadSetCacheConfig(cudaFuncCache config) {
  return cudaDeviceSetCacheConfig(config);
}

/// CUDA 13 has kept this form, under the plain name.
cudaError_t cudaEventElapsedTime_v2(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return cudaEventElapsedTime(milliseconds, start, end);
}

cudaError_t cudaMemAdvise(const void* pointer, size_t count, cudaMemoryAdvise advice, int device) {
  return cudaMemAdvise_v2(pointer, count, advice, cuda12::placeOf(device));
}

// Doubles are converted for devices that have none, which this one is not.
cudaError_t cudaSetDoubleForDevice(double* value) {
  return keep(value == nullptr ? cudaErrorInvalidValue : cudaSuccess);
}

cudaError_t cudaSetDoubleForHost(double* value) {
  return keep(value == nullptr ? cudaErrorInvalidValue : cudaSuccess);
}

}  // extern "C"
