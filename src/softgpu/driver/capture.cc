// Stream capture.
#include "softgpu/device/capture.h"

#include "softgpu/driver/entry.h"

using namespace tutti::softgpu;

namespace {

CUresult begin(const char* name, CUstream handle, CUstreamCaptureMode mode, std::shared_ptr<Graph> graph,
               const std::vector<Node*>& after) {
  return callOnStream(name, handle, [&](Stream& stream) -> CUresult {
    const bool given = graph != nullptr;
    const CUresult result = beginCapture(stream, mode, graph, after);
    // The program may ask for the graph while it grows (cuStreamGetCaptureInfo), so it has a handle from now on.
    if (result == CUDA_SUCCESS && !given) machine().graphs.add(stream.capture->graph);
    return result;
  });
}

struct CaptureInfo {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  std::uint64_t id = 0;
  Graph* graph = nullptr;
  const CUgraphNode* after = nullptr;
  std::size_t afterCount = 0;
};

CaptureInfo inspect(Stream& stream) {
  std::lock_guard<std::mutex> guard(machine().lock);
  CaptureInfo info;
  if (stream.capture == nullptr) return info;
  info.status = stream.capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  info.id = stream.capture->id;
  info.graph = stream.capture->graph.get();
  info.after = reinterpret_cast<const CUgraphNode*>(stream.captureAfter.data());
  info.afterCount = stream.captureAfter.size();
  return info;
}

}  // namespace

extern "C" {

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return begin("cuStreamBeginCapture", stream, mode, nullptr, {});
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData*,
                                     size_t count, CUstreamCaptureMode mode) {
  if (!machineExists()) return CUDA_ERROR_NOT_INITIALIZED;
  auto found = machine().graphs.find(graph);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto* nodes = reinterpret_cast<Node* const*>(after);
  return begin("cuStreamBeginCaptureToGraph", stream, mode, std::move(found), {nodes, nodes + count});
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph* result) {
  return callOnStream("cuStreamEndCapture", handle, [&](Stream& stream) -> CUresult {
    const Graph* captured = inspect(stream).graph;
    std::shared_ptr<Graph> graph;
    const CUresult error = endCapture(stream, &graph);
    if (error == CUDA_SUCCESS) {
      if (result != nullptr) *result = reinterpret_cast<CUgraph>(graph.get());
    } else {
      if (error != CUDA_ERROR_ILLEGAL_STATE && error != CUDA_ERROR_STREAM_CAPTURE_UNMATCHED &&
          error != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD) {
        machine().graphs.take(captured);
      }
      if (result != nullptr) *result = nullptr;
    }
    return error;
  });
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  return callOnStream("cuStreamIsCapturing", handle, [&](Stream& stream) -> CUresult {
    if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *status = inspect(stream).status;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                   const CUgraphNode** after, const CUgraphEdgeData** edges, size_t* count) {
  return callOnStream("cuStreamGetCaptureInfo", handle, [&](Stream& stream) -> CUresult {
    if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CaptureInfo info = inspect(stream);
    *status = info.status;
    if (info.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
    if (id != nullptr) *id = info.id;
    if (graph != nullptr) *graph = reinterpret_cast<CUgraph>(info.graph);
    if (after != nullptr) *after = info.after;
    if (count != nullptr) *count = info.afterCount;
    if (edges != nullptr) {
      thread_local std::vector<CUgraphEdgeData> none;
      none.assign(info.afterCount, CUgraphEdgeData{});
      *edges = none.data();
    }
    return CUDA_SUCCESS;
  });
}

/// The signature without edge data, which the header of the newest version no longer declares.
__attribute__((visibility("default"))) CUresult cuStreamGetCaptureInfo_v2(CUstream stream,
                                                                          CUstreamCaptureStatus* status, cuuint64_t* id,
                                                                          CUgraph* graph, const CUgraphNode** after,
                                                                          size_t* count) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, graph, after, nullptr, count);
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode* nodes, const CUgraphEdgeData*, size_t count,
                                              unsigned int flags) {
  return callOnStream("cuStreamUpdateCaptureDependencies", handle, [&](Stream& stream) -> CUresult {
    std::lock_guard<std::mutex> guard(machine().lock);
    if (stream.capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    if (nodes == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
    std::vector<Node*> after;
    if (flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES) after = stream.captureAfter;
    for (std::size_t i = 0; i < count; ++i) {
      auto* node = reinterpret_cast<Node*>(nodes[i]);
      if (!stream.capture->graph->contains(node)) return CUDA_ERROR_INVALID_VALUE;
      after.push_back(node);
    }
    stream.captureAfter = std::move(after);
    return CUDA_SUCCESS;
  });
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return call("cuThreadExchangeStreamCaptureMode", [&]() -> CUresult {
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::swap(*mode, threadCaptureMode());
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
