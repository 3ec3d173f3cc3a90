// The frame of every runtime call: the driver is there, the thread has a context, the result is a cudaError_t that
// cudaGetLastError remembers.
#pragma once

#include <driver_types.h>

#include <cstdint>

#include "softgpu/runtime/driver.h"

namespace tutti::softgpu {

// Each source's own: sources of both kinds are linked together, and a linker keeps only one of several inline
// functions.
#ifdef SOFTGPU_PER_THREAD_DEFAULT_STREAM
constexpr bool kPerThreadDefaultStream = true;
#else
constexpr bool kPerThreadDefaultStream = false;
#endif

/// The runtime's number for a driver result. The two enumerations agree but for the codes that one of them lacks.
cudaError_t toRuntimeError(CUresult result);

/// Keeps `error` for cudaGetLastError of this thread unless it is success, and returns it. "Not ready" is an answer,
/// not an error, and is not kept.
cudaError_t keep(cudaError_t error);
inline cudaError_t keep(CUresult result) {
  return keep(toRuntimeError(result));
}

/// This thread's last error; `clear` sets it back to success.
cudaError_t lastError(bool clear);

/// Success when the driver is loaded and initialised.
cudaError_t ensureDriver();

/// Makes sure that this thread has a context: its own choice (driver calls), else the primary one of its device.
cudaError_t ensureContext();

/// The device of the thread's context, or the one cudaSetDevice chose. Needs no context.
int currentDevice();

/// Chooses the device of this thread and makes its primary context current.
cudaError_t selectDevice(int device);

/// Destroys the primary context of the current device; the next call of any thread makes a new one.
cudaError_t resetCurrentDevice();

/// Success when `device` is an ordinal of this process; else cudaErrorInvalidDevice (or what keeps the driver away).
cudaError_t checkDevice(int device);

/// Runs `body` (returns CUresult or cudaError_t) with a context current.
template <class Body>
cudaError_t inContext(Body body) {
  if (const cudaError_t error = ensureContext(); error != cudaSuccess) return keep(error);
  return keep(body());
}

/// Runs `body` (returns CUresult or cudaError_t) with the driver initialised, without touching contexts.
template <class Body>
cudaError_t inDriver(Body body) {
  if (const cudaError_t error = ensureDriver(); error != cudaSuccess) return keep(error);
  return keep(body());
}

inline CUdeviceptr toDevice(const void* pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

/// The driver's stream for a runtime stream: handle 0 means the legacy or the per-thread default stream, as the
/// application was compiled; 1 and 2 name them and pass through. Each source's own, like kPerThreadDefaultStream.
static inline CUstream toDriver(cudaStream_t stream) {
  if (stream != nullptr) return stream;
  return kPerThreadDefaultStream ? CU_STREAM_PER_THREAD : nullptr;
}

}  // namespace tutti::softgpu
