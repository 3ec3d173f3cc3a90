// Copies to and from variables of GPU code. Built twice: as it stands, and for the per-thread default stream.
#include "softgpu/runtime/api.h"
#include "softgpu/runtime/code/image.h"

using namespace tutti::softgpu;

namespace {

/// Runs `copy` on the place of `count` bytes at `offset` in the variable.
template <class Copy>
cudaError_t withPlace(const void* variable, size_t count, size_t offset, Copy copy) {
  Symbol symbol;
  const cudaError_t error = inContext([&] { return findSymbol(variable, &symbol); });
  if (error != cudaSuccess) return error;
  if (offset > symbol.bytes || count > symbol.bytes - offset) return keep(cudaErrorInvalidValue);
  return copy(reinterpret_cast<void*>(symbol.address + offset));
}

bool leadsToDevice(cudaMemcpyKind kind) {
  return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
}

bool comesFromDevice(cudaMemcpyKind kind) {
  return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
}

}  // namespace

extern "C" {

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t count, size_t offset, cudaMemcpyKind kind) {
  if (!leadsToDevice(kind)) return keep(cudaErrorInvalidMemcpyDirection);
  return withPlace(symbol, count, offset, [&](void* to) { return cudaMemcpy(to, from, count, kind); });
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t count, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
  if (!leadsToDevice(kind)) return keep(cudaErrorInvalidMemcpyDirection);
  return withPlace(symbol, count, offset, [&](void* to) { return cudaMemcpyAsync(to, from, count, kind, stream); });
}

cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind) {
  if (!comesFromDevice(kind)) return keep(cudaErrorInvalidMemcpyDirection);
  return withPlace(symbol, count, offset, [&](const void* from) { return cudaMemcpy(to, from, count, kind); });
}

cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind,
                                      cudaStream_t stream) {
  if (!comesFromDevice(kind)) return keep(cudaErrorInvalidMemcpyDirection);
  return withPlace(symbol, count, offset,
                   [&](const void* from) { return cudaMemcpyAsync(to, from, count, kind, stream); });
}

}  // extern "C"
