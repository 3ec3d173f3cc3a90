// Threads on which functions of the application run: never one that attends to an engine.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

#include "softgpu/exec/host_calls.h"
#include "softgpu/exec/operation.h"

namespace tutti::softgpu {

/// Runs functions one after the other, in the order in which they were posted. A device has one for the host functions
/// of its streams, the machine one for the destructors of user objects. Its thread is started on first use and never
/// ends, so neither may the object.
class CallbackThread {
 public:
  /// Calls the function later, unless it has been withdrawn by then, and in any case `after`, if any. Any thread,
  /// whatever locks it holds. `calls` lives as long as this.
  void post(HostCalls& calls, const HostOperation& call, std::function<void()> after = {});

 private:
  struct Call {
    HostCalls* calls;
    HostOperation call;
    std::function<void()> after;
  };
  void start();
  void loop();
  std::mutex lock_;
  bool started_ = false;
  std::condition_variable posted_;
  std::deque<Call> calls_;
};

}  // namespace tutti::softgpu
