// Events: points in streams that others wait for, and what processes share of them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <vector>

#include "softgpu/memory/cuda_types.h"
#include "softgpu/memory/memory.h"

namespace tutti::softgpu {

class Capture;
class Context;
class Engine;
struct Node;

/// One recording of an event: done once the engine has reached it. Guarded by the machine's lock but for `done`.
struct Marker {
  std::atomic<bool> done{false};
  std::int64_t nanoseconds = 0;  ///< steady clock, valid once done
  std::vector<Engine*> waiters;
  std::condition_variable reached;
  void complete();  ///< takes the machine's lock
  /// Blocks the calling host thread until the marker is done.
  void wait();
};

/// What processes share of an interprocess event, in a memfd of its own.
struct SharedEvent {
  std::atomic<std::uint64_t> recorded;
  std::atomic<std::uint64_t> completed;
};

/// A CUevent. Guarded by the machine's lock.
class Event {
 public:
  Event(Context& context, unsigned flags) : context_(context), flags_(flags) {}
  Context& context() const { return context_; }
  bool timed() const { return (flags_ & CU_EVENT_DISABLE_TIMING) == 0; }
  unsigned flags() const { return flags_; }

  std::shared_ptr<Marker> last;         ///< null: never recorded
  std::shared_ptr<Capture> capture;     ///< recorded inside this capture …
  std::vector<Node*> captureAfter;      ///< … after these nodes
  std::shared_ptr<Backing> sharedPage;  ///< interprocess events
  SharedEvent* shared() const {
    return sharedPage == nullptr ? nullptr : reinterpret_cast<SharedEvent*>(sharedPage->base());
  }

 private:
  Context& context_;
  unsigned flags_;
};

}  // namespace tutti::softgpu
