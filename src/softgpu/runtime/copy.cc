// Copies and fills. Built twice: as it stands, and for the per-thread default stream (names with _ptds and _ptsz).
#include "softgpu/runtime/api.h"
#include "softgpu/runtime/copy_shape.h"

using namespace tutti::softgpu;

namespace {

bool isKnown(const void* pointer) {
  unsigned type = 0;
  CUpointer_attribute name = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
  void* value = &type;
  return CU(cuPointerGetAttributes, 1, &name, &value, toDevice(pointer)) == CUDA_SUCCESS && type != 0;
}

/// The kind must be one of the five, and a side that it calls "device" must be memory that CUDA knows: the usual
/// mistake is a host pointer there.
cudaError_t checkKind(const void* to, const void* from, cudaMemcpyKind kind) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  const bool toDeviceSide = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool fromDeviceSide = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if ((toDeviceSide && !isKnown(to)) || (fromDeviceSide && !isKnown(from))) return cudaErrorInvalidValue;
  return cudaSuccess;
}

/// After a synchronous call for the per-thread default stream: the work was queued there, wait for it.
CUresult settle(CUresult queued, CUstream stream) {
  return queued != CUDA_SUCCESS ? queued : CU(cuStreamSynchronize, stream);
}

CUresult copyNow(void* to, const void* from, size_t count) {
  if (!kPerThreadDefaultStream) return CU(cuMemcpy, toDevice(to), toDevice(from), count);
  return settle(CU(cuMemcpyAsync, toDevice(to), toDevice(from), count, toDriver(nullptr)), toDriver(nullptr));
}

cudaError_t copyRows(void* to, Pitch toPitch, const void* from, Pitch fromPitch, Rows rows, CUstream stream) {
  return toRuntimeError(forEachRow(rows, toPitch, fromPitch, [&](size_t toOffset, size_t fromOffset, size_t bytes) {
    return CU(cuMemcpyAsync, toDevice(to) + toOffset, toDevice(from) + fromOffset, bytes, stream);
  }));
}

struct Copy2D {
  void* to;
  size_t toPitch;
  const void* from;
  size_t fromPitch;
  size_t width;
  size_t height;
  cudaMemcpyKind kind;
};

cudaError_t copy2D(const Copy2D& c, CUstream stream) {
  if (c.width == 0 || c.height == 0) return cudaSuccess;
  if (c.width > c.toPitch || c.width > c.fromPitch) return cudaErrorInvalidPitchValue;
  if (const cudaError_t error = checkKind(c.to, c.from, c.kind); error != cudaSuccess) return error;
  return copyRows(c.to, {c.toPitch, 0}, c.from, {c.fromPitch, 0}, {c.width, c.height, 1}, stream);
}

const char* at(const cudaPitchedPtr& base, const cudaPos& position) {
  return static_cast<const char*>(base.ptr) + (position.z * base.ysize + position.y) * base.pitch + position.x;
}

cudaError_t copy3D(const cudaMemcpy3DParms* p, CUstream stream) {
  if (p == nullptr) return cudaErrorInvalidValue;
  if (p->srcArray != nullptr || p->dstArray != nullptr) return cudaErrorNotSupported;
  const Rows rows{p->extent.width, p->extent.height, p->extent.depth};
  if (rows.width == 0 || rows.height == 0 || rows.depth == 0) return cudaSuccess;
  auto* to = const_cast<char*>(at(p->dstPtr, p->dstPos));
  const char* from = at(p->srcPtr, p->srcPos);
  if (const cudaError_t error = checkKind(to, from, p->kind); error != cudaSuccess) return error;
  return copyRows(to, {p->dstPtr.pitch, p->dstPtr.pitch * p->dstPtr.ysize}, from,
                  {p->srcPtr.pitch, p->srcPtr.pitch * p->srcPtr.ysize}, rows, stream);
}

cudaError_t peer3D(const cudaMemcpy3DPeerParms* p, CUstream stream) {
  if (p == nullptr) return cudaErrorInvalidValue;
  cudaMemcpy3DParms plain{};
  plain.srcArray = p->srcArray;
  plain.srcPos = p->srcPos;
  plain.srcPtr = p->srcPtr;
  plain.dstArray = p->dstArray;
  plain.dstPos = p->dstPos;
  plain.dstPtr = p->dstPtr;
  plain.extent = p->extent;
  plain.kind = cudaMemcpyDefault;
  return copy3D(&plain, stream);
}

CUresult fillRows(void* to, Pitch pitch, int value, Rows rows, CUstream stream) {
  return forEachRow(rows, pitch, pitch, [&](size_t offset, size_t, size_t bytes) {
    return CU(cuMemsetD8Async, toDevice(to) + offset, static_cast<unsigned char>(value), bytes, stream);
  });
}

CUresult fill3D(const cudaPitchedPtr& to, int value, const cudaExtent& extent, CUstream stream) {
  return fillRows(to.ptr, {to.pitch, to.pitch * to.ysize}, value, {extent.width, extent.height, extent.depth}, stream);
}

/// Runs a queued form and waits for it.
template <class Queue>
cudaError_t synchronously(Queue queue) {
  return inContext([&] {
    const cudaError_t error = queue(toDriver(nullptr));
    return error != cudaSuccess ? error : toRuntimeError(CU(cuStreamSynchronize, toDriver(nullptr)));
  });
}

}  // namespace

extern "C" {

cudaError_t cudaMemcpy(void* to, const void* from, size_t count, cudaMemcpyKind kind) {
  return inContext([&] {
    const cudaError_t error = count == 0 ? cudaSuccess : checkKind(to, from, kind);
    if (error != cudaSuccess || count == 0) return error;
    return toRuntimeError(copyNow(to, from, count));
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t count, cudaMemcpyKind kind, cudaStream_t stream) {
  return inContext([&] {
    const cudaError_t error = count == 0 ? cudaSuccess : checkKind(to, from, kind);
    if (error != cudaSuccess || count == 0) return error;
    return toRuntimeError(CU(cuMemcpyAsync, toDevice(to), toDevice(from), count, toDriver(stream)));
  });
}

cudaError_t cudaMemcpy2D(void* to, size_t toPitch, const void* from, size_t fromPitch, size_t width, size_t height,
                         cudaMemcpyKind kind) {
  return synchronously([&](CUstream stream) {
    return copy2D({to, toPitch, from, fromPitch, width, height, kind}, stream);
  });
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t toPitch, const void* from, size_t fromPitch, size_t width, size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  return inContext([&] { return copy2D({to, toPitch, from, fromPitch, width, height, kind}, toDriver(stream)); });
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* p) {
  return synchronously([&](CUstream stream) { return copy3D(p, stream); });
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* p, cudaStream_t stream) {
  return inContext([&] { return copy3D(p, toDriver(stream)); });
}

cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* p) {
  return synchronously([&](CUstream stream) { return peer3D(p, stream); });
}

cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* p, cudaStream_t stream) {
  return inContext([&] { return peer3D(p, toDriver(stream)); });
}

cudaError_t cudaMemset(void* to, int value, size_t count) {
  return inContext([&] {
    if (count == 0) return CUDA_SUCCESS;
    const auto byte = static_cast<unsigned char>(value);
    if (!kPerThreadDefaultStream) return CU(cuMemsetD8, toDevice(to), byte, count);
    return settle(CU(cuMemsetD8Async, toDevice(to), byte, count, toDriver(nullptr)), toDriver(nullptr));
  });
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t count, cudaStream_t stream) {
  return inContext([&] {
    return count == 0 ? CUDA_SUCCESS
                      : CU(cuMemsetD8Async, toDevice(to), static_cast<unsigned char>(value), count, toDriver(stream));
  });
}

cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return synchronously([&](CUstream stream) {
    return toRuntimeError(fillRows(to, {pitch, 0}, value, {width, height, 1}, stream));
  });
}

cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
  return inContext([&] { return fillRows(to, {pitch, 0}, value, {width, height, 1}, toDriver(stream)); });
}

cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent) {
  return synchronously([&](CUstream stream) { return toRuntimeError(fill3D(to, value, extent, stream)); });
}

cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream) {
  return inContext([&] { return fill3D(to, value, extent, toDriver(stream)); });
}

}  // extern "C"
