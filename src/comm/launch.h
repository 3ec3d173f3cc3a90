// Puts prepared kernels on the application's stream, one communicator's after the other.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string_view>

#include "base/abort.h"
#include "base/status.h"
#include "device/work.h"
#include "gpu/capture.h"
#include "gpu/context.h"
#include "gpu/event.h"
#include "gpu/stream.h"

namespace tutti {

/// One kernel, ready to go. `args` and `operation` are only read during launch().
struct PreparedLaunch {
  CUfunction function = nullptr;
  std::string_view operation;               ///< "AllReduce", for errors
  unsigned grid = 1;                        ///< blocks: channels
  unsigned block = 32;                      ///< threads per block
  const device::KernelArgs* args = nullptr;
};

/// Launches the kernels of one communicator on its device. Kernels of one communicator share its connections, so they
/// run one after the other even when the application uses several streams, captures some of them in graphs and replays
/// those between other launches: each launch and each replay waits for the one before it, in the order of the
/// application's calls. Its host thread never waits. Used by one thread at a time.
///
/// One event carries the order: whatever runs waits for its last record and then records it; in a graph, nodes do that
/// at every replay.
class Launcher {
 public:
  /// The device must outlive the launcher.
  static Result<std::unique_ptr<Launcher>> create(const Device& device);

  /// Launches in order. `streams` are all streams that the application gave in this group, in order of appearance, at
  /// least one: the kernels run on the last one, wait for all, and all wait for the kernels. The caller's current
  /// device does not matter and does not change. Errors: ncclInvalidUsage if some streams are captured and others not
  /// (or by another graph), ncclUnhandledCudaError naming the operation.
  Status launch(std::span<const PreparedLaunch> launches, std::span<const CUstream> streams);
  Status launch(std::span<const PreparedLaunch> launches, CUstream stream) { return launch(launches, {&stream, 1}); }

  /// Waits on the host until the last launch, or the last replay of a graph with launches, is done.
  Status drain(const Abort* abort, std::chrono::milliseconds bound = kDeviceWaitBound) const;

  /// Whether any launch went into a graph so far.
  bool everCaptured() const { return capturedId_ != 0; }

 private:
  Launcher(const Device& device, Event done, Event capturedDone, Event join)
      : device_(&device), done_(std::move(done)), capturedDone_(std::move(capturedDone)), join_(std::move(join)) {}
  Result<CaptureState> commonCapture(std::span<const CUstream> streams) const;
  Status orderBefore(const CaptureState& capture, std::span<const CUstream> streams);
  Status orderAfter(const CaptureState& capture, std::span<const CUstream> streams);
  Status launchOne(const PreparedLaunch& launch, CUstream stream) const;

  const Device* device_;
  Event done_;            ///< end of the last launch or replay
  Event capturedDone_;    ///< last launch inside capture capturedId_
  Event join_;            ///< scratch: brings the other streams of a group in
  unsigned long long lastStream_ = 0;  ///< id of the stream of the last launch outside a capture, 0: unknown or none
  unsigned long long capturedId_ = 0;  ///< the last capture with launches; from then on, replays may come at any time
};

}  // namespace tutti
