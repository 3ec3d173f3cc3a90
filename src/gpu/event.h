// CUDA events: how work on one stream waits for work on another, and when a stream came to a point.
#pragma once

#include <chrono>

#include "base/handle.h"
#include "base/ranks/abort.h"
#include "base/status.h"
#include "gpu/context.h"

namespace tutti::gpu {

namespace detail {
struct EventTraits : DeviceTraits<CUevent> {
  static void close(Type held);
};
}  // namespace detail

/// Owns an event. The device must outlive it. record() and waitOn() need the device's context current. Not
/// thread-safe.
class Event {
 public:
  /// Without timing.
  static Result<Event> create(const Device& device);
  /// With timing, for secondsSince(). ncclUnhandledCudaError where the driver has none.
  static Result<Event> createTimed(const Device& device);
  CUevent get() const { return handle_.get().raw; }

  /// Marks the point that `stream` has reached. On a capturing stream the mark is part of that capture.
  Status record(CUstream stream);
  /// Makes later work of `stream` wait for the last record; no wait if there was none.
  Status waitOn(CUstream stream) const;
  /// Whether the last record has been passed (true if there was none).
  Result<bool> done() const;
  /// Seconds from the last record of `earlier` to ours, below 0 the other way round. Both are timed, and done. The
  /// device's context is current.
  Result<double> secondsSince(const Event& earlier) const;
  /// Host wait for the last record; leaves when `abort` (may be null) is raised or `bound` has passed.
  Status wait(const Abort* abort, std::chrono::milliseconds bound = kDeviceWaitBound) const;
  /// The same where it is no error that `bound` passes: whether the last record was passed in time.
  Result<bool> doneWithin(std::chrono::milliseconds bound) const;

 private:
  explicit Event(detail::EventTraits::Type raw) : handle_(raw) {}
  const Device& device() const { return *handle_.get().device; }
  Handle<detail::EventTraits> handle_;
};

}  // namespace tutti::gpu
