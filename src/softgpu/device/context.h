// Contexts: a device seen by a thread, with its default stream and its sticky error.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "softgpu/memory/cuda_types.h"

namespace tutti::softgpu {

class Device;
class Stream;

/// A CUcontext. Guarded by the machine's lock but for the error.
class Context {
 public:
  Context(Device& device, bool primary);
  Device& device() const { return device_; }
  bool primary() const { return primary_; }
  std::uint64_t id() const { return id_; }
  CUcontext handle() { return reinterpret_cast<CUcontext>(this); }

  /// The first error of work on this context; all later calls on it answer with it.
  CUresult error() const { return error_.load(std::memory_order_acquire); }
  void setError(CUresult error);
  void clearError() { error_.store(CUDA_SUCCESS); }

  /// The legacy default stream.
  const std::shared_ptr<Stream>& legacy() const { return legacy_; }
  /// The calling thread's default stream, created on first use.
  std::shared_ptr<Stream> perThread();
  /// Every live stream of this context but the legacy one. Takes no lock: the caller holds the machine's.
  std::vector<std::shared_ptr<Stream>> liveStreams();
  void adopt(const std::shared_ptr<Stream>& stream) { streams_.push_back(stream); }
  /// Waits for all work submitted so far.
  CUresult synchronize();
  void makeLegacyStream();

  unsigned flags = 0;
  std::set<const Context*> peers;  ///< contexts whose memory this one was allowed to reach
  int retains = 0;                 ///< primary: cuDevicePrimaryCtxRetain; others: 1 until destroyed

 private:
  Device& device_;
  bool primary_;
  std::uint64_t id_;
  std::atomic<CUresult> error_{CUDA_SUCCESS};
  std::shared_ptr<Stream> legacy_;
  std::vector<std::weak_ptr<Stream>> streams_;
};

/// The calling thread's current context, null if none.
Context* currentContext();
/// Replaces the top of the calling thread's stack; null empties it by one.
void setCurrentContext(Context* context);
void pushContext(Context* context);
/// Null when the stack is empty.
Context* popContext();

}  // namespace tutti::softgpu
