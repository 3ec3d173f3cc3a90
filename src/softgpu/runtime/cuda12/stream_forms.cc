// Older forms of calls with a stream: without the data of edges, with a device for a place of memory, with the index of
// a copy. Built twice: as it stands, and for the per-thread default stream (_ptsz).
#include <cstdint>

#include "softgpu/runtime/call.h"
#include "softgpu/runtime/cuda12/place.h"
#include "softgpu/runtime/stream_call.h"

using namespace tutti::softgpu;

extern "C" {

cudaError_t SOFTGPU_STREAM_CALL(cudaStreamGetCaptureInfo_v3)(cudaStream_t, cudaStreamCaptureStatus*,
                                                             unsigned long long*, cudaGraph_t*, const cudaGraphNode_t**,
                                                             const cudaGraphEdgeData**, size_t*);
cudaError_t SOFTGPU_STREAM_CALL(cudaStreamUpdateCaptureDependencies_v2)(cudaStream_t, cudaGraphNode_t*,
                                                                        const cudaGraphEdgeData*, size_t, unsigned);
cudaError_t SOFTGPU_STREAM_CALL(cudaMemPrefetchAsync_v2)(const void*, size_t, cudaMemLocation, unsigned, cudaStream_t);
cudaError_t SOFTGPU_STREAM_CALL(softgpuMemcpyBatchAsync)(void* const*, const void* const*, const size_t*, size_t,
                                                         cudaMemcpyAttributes*, size_t*, size_t, cudaStream_t);

cudaError_t SOFTGPU_STREAM_CALL(cudaStreamGetCaptureInfo_v2)(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                                             unsigned long long* id, cudaGraph_t* graph,
                                                             const cudaGraphNode_t** dependencies, size_t* count) {
  return SOFTGPU_STREAM_CALL(cudaStreamGetCaptureInfo_v3)(stream, status, id, graph, dependencies, nullptr, count);
}

cudaError_t SOFTGPU_STREAM_CALL(cudaStreamGetCaptureInfo)(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                                          unsigned long long* id) {
  return SOFTGPU_STREAM_CALL(cudaStreamGetCaptureInfo_v3)(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}

cudaError_t SOFTGPU_STREAM_CALL(cudaStreamUpdateCaptureDependencies)(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                                     size_t count, unsigned flags) {
  return SOFTGPU_STREAM_CALL(cudaStreamUpdateCaptureDependencies_v2)(stream, dependencies, nullptr, count, flags);
}

cudaError_t SOFTGPU_STREAM_CALL(cudaMemPrefetchAsync)(const void* pointer, size_t count, int device,
                                                      cudaStream_t stream) {
  return SOFTGPU_STREAM_CALL(cudaMemPrefetchAsync_v2)(pointer, count, cuda12::placeOf(device), 0, stream);
}

cudaError_t SOFTGPU_STREAM_CALL(cudaMemcpyBatchAsync)(void** to, void** from, size_t* sizes, size_t count,
                                                      cudaMemcpyAttributes* attributes, size_t* attributeIndices,
                                                      size_t attributeCount, size_t* failed, cudaStream_t stream) {
  const cudaError_t error = SOFTGPU_STREAM_CALL(softgpuMemcpyBatchAsync)(to, from, sizes, count, attributes,
                                                                         attributeIndices, attributeCount, stream);
  // The driver does not tell which copy it was: this number stands for none in particular.
  if (error != cudaSuccess && failed != nullptr) *failed = SIZE_MAX;
  return error;
}

}  // extern "C"
