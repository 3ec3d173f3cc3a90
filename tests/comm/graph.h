// Graphs captured in tests, at the level of the driver.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "gpu/driver_calls.h"

namespace tutti::test {

/// A graph and its executable form. The device's context must be current wherever it is used.
class Recording {
 public:
  /// Records what `calls` puts on `stream`.
  static std::unique_ptr<Recording> of(CUstream stream, const std::function<void()>& calls) {
    // Other threads make their graphs ready meanwhile, which the global mode would forbid them.
    EXPECT_EQ(DRIVER_CALL(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), CUDA_SUCCESS);
    calls();
    std::unique_ptr<Recording> recording(new Recording);
    EXPECT_EQ(DRIVER_CALL(cuStreamEndCapture)(stream, &recording->graph_), CUDA_SUCCESS);
    EXPECT_EQ(DRIVER_CALL(cuGraphInstantiate)(&recording->exec_, recording->graph_, 0), CUDA_SUCCESS);
    return recording;
  }
  Recording(const Recording&) = delete;
  ~Recording() {
    dropGraph();
    EXPECT_EQ(DRIVER_CALL(cuGraphExecDestroy)(exec_), CUDA_SUCCESS);
  }
  /// Destroys the graph; what it was instantiated to lives on.
  void dropGraph() {
    if (graph_ == nullptr) return;
    EXPECT_EQ(DRIVER_CALL(cuGraphDestroy)(graph_), CUDA_SUCCESS);
    graph_ = nullptr;
  }
  void launch(CUstream stream) const { EXPECT_EQ(DRIVER_CALL(cuGraphLaunch)(exec_, stream), CUDA_SUCCESS); }

 private:
  Recording() = default;
  CUgraph graph_ = nullptr;
  CUgraphExec exec_ = nullptr;
};

}  // namespace tutti::test
