#include "gpu/capture.h"

#include <span>

#include "base/log.h"

namespace tutti::gpu {
namespace {

/// What cuStreamGetCaptureInfo tells. `after`: the nodes that the next node of the stream will follow.
struct CaptureInfo {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  std::span<const CUgraphNode> after;
};

CUresult queryCapture(const Driver& driver, CUstream stream, CaptureInfo& info) {
  const CUgraphNode* after = nullptr;
  std::size_t count = 0;
#if CUDA_VERSION >= 13000
  // Asked for only because the call fails if an edge has data and nobody wants it.
  const CUgraphEdgeData* edges = nullptr;
  const CUresult result =
      driver.cuStreamGetCaptureInfo(stream, &info.status, &info.id, &info.graph, &after, &edges, &count);
#else
  const CUresult result = driver.cuStreamGetCaptureInfo(stream, &info.status, &info.id, &info.graph, &after, &count);
#endif
  if (after != nullptr) info.after = {after, count};
  return result;
}

Status makeNext(const Device& device, CUstream stream, CUgraphNode node, CUstreamUpdateCaptureDependencies_flags how) {
#if CUDA_VERSION >= 13000
  const CUresult result = device.driver().cuStreamUpdateCaptureDependencies(stream, &node, nullptr, 1, how);
#else
  const CUresult result = device.driver().cuStreamUpdateCaptureDependencies(stream, &node, 1, how);
#endif
  return device.check(result, "cuStreamUpdateCaptureDependencies");
}

}  // namespace

Result<CaptureState> captureState(const Driver& driver, CUstream stream) {
  CaptureInfo info;
  const CUresult result = queryCapture(driver, stream, info);
  // The legacy stream cannot be asked while another stream of its context captures; it never captures itself.
  if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) return CaptureState{};
  if (result != CUDA_SUCCESS) {
    // The first call of a launch, so it is what finds a device that failed before.
    CUdevice current = -1;
    if (driver.cuCtxGetDevice(&current) != CUDA_SUCCESS) current = -1;
    return checkCu(driver, result,
                   CuCall{"cuStreamGetCaptureInfo", current, 0, "a launch on the application's stream"});
  }
  if (info.status == CU_STREAM_CAPTURE_STATUS_INVALIDATED) {
    return fail(ncclInvalidUsage,
                "The stream's capture was invalidated by an earlier call; end it (cudaStreamEndCapture) and look for a "
                "call that is not allowed during capture");
  }
  if (info.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CaptureState{};
  return CaptureState{true, info.id, info.graph};
}

Status waitAtReplay(const Device& device, const CaptureState& capture, CUstream stream, const Event& event) {
  CUgraphNode node = nullptr;
  TRY(device.check(device.driver().cuGraphAddEventWaitNode(&node, capture.graph, nullptr, 0, event.get()),
                   "cuGraphAddEventWaitNode"));
  return makeNext(device, stream, node, CU_STREAM_ADD_CAPTURE_DEPENDENCIES);
}

Status recordAtReplay(const Device& device, const CaptureState& capture, CUstream stream, CUevent event) {
  CaptureInfo info;
  TRY(device.check(queryCapture(device.driver(), stream, info), "cuStreamGetCaptureInfo"));
  CUgraphNode node = nullptr;
  TRY(device.check(
      device.driver().cuGraphAddEventRecordNode(&node, capture.graph, info.after.data(), info.after.size(), event),
      "cuGraphAddEventRecordNode"));
  // In line, not beside: the records of one event within a graph must have an order too.
  return makeNext(device, stream, node, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
}

}  // namespace tutti::gpu
