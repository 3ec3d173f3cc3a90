// The thread of a device on which host functions of streams run.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>

#include "softgpu/core/operation.h"

namespace tutti::softgpu {

class Engine;

class CallbackThread {
 public:
  explicit CallbackThread(Engine& engine) : engine_(engine) {}
  void start();
  /// Calls the function later, then sets `*done` and wakes the engine.
  void post(const HostOperation& call, std::shared_ptr<std::atomic<bool>> done);

 private:
  struct Call {
    HostOperation call;
    std::shared_ptr<std::atomic<bool>> done;
  };
  void loop();
  Engine& engine_;
  std::mutex lock_;
  std::condition_variable posted_;
  std::deque<Call> calls_;
};

}  // namespace tutti::softgpu
