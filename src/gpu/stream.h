// CUDA streams: our own, and questions about the application's.
#pragma once

#include <chrono>
#include <functional>

#include "base/handle.h"
#include "base/ranks/abort.h"
#include "base/status.h"
#include "gpu/context.h"

namespace tutti::gpu {

namespace detail {
struct StreamTraits : DeviceTraits<CUstream> {
  static void close(Type held);
};

/// Polls `query` until it says something other than "not ready"; false where `bound` has passed before. The context
/// must be current. Errors: the status of `abort` (may be null) where that is raised, and the query's.
Result<bool> pollDevice(const Device& device, const char* call, const Abort* abort, std::chrono::milliseconds bound,
                        const std::function<CUresult()>& query);
/// The same where it is an error that `bound` passes. See waitStream().
Status waitDevice(const Device& device, const char* call, const Abort* abort, std::chrono::milliseconds bound,
                  const std::function<CUresult()>& query);
}  // namespace detail

/// Owns a non-blocking stream. The device must outlive it. Thread-safe.
class Stream {
 public:
  static Result<Stream> create(const Device& device);
  CUstream get() const { return handle_.get().raw; }

 private:
  explicit Stream(detail::StreamTraits::Type raw) : handle_(raw) {}
  Handle<detail::StreamTraits> handle_;
};

/// A number that no other stream of the process has or will have; 0 where the driver cannot tell. Context must be
/// current.
Result<unsigned long long> streamId(const Driver& driver, CUstream stream);

/// Waits until everything submitted to `stream` is done, polling, so that it leaves when `abort` (may be null) is
/// raised (its status) or `bound` has passed (ncclSystemError). Switches context itself.
Status waitStream(const Device& device, CUstream stream, const Abort* abort,
                  std::chrono::milliseconds bound = kDeviceWaitBound);

}  // namespace tutti::gpu
