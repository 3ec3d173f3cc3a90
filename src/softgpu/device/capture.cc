#include "softgpu/device/capture.h"

#include <algorithm>

#include "softgpu/device/machine.h"
#include "softgpu/say.h"

namespace tutti::softgpu {
namespace {

CUgraphNodeType nodeType(const Operation& operation) {
  struct Visitor {
    CUgraphNodeType operator()(const EmptyOperation&) { return CU_GRAPH_NODE_TYPE_EMPTY; }
    CUgraphNodeType operator()(const CopyOperation&) { return CU_GRAPH_NODE_TYPE_MEMCPY; }
    CUgraphNodeType operator()(const FillOperation&) { return CU_GRAPH_NODE_TYPE_MEMSET; }
    CUgraphNodeType operator()(const HostOperation&) { return CU_GRAPH_NODE_TYPE_HOST; }
    CUgraphNodeType operator()(const RecordOperation&) { return CU_GRAPH_NODE_TYPE_EVENT_RECORD; }
    CUgraphNodeType operator()(const WaitOperation&) { return CU_GRAPH_NODE_TYPE_WAIT_EVENT; }
    CUgraphNodeType operator()(const WordOperation&) { return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP; }
    CUgraphNodeType operator()(const KernelOperation&) { return CU_GRAPH_NODE_TYPE_KERNEL; }
    CUgraphNodeType operator()(const FreeOperation&) { return CU_GRAPH_NODE_TYPE_MEM_FREE; }
    CUgraphNodeType operator()(const GraphOperation&) { return CU_GRAPH_NODE_TYPE_GRAPH; }
  };
  return std::visit(Visitor{}, operation);
}

void addUnique(std::vector<Node*>& list, const std::vector<Node*>& more) {
  for (Node* node : more) {
    if (std::find(list.begin(), list.end(), node) == list.end()) list.push_back(node);
  }
}

/// Every node without a successor must be reachable from the origin's end.
bool allJoined(const Capture& capture) {
  for (const auto& stream : capture.streams) {
    for (const Node* last : stream->captureAfter) {
      const auto& ends = capture.origin->captureAfter;
      const bool isEnd = std::find(ends.begin(), ends.end(), last) != ends.end();
      bool followed = false;
      for (const auto& node : capture.graph->nodes()) {
        followed |= std::find(node->after.begin(), node->after.end(), last) != node->after.end();
      }
      if (!isEnd && !followed) return false;
    }
  }
  return true;
}

}  // namespace

CUstreamCaptureMode& threadCaptureMode() {
  thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

CUresult beginCapture(Stream& stream, CUstreamCaptureMode mode, std::shared_ptr<Graph> graph,
                      const std::vector<Node*>& after) {
  static std::atomic<std::uint64_t> ids{0};
  std::lock_guard<std::mutex> guard(machine().lock);
  if (&stream == stream.context().legacy().get()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream.capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  if (graph != nullptr) capture->graph = std::move(graph);
  capture->id = ids.fetch_add(1) + 1;
  capture->mode = mode;
  capture->origin = &stream;
  capture->streams.push_back(stream.shared_from_this());
  stream.captureAfter = after;
  stream.capture = std::move(capture);
  return CUDA_SUCCESS;
}

CUresult endCapture(Stream& stream, std::shared_ptr<Graph>* graph) {
  std::lock_guard<std::mutex> guard(machine().lock);
  const std::shared_ptr<Capture> capture = stream.capture;
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != &stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != std::this_thread::get_id()) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  const bool joined = allJoined(*capture);
  capture->ended = true;
  for (const auto& member : capture->streams) {
    member->capture = nullptr;
    member->captureAfter.clear();
  }
  capture->streams.clear();
  // Events recorded in the capture remember it, and must not keep the graph, whose user objects may own these events.
  const std::shared_ptr<Graph> captured = std::move(capture->graph);
  if (capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!joined) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  *graph = captured;
  return CUDA_SUCCESS;
}

CUresult captureOperation(Stream& stream, const Operation& operation) {
  Capture& capture = *stream.capture;
  if (capture.invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (const auto* record = std::get_if<RecordOperation>(&operation)) {
    record->event->capture = stream.capture;
    record->event->captureAfter = stream.captureAfter;
    return CUDA_SUCCESS;
  }
  if (const auto* wait = std::get_if<WaitOperation>(&operation)) {
    if (wait->event->capture != stream.capture) {
      capture.invalid = true;
      return wait->event->capture == nullptr ? CUDA_ERROR_STREAM_CAPTURE_ISOLATION : CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    addUnique(stream.captureAfter, wait->event->captureAfter);
    return CUDA_SUCCESS;
  }
  if (const auto* kernel = std::get_if<KernelOperation>(&operation); kernel != nullptr && kernel->begun != nullptr) {
    say("kernel %s: a launch that is captured cannot record an event when its blocks have begun", kernel->kernel->name);
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  stream.captureAfter = {capture.graph->add(nodeType(operation), operation, &stream.context(), stream.captureAfter)};
  return CUDA_SUCCESS;
}

CUresult joinCapture(Stream& stream, Event& event) {
  if (event.capture->ended) return CUDA_ERROR_CAPTURED_EVENT;
  if (event.capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (&stream == stream.context().legacy().get()) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  stream.capture = event.capture;
  stream.captureAfter = event.captureAfter;
  stream.capture->streams.push_back(stream.shared_from_this());
  return CUDA_SUCCESS;
}

CUresult refuseWhileCapturing(Stream& stream) {
  std::lock_guard<std::mutex> guard(machine().lock);
  if (stream.capture == nullptr) return CUDA_SUCCESS;
  stream.capture->invalid = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult refuseUnsafeCall() {
  const CUstreamCaptureMode mode = threadCaptureMode();
  if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  const auto streams = machine().streams.all();
  std::lock_guard<std::mutex> guard(machine().lock);
  for (const auto& stream : streams) {
    Capture* capture = stream->capture.get();
    if (capture == nullptr || capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    const bool mine = capture->thread == std::this_thread::get_id();
    const bool everybody = capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!mine && !everybody) continue;
    capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return CUDA_SUCCESS;
}

}  // namespace tutti::softgpu
