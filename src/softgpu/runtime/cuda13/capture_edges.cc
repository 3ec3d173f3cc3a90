// What a capture hangs its next nodes on: edges, which carry data. Built twice: as it stands, and for the per-thread
// default stream (_ptsz).
#include "softgpu/runtime/cuda13/names.h"

using namespace tutti::softgpu;

extern "C" {

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* count) {
  if (status == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] {
    CUstreamCaptureStatus answer = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t number = 0;
    const CUresult result = CU(cuStreamGetCaptureInfo, toDriver(stream), &answer, &number, graph, dependencies,
                               reinterpret_cast<const CUgraphEdgeData**>(edges), count);
    if (result != CUDA_SUCCESS) return result;
    *status = static_cast<cudaStreamCaptureStatus>(answer);
    if (id != nullptr && answer == CU_STREAM_CAPTURE_STATUS_ACTIVE) *id = number;
    return result;
  });
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                const cudaGraphEdgeData* edges, size_t count, unsigned int flags) {
  return inContext([&] {
    return CU(cuStreamUpdateCaptureDependencies, toDriver(stream), dependencies,
              reinterpret_cast<const CUgraphEdgeData*>(edges), count, flags);
  });
}

}  // extern "C"
