// Birth and death of streams and events, and what can be asked of an event.
#include "softgpu/runtime/api.h"

using namespace tutti::softgpu;

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  if (stream == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] { return CU(cuStreamCreate, stream, flags); });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
  if (stream == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] { return CU(cuStreamCreateWithPriority, stream, flags, priority); });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  // The default streams are not the application's to destroy.
  if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread)
    return keep(cudaErrorInvalidResourceHandle);
  return inContext([&] { return CU(cuStreamDestroy, stream); });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  if (event == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] { return CU(cuEventCreate, event, flags); });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return inContext([&] { return CU(cuEventDestroy, event); });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return inContext([&] { return CU(cuEventQuery, event); });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return inContext([&] { return CU(cuEventSynchronize, event); });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (milliseconds == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] { return CU(cuEventElapsedTime, milliseconds, start, end); });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  if (mode == nullptr) return keep(cudaErrorInvalidValue);
  return inDriver([&] {
    auto value = static_cast<CUstreamCaptureMode>(*mode);
    const CUresult result = CU(cuThreadExchangeStreamCaptureMode, &value);
    if (result == CUDA_SUCCESS) *mode = static_cast<cudaStreamCaptureMode>(value);
    return result;
  });
}

}  // extern "C"
