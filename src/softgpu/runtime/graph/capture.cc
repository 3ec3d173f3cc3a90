// Stream capture and graph launch. Built twice: as it stands, and for the per-thread default stream (_ptsz).
#include "softgpu/runtime/api.h"

using namespace tutti::softgpu;

static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData));
static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS));

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return inContext([&] { return CU(cuStreamBeginCapture, toDriver(stream), static_cast<CUstreamCaptureMode>(mode)); });
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                          const cudaGraphEdgeData* edges, size_t count, cudaStreamCaptureMode mode) {
  return inContext([&] {
    return CU(cuStreamBeginCaptureToGraph, toDriver(stream), graph, dependencies,
              reinterpret_cast<const CUgraphEdgeData*>(edges), count, static_cast<CUstreamCaptureMode>(mode));
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return inContext([&] { return CU(cuStreamEndCapture, toDriver(stream), graph); });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  if (status == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] {
    CUstreamCaptureStatus answer = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult result = CU(cuStreamIsCapturing, toDriver(stream), &answer);
    if (result == CUDA_SUCCESS) *status = static_cast<cudaStreamCaptureStatus>(answer);
    return result;
  });
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* exec, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* parameters) {
  if (exec == nullptr || parameters == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] {
    return CU(cuGraphInstantiateWithParams, exec, graph, reinterpret_cast<CUDA_GRAPH_INSTANTIATE_PARAMS*>(parameters));
  });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  return inContext([&] { return CU(cuGraphUpload, exec, toDriver(stream)); });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return inContext([&] { return CU(cuGraphLaunch, exec, toDriver(stream)); });
}

}  // extern "C"
