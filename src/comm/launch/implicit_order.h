// The order in which kernels of different communicators begin on a device: that of the application's calls.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "base/status.h"
#include "comm/launch/launch_order.h"
#include "gpu/capture.h"

namespace tutti::comm {

/// Kernels of collectives wait on the device for those of other ranks. Where a device has no room for two of them, and
/// two ranks begin two communicators' kernels in different order, all wait for ever. Here each launch of a device waits
/// until the one before it has begun, whatever their streams: ranks that call communicators in the same order begin
/// their kernels in the same order. Where the driver cannot say when a kernel has begun, and in graphs, it waits until
/// that has ended. Of a process and a device; any thread.
class ImplicitOrder {
 public:
  /// The device must outlive the result. Errors: the driver's.
  static Result<std::unique_ptr<ImplicitOrder>> create(const gpu::Device& device);

  /// A launch of the device, until it is on its stream: other threads' wait meanwhile. Must not outlive the order.
  class Turn {
   public:
    /// What the last kernel of the launch has to record when it begins (gpu::KernelLaunch::begun); null: nothing.
    CUevent begun() const {
      return capture_.capturing || !order_->tellsBegin_ ? nullptr : order_->order_->last().get();
    }
    /// All is on the stream. `recorded`: begun() will be. Errors: the driver's.
    Status end(bool recorded);

   private:
    friend class ImplicitOrder;
    Turn(ImplicitOrder& order, const gpu::CaptureState& capture, CUstream main)
        : order_(&order), lock_(order.mutex_), capture_(capture), main_(main) {}
    ImplicitOrder* order_;
    std::unique_lock<std::mutex> lock_;
    gpu::CaptureState capture_;
    CUstream main_;
  };

  /// Makes what comes next on `main`, whose state `capture` is, wait for the launch before it. The device's context is
  /// current. Errors: the driver's.
  Result<Turn> begin(const gpu::CaptureState& capture, CUstream main);

 private:
  ImplicitOrder(std::shared_ptr<LaunchOrder> order, bool tellsBegin)
      : order_(std::move(order)), tellsBegin_(tellsBegin) {}
  std::mutex mutex_;
  const std::shared_ptr<LaunchOrder> order_;
  const bool tellsBegin_;
};

}  // namespace tutti::comm
