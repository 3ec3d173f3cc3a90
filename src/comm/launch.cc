#include "comm/launch.h"

#include <string>

#include "base/log.h"

namespace tutti {

Result<std::unique_ptr<Launcher>> Launcher::create(const Device& device) {
  ASSIGN(Event done, Event::create(device));
  ASSIGN(Event capturedDone, Event::create(device));
  ASSIGN(Event join, Event::create(device));
  return std::unique_ptr<Launcher>(new Launcher(device, std::move(done), std::move(capturedDone), std::move(join)));
}

Result<CaptureState> Launcher::commonCapture(std::span<const CUstream> streams) const {
  CaptureState common;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    ASSIGN(const CaptureState state, captureState(device_->driver(), streams[i]));
    if (i == 0) common = state;
    if (state.capturing == common.capturing && state.id == common.id) continue;
    return fail(ncclInvalidUsage,
                "The streams given to one communicator in one group must all be captured by the same graph, or none of "
                "them (stream {} of {} on device {} differs)",
                i, streams.size(), device_->ordinal());
  }
  return common;
}

Status Launcher::orderBefore(const CaptureState& capture, std::span<const CUstream> streams) {
  const CUstream main = streams.back();
  for (const CUstream other : streams.first(streams.size() - 1)) {
    if (other == main) continue;
    TRY(join_.record(other));
    TRY(join_.waitOn(main));
  }
  if (capture.capturing) {
    const bool sameCapture = capture.id == capturedId_;
    return sameCapture ? capturedDone_.waitOn(main) : waitAtReplay(*device_, capture, main, done_);
  }
  ASSIGN(const unsigned long long id, streamId(device_->driver(), main));
  const bool ordered = !everCaptured() && id != 0 && id == lastStream_;
  return ordered ? Status() : done_.waitOn(main);
}

Status Launcher::orderAfter(const CaptureState& capture, std::span<const CUstream> streams) {
  const CUstream main = streams.back();
  Event& mark = capture.capturing ? capturedDone_ : done_;
  if (capture.capturing) TRY(recordAtReplay(*device_, capture, main, done_));
  // Recorded now and not when the next launch finds another stream: the application may have destroyed this one then.
  TRY(mark.record(main));
  if (capture.capturing) {
    capturedId_ = capture.id;
  } else {
    ASSIGN(lastStream_, streamId(device_->driver(), main));
  }
  for (const CUstream other : streams.first(streams.size() - 1)) {
    if (other != main) TRY(mark.waitOn(other));
  }
  return {};
}

Status Launcher::launchOne(const PreparedLaunch& launch, CUstream stream) const {
  // cuLaunchKernel copies the parameters before it returns and never writes to them.
  void* params[] = {const_cast<device::KernelArgs*>(launch.args)};
  const CUresult result = device_->driver().cuLaunchKernel(launch.function, launch.grid, 1, 1, launch.block, 1, 1, 0,
                                                           stream, params, nullptr);
  if (result == CUDA_SUCCESS) return {};
  return checkCu(device_->driver(), result,
                 CuCall{"cuLaunchKernel", device_->ordinal(), 0, "operation " + std::string(launch.operation)});
}

Status Launcher::launch(std::span<const PreparedLaunch> launches, std::span<const CUstream> streams) {
  if (streams.empty()) return fail(ncclInternalError, "A launch needs a stream (device {})", device_->ordinal());
  ASSIGN(const ContextGuard guard, device_->enter());
  ASSIGN(const CaptureState capture, commonCapture(streams));
  TRY(orderBefore(capture, streams));
  for (const PreparedLaunch& one : launches) TRY(launchOne(one, streams.back()));
  return orderAfter(capture, streams);
}

Status Launcher::drain(const Abort* abort, std::chrono::milliseconds bound) const {
  return done_.wait(abort, bound);
}

}  // namespace tutti
