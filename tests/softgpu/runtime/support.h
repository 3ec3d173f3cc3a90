// What the tests of the runtime share.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace tutti::softgpu {

#define EXPECT_CUDA(expected, call) EXPECT_EQ(static_cast<int>(expected), static_cast<int>(call))
#define ASSERT_CUDA_OK(call) ASSERT_EQ(static_cast<int>(cudaSuccess), static_cast<int>(call))

/// Tests that need devices: device 0 is current, the last error is clear.
class RuntimeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    ASSERT_CUDA_OK(cudaGetDeviceCount(&count)) << "libcuda.so.1 must lie beside libcudart.so.13";
    ASSERT_EQ(count, 4) << "the tests want SOFTGPU_DEVICES=4";
    ASSERT_CUDA_OK(cudaSetDevice(0));
    cudaGetLastError();
  }
};

/// A host function that holds its stream until opened, for 10 seconds at most.
class Gate {
 public:
  ~Gate() { open(); }
  void open() { open_ = true; }
  /// cudaHostFn_t; the argument is the Gate.
  static void wait(void* gate) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!static_cast<Gate*>(gate)->open_ && std::chrono::steady_clock::now() < limit)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }

 private:
  std::atomic<bool> open_{false};
};

}  // namespace tutti::softgpu
