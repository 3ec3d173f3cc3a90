#include "comm/enqueue/events/call_events.h"

#include <utility>

#include "base/log.h"
#include "comm/launch/device_pool.h"
#include "comm/plan/op.h"
#include "comm/state/communicator.h"
#include "gpu/capture.h"
#include "gpu/context.h"
#include "plugin/profiler.h"

namespace tutti::comm {

namespace {

/// Whether the call will be carried out at replays of a graph. What is wrong with the stream the launch will say.
bool isCaptured(const ncclComm& comm, CUstream stream) {
  const ErrorsAsInfo quiet;
  const gpu::Device& device = *comm.parts.device->device;
  const Result<gpu::ContextGuard> context = device.enter();
  if (!context.ok()) return false;
  const Result<gpu::CaptureState> state = gpu::captureState(device.driver(), stream);
  return state.ok() && state.value().capturing;
}

}  // namespace

GroupEvent::GroupEvent(GroupEvent&& other) noexcept
    : sink_(std::move(other.sink_)), handle_(std::exchange(other.handle_, nullptr)) {}

GroupEvent& GroupEvent::operator=(GroupEvent&& other) noexcept {
  if (this == &other) return *this;
  stop();
  sink_ = std::move(other.sink_);
  handle_ = std::exchange(other.handle_, nullptr);
  return *this;
}

void GroupEvent::begin(const ncclComm& comm, bool captured, int depth) {
  if (sink_ != nullptr) return;
  sink_ = comm.parts.events;
  plugin::Event event{};
  event.type = ncclProfileGroupApi;
  event.groupApi = {captured, depth};
  handle_ = sink_->start(event);
  sink_->state(handle_, ncclProfilerGroupStartApiStop, nullptr);
}

void GroupEvent::endBegins() const {
  if (sink_ != nullptr) sink_->state(handle_, ncclProfilerGroupEndApiStart, nullptr);
}

void GroupEvent::stop() {
  if (sink_ == nullptr) return;
  sink_->stop(std::exchange(handle_, nullptr));
  sink_.reset();
}

void CallEvent::begin(const ncclComm& comm, Op& op, GroupEvent& group, int depth, int mask) {
  if (comm.parts.events == nullptr) return;
  op.events.mask = plugin::withParents(mask);
  op.events.captured = isCaptured(comm, op.stream);
  if ((op.events.mask & ncclProfileGroupApi) != 0) group.begin(comm, op.events.captured, depth);
  plugin::Event event{};
  event.parentObj = group.handle();
  if (isPointToPoint(op.func)) {
    event.type = ncclProfileP2pApi;
    event.p2pApi = {apiFuncName(op.func).data(), op.count, datatypeName(op.datatype).data(), op.stream,
                    op.events.captured};
  } else {
    event.type = ncclProfileCollApi;
    event.collApi = {apiFuncName(op.func).data(), op.count, datatypeName(op.datatype).data(), op.root, op.stream,
                     op.events.captured};
    // Some collectives are made of messages.
    if ((op.events.mask & ncclProfileP2p) != 0 && isMessageFunc(op.func)) op.events.mask |= ncclProfileCollApi;
  }
  if ((static_cast<unsigned>(op.events.mask) & event.type) == 0) return;
  sink_ = comm.parts.events.get();
  op.events.call = handle_ = sink_->start(event);
}

void CallEvent::stop() {
  if (sink_ != nullptr) std::exchange(sink_, nullptr)->stop(handle_);
}

}  // namespace tutti::comm
