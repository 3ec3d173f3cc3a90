// Stream capture: what is submitted becomes nodes of a graph.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "softgpu/device/graph.h"
#include "softgpu/device/stream.h"

namespace tutti::softgpu {

/// One capture sequence. Guarded by the machine's lock.
class Capture {
 public:
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  std::uint64_t id = 0;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread = std::this_thread::get_id();
  Stream* origin = nullptr;
  bool invalid = false;
  bool ended = false;
  std::vector<std::shared_ptr<Stream>> streams;  ///< all that take part, the origin first
};

/// Starts a capture; the graph may exist already (cuStreamBeginCaptureToGraph).
CUresult beginCapture(Stream& stream, CUstreamCaptureMode mode, std::shared_ptr<Graph> graph,
                      const std::vector<Node*>& after);
/// Ends it and gives the graph, null with an error.
CUresult endCapture(Stream& stream, std::shared_ptr<Graph>* graph);
/// Adds an operation of a capturing stream; the machine's lock is held.
CUresult captureOperation(Stream& stream, const Operation& operation);
/// A waiting stream joins the capture in which the event was recorded; the machine's lock is held.
CUresult joinCapture(Stream& stream, Event& event);
/// Calls that must not happen while capturing: the error to answer and the capture is void, or success.
CUresult refuseWhileCapturing(Stream& stream);
/// The same for calls without a stream that some capture modes forbid (allocation and the like).
CUresult refuseUnsafeCall();
/// The calling thread's capture mode.
CUstreamCaptureMode& threadCaptureMode();

}  // namespace tutti::softgpu
