// Devices: count, choice, attributes, peers, limits.
#include <atomic>
#include <cstring>
#include <initializer_list>

#include "softgpu/runtime/api.h"
#include "softgpu/runtime/version.h"

using namespace tutti::softgpu;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  if (count == nullptr) return keep(cudaErrorInvalidValue);
  if (const cudaError_t error = ensureDriver(); error != cudaSuccess) {
    *count = 0;
    return keep(error);
  }
  const CUresult result = CU(cuDeviceGetCount, count);
  return keep(result == CUDA_SUCCESS && *count == 0 ? cudaErrorNoDevice : toRuntimeError(result));
}

cudaError_t cudaSetDevice(int device) {
  return keep(selectDevice(device));
}

cudaError_t cudaGetDevice(int* device) {
  if (device == nullptr) return keep(cudaErrorInvalidValue);
  if (const cudaError_t error = ensureDriver(); error != cudaSuccess) return keep(error);
  *device = currentDevice();
  return cudaSuccess;
}

cudaError_t cudaInitDevice(int device, unsigned int, unsigned int) {
  const cudaError_t error = checkDevice(device);
  CUcontext context = nullptr;
  return keep(error != cudaSuccess ? error : toRuntimeError(CU(cuDevicePrimaryCtxRetain, &context, device)));
}

cudaError_t cudaSetValidDevices(int* devices, int count) {
  if (count < 0 || (devices == nullptr && count > 0)) return keep(cudaErrorInvalidValue);
  for (int i = 0; i < count; ++i) {
    if (const cudaError_t error = checkDevice(devices[i]); error != cudaSuccess) return keep(error);
  }
  return cudaSuccess;
}

cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* properties) {
  if (device == nullptr || properties == nullptr) return keep(cudaErrorInvalidValue);
  if (const cudaError_t error = checkDevice(0); error != cudaSuccess) return keep(error);
  *device = 0;  // all devices of the software GPU are alike
  return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
  if ((flags & ~static_cast<unsigned>(cudaDeviceMask)) != 0) return keep(cudaErrorInvalidValue);
  return inDriver([&] {
    return CU(cuDevicePrimaryCtxSetFlags, currentDevice(), flags & ~static_cast<unsigned>(cudaDeviceMapHost));
  });
}

cudaError_t cudaGetDeviceFlags(unsigned int* flags) {
  if (flags == nullptr) return keep(cudaErrorInvalidValue);
  return inDriver([&] {
    int active = 0;
    unsigned value = 0;
    const CUresult result = CU(cuDevicePrimaryCtxGetState, currentDevice(), &value, &active);
    if (result == CUDA_SUCCESS) *flags = value | cudaDeviceMapHost;
    return result;
  });
}

cudaError_t cudaDeviceReset(void) {
  return inDriver([] { return resetCurrentDevice(); });
}

cudaError_t cudaDeviceSynchronize(void) {
  return inContext([] { return CU(cuCtxSynchronize); });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (value == nullptr || attribute < 1 || static_cast<int>(attribute) >= CU_DEVICE_ATTRIBUTE_MAX)
    return keep(cudaErrorInvalidValue);
  if (const cudaError_t error = checkDevice(device); error != cudaSuccess) return keep(error);
  int answer = 0;
  const CUresult result = CU(cuDeviceGetAttribute, &answer, static_cast<CUdevice_attribute>(attribute), device);
  // An attribute that the driver does not know describes a feature that this device does not have.
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_INVALID_VALUE) return keep(result);
  *value = result == CUDA_SUCCESS ? answer : 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  if (text == nullptr || length <= 0) return keep(cudaErrorInvalidValue);
  const cudaError_t error = checkDevice(device);
  return keep(error != cudaSuccess ? error : toRuntimeError(CU(cuDeviceGetPCIBusId, text, length, device)));
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) {
  if (device == nullptr || text == nullptr) return keep(cudaErrorInvalidValue);
  return inDriver([&] { return CU(cuDeviceGetByPCIBusId, device, text); });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return inContext([&] { return CU(cuCtxGetStreamPriorityRange, least, greatest); });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (can == nullptr) return keep(cudaErrorInvalidValue);
  for (const int ordinal : {device, peer}) {
    if (const cudaError_t error = checkDevice(ordinal); error != cudaSuccess) return keep(error);
  }
  return keep(CU(cuDeviceCanAccessPeer, can, device, peer));
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  if (flags != 0) return keep(cudaErrorInvalidValue);
  if (const cudaError_t error = checkDevice(peer); error != cudaSuccess) return keep(error);
  return inContext([&] {
    CUcontext context = nullptr;
    const CUresult result = CU(cuDevicePrimaryCtxRetain, &context, peer);
    return result != CUDA_SUCCESS ? result : CU(cuCtxEnablePeerAccess, context, 0);
  });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  if (const cudaError_t error = checkDevice(peer); error != cudaSuccess) return keep(error);
  return inContext([&] {
    CUcontext context = nullptr;
    const CUresult result = CU(cuDevicePrimaryCtxRetain, &context, peer);
    return result != CUDA_SUCCESS ? result : CU(cuCtxDisablePeerAccess, context);
  });
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int source, int destination) {
  return inDriver([&] {
    return CU(cuDeviceGetP2PAttribute, value, static_cast<CUdevice_P2PAttribute>(attribute), source, destination);
  });
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return inContext([&] { return CU(cuCtxSetLimit, static_cast<CUlimit>(limit), value); });
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  return inContext([&] { return CU(cuCtxGetLimit, value, static_cast<CUlimit>(limit)); });
}

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  if (config == nullptr) return keep(cudaErrorInvalidValue);
  *config = cudaFuncCachePreferNone;
  return cudaSuccess;
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) {
  return cudaSuccess;
}

cudaError_t cudaCtxResetPersistingL2Cache(void) {
  return cudaSuccess;
}

cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTarget target,
                                               cudaFlushGPUDirectRDMAWritesScope scope) {
  return inContext([&] {
    return CU(cuFlushGPUDirectRDMAWrites, static_cast<CUflushGPUDirectRDMAWritesTarget>(target),
              static_cast<CUflushGPUDirectRDMAWritesScope>(scope));
  });
}

cudaError_t cudaDriverGetVersion(int* version) {
  if (version == nullptr) return keep(cudaErrorInvalidValue);
  *version = 0;  // what the API promises where no driver is installed
  return driver().loaded ? keep(CU(cuDriverGetVersion, version)) : cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return keep(cudaErrorInvalidValue);
  *version = kRuntimeVersion;
  return cudaSuccess;
}

cudaError_t cudaProfilerStart(void) {
  return cudaSuccess;
}

cudaError_t cudaProfilerStop(void) {
  return cudaSuccess;
}

}  // extern "C"
