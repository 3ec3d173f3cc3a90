// Holds a stream until let go.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "gpu/driver.h"

namespace tutti::test {

/// Lets go when it ends. It must outlive what it holds.
class StreamGate {
 public:
  StreamGate() = default;
  StreamGate(const StreamGate&) = delete;
  ~StreamGate() { open(); }
  /// What comes next on `stream` waits; a captured one waits at each replay. The stream's context is current.
  void hold(const gpu::Driver& driver, CUstream stream) {
    ASSERT_EQ(driver.cuLaunchHostFunc(stream, wait, &open_), CUDA_SUCCESS);
  }
  void open() { open_.store(true); }

 private:
  static void wait(void* open) {
    while (!static_cast<std::atomic<bool>*>(open)->load()) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  std::atomic<bool> open_{false};
};

}  // namespace tutti::test
