// Work and questions to streams. Built twice: as it stands, and for the per-thread default stream (names with _ptsz).
#include <memory>
#include <new>

#include "softgpu/runtime/api.h"

using namespace tutti::softgpu;

static_assert(sizeof(cudaStreamAttrValue) == sizeof(CUstreamAttrValue));

namespace {

/// A cudaStreamAddCallback that waits for its turn.
struct Callback {
  cudaStreamCallback_t function;
  cudaStream_t stream;
  void* userData;
};

void CUDART_CB runCallback(void* argument) {
  const std::unique_ptr<Callback> callback(static_cast<Callback*>(argument));
  callback->function(callback->stream, cudaSuccess, callback->userData);
}

}  // namespace

extern "C" {

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return inContext([&] { return CU(cuStreamSynchronize, toDriver(stream)); });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return inContext([&] { return CU(cuStreamQuery, toDriver(stream)); });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  return inContext([&] { return CU(cuStreamWaitEvent, toDriver(stream), event, flags); });
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int* flags) {
  return inContext([&] { return CU(cuStreamGetFlags, toDriver(stream), flags); });
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return inContext([&] { return CU(cuStreamGetPriority, toDriver(stream), priority); });
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return inContext([&] { return CU(cuStreamGetId, toDriver(stream), id); });
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return inContext([&] { return CU(cuStreamGetDevice, toDriver(stream), device); });
}

cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
  return inContext([&] { return CU(cuStreamCopyAttributes, toDriver(to), toDriver(from)); });
}

cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaStreamAttrID attribute, cudaStreamAttrValue* value) {
  return inContext([&] {
    return CU(cuStreamGetAttribute, toDriver(stream), static_cast<CUstreamAttrID>(attribute),
              reinterpret_cast<CUstreamAttrValue*>(value));
  });
}

cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaStreamAttrID attribute, const cudaStreamAttrValue* value) {
  return inContext([&] {
    return CU(cuStreamSetAttribute, toDriver(stream), static_cast<CUstreamAttrID>(attribute),
              reinterpret_cast<const CUstreamAttrValue*>(value));
  });
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, size_t length, unsigned int flags) {
  return inContext([&] { return CU(cuStreamAttachMemAsync, toDriver(stream), toDevice(pointer), length, flags); });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* userData) {
  if (function == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] { return CU(cuLaunchHostFunc, toDriver(stream), function, userData); });
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void* userData,
                                  unsigned int flags) {
  if (function == nullptr || flags != 0) return keep(cudaErrorInvalidValue);
  return inContext([&] {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult asked = CU(cuStreamIsCapturing, toDriver(stream), &status);
    if (asked != CUDA_SUCCESS) return asked;
    // A captured callback would run at each launch of the graph; the API forbids it, cudaLaunchHostFunc is for that.
    if (status != CU_STREAM_CAPTURE_STATUS_NONE) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    std::unique_ptr<Callback> callback(new (std::nothrow) Callback{function, stream, userData});
    if (callback == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = CU(cuLaunchHostFunc, toDriver(stream), runCallback, callback.get());
    // From here on the stream owns the callback.
    if (result == CUDA_SUCCESS) static_cast<void>(callback.release());
    return result;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return inContext([&] { return CU(cuEventRecord, event, toDriver(stream)); });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  return inContext([&] { return CU(cuEventRecordWithFlags, event, toDriver(stream), flags); });
}

cudaError_t cudaMallocAsync(void** pointer, size_t size, cudaStream_t stream) {
  if (pointer == nullptr) return keep(cudaErrorInvalidValue);
  return inContext(
      [&] { return CU(cuMemAllocAsync, reinterpret_cast<CUdeviceptr*>(pointer), size, toDriver(stream)); });
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t size, cudaMemPool_t pool, cudaStream_t stream) {
  if (pointer == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] {
    return CU(cuMemAllocFromPoolAsync, reinterpret_cast<CUdeviceptr*>(pointer), size, pool, toDriver(stream));
  });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return inContext(
      [&] { return pointer == nullptr ? CUDA_SUCCESS : CU(cuMemFreeAsync, toDevice(pointer), toDriver(stream)); });
}

}  // extern "C"
