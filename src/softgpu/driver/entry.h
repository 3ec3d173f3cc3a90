// What every entry point shares: checks before, the error boundary around, and the way from handles to objects.
#pragma once

#include <memory>
#include <new>
#include <system_error>

#include "softgpu/device/machine.h"

namespace tutti::softgpu {

/// The error to answer before the call does anything: not initialised, shutting down, or failure asked for by
/// SOFTGPU_FAIL. `name` has no version suffix.
CUresult checkCall(const char* name);
/// Logs the name once and answers CUDA_ERROR_NOT_SUPPORTED.
CUresult unsupported(const char* name);

/// Runs `body` as the entry point `name`; no exception leaves.
template <class Body>
CUresult call(const char* name, Body&& body) {
  try {
    if (const CUresult error = checkCall(name); error != CUDA_SUCCESS) return error;
    return body();
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const std::system_error&) {
    return CUDA_ERROR_OPERATING_SYSTEM;  // such as no thread for the engine
  } catch (...) {
    return CUDA_ERROR_UNKNOWN;
  }
}

/// The same for calls that need a current, healthy context.
template <class Body>
CUresult callInContext(const char* name, Body&& body) {
  return call(name, [&]() -> CUresult {
    Context* context = currentContext();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (const CUresult error = context->error(); error != CUDA_SUCCESS) return error;
    return body(*context);
  });
}

/// The stream behind a handle, the default streams included; null if there is none.
std::shared_ptr<Stream> streamOf(Context& context, CUstream handle);
/// Null for a context that never existed or is gone.
Context* contextOf(CUcontext handle);
/// Null for a bad ordinal.
Device* deviceOf(CUdevice ordinal);

/// Runs `body` on the device, for entry points with a device argument.
template <class Body>
CUresult withDevice(const char* name, CUdevice ordinal, Body&& body) {
  return call(name, [&]() -> CUresult {
    Device* device = deviceOf(ordinal);
    return device == nullptr ? CUDA_ERROR_INVALID_DEVICE : body(*device);
  });
}

/// Runs `body` on the stream, for entry points with a stream argument.
template <class Body>
CUresult callOnStream(const char* name, CUstream handle, Body&& body) {
  return callInContext(name, [&](Context& context) -> CUresult {
    const std::shared_ptr<Stream> stream = streamOf(context, handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return body(*stream);
  });
}

inline std::uintptr_t addressOf(CUdeviceptr pointer) {
  return static_cast<std::uintptr_t>(pointer);
}
inline char* bytesOf(CUdeviceptr pointer) {
  return reinterpret_cast<char*>(addressOf(pointer));
}

}  // namespace tutti::softgpu
