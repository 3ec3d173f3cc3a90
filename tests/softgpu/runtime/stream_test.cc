#include <vector>

#include "softgpu/runtime/support.h"

namespace tutti::softgpu {
namespace {

class RuntimeStream : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_CUDA_OK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  void TearDown() override {
    if (stream_ == nullptr) return;
    EXPECT_CUDA(cudaSuccess, cudaStreamDestroy(stream_));
  }
  cudaStream_t stream_ = nullptr;
};

TEST_F(RuntimeStream, QueryOfABusyStreamIsNotReadyAndNotKept) {
  Gate gate;
  ASSERT_CUDA_OK(cudaLaunchHostFunc(stream_, Gate::wait, &gate));
  EXPECT_CUDA(cudaErrorNotReady, cudaStreamQuery(stream_));
  EXPECT_CUDA(cudaSuccess, cudaPeekAtLastError());
  gate.open();
  ASSERT_CUDA_OK(cudaStreamSynchronize(stream_));
  EXPECT_CUDA(cudaSuccess, cudaStreamQuery(stream_));
}

TEST_F(RuntimeStream, CallbacksRunInTheOrderOfTheStream) {
  struct Step {
    std::vector<int>* order;
    int number;
  };
  std::vector<int> order;
  std::vector<Step> steps;
  for (int i = 0; i < 10; ++i) steps.push_back({&order, i});
  for (Step& step : steps) {
    if (step.number % 2 == 0) {
      ASSERT_CUDA_OK(cudaLaunchHostFunc(
          stream_, [](void* s) { static_cast<Step*>(s)->order->push_back(static_cast<Step*>(s)->number); }, &step));
    } else {
      ASSERT_CUDA_OK(cudaStreamAddCallback(
          stream_,
          [](cudaStream_t, cudaError_t error, void* s) {
            EXPECT_CUDA(cudaSuccess, error);
            static_cast<Step*>(s)->order->push_back(static_cast<Step*>(s)->number);
          },
          &step, 0));
    }
  }
  ASSERT_CUDA_OK(cudaStreamSynchronize(stream_));
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_F(RuntimeStream, DefaultStreamsHaveThreeHandlesAndCannotBeDestroyed) {
  for (const cudaStream_t handle : {cudaStream_t{nullptr}, cudaStreamLegacy, cudaStreamPerThread}) {
    EXPECT_CUDA(cudaSuccess, cudaStreamSynchronize(handle));
    EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaStreamDestroy(handle));
  }
  cudaGetLastError();
}

TEST_F(RuntimeStream, EventsOrderStreamsAndMeasureTime) {
  Gate gate;
  cudaStream_t second = nullptr;
  cudaEvent_t start = nullptr;
  cudaEvent_t end = nullptr;
  ASSERT_CUDA_OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  ASSERT_CUDA_OK(cudaEventCreate(&start));
  ASSERT_CUDA_OK(cudaEventCreate(&end));
  EXPECT_CUDA(cudaSuccess, cudaEventQuery(start)) << "never recorded";
  ASSERT_CUDA_OK(cudaEventRecord(start, stream_));
  ASSERT_CUDA_OK(cudaLaunchHostFunc(stream_, Gate::wait, &gate));
  ASSERT_CUDA_OK(cudaEventRecord(end, stream_));
  ASSERT_CUDA_OK(cudaStreamWaitEvent(second, end, 0));
  float milliseconds = -1;
  EXPECT_CUDA(cudaErrorNotReady, cudaEventQuery(end));
  EXPECT_CUDA(cudaErrorNotReady, cudaEventElapsedTime(&milliseconds, start, end));
  EXPECT_CUDA(cudaErrorNotReady, cudaStreamQuery(second));
  ASSERT_CUDA_OK(cudaEventSynchronize(start));  // a busy machine may record it late
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  gate.open();
  ASSERT_CUDA_OK(cudaStreamSynchronize(second));
  ASSERT_CUDA_OK(cudaEventElapsedTime(&milliseconds, start, end));
  EXPECT_GE(milliseconds, 1.0f);
  ASSERT_CUDA_OK(cudaEventDestroy(start));
  ASSERT_CUDA_OK(cudaEventDestroy(end));
  ASSERT_CUDA_OK(cudaStreamDestroy(second));
}

TEST_F(RuntimeStream, PageableSourceMayChangeAfterTheCall) {
  int value = 42;
  int out = 0;
  void* device = nullptr;
  ASSERT_CUDA_OK(cudaMalloc(&device, sizeof value));
  ASSERT_CUDA_OK(cudaMemsetAsync(device, 0, sizeof value, stream_));
  ASSERT_CUDA_OK(cudaMemcpyAsync(device, &value, sizeof value, cudaMemcpyHostToDevice, stream_));
  value = 0;
  ASSERT_CUDA_OK(cudaStreamSynchronize(stream_));
  ASSERT_CUDA_OK(cudaMemcpy(&out, device, sizeof out, cudaMemcpyDeviceToHost));
  EXPECT_EQ(out, 42);
  ASSERT_CUDA_OK(cudaFree(device));
}

TEST_F(RuntimeStream, StreamOrderedMemoryIsUsable) {
  void* memory = nullptr;
  ASSERT_CUDA_OK(cudaMallocAsync(&memory, 1 << 20, stream_));
  ASSERT_CUDA_OK(cudaMemsetAsync(memory, 3, 1 << 20, stream_));
  unsigned char last = 0;
  ASSERT_CUDA_OK(
      cudaMemcpyAsync(&last, static_cast<char*>(memory) + (1 << 20) - 1, 1, cudaMemcpyDeviceToHost, stream_));
  ASSERT_CUDA_OK(cudaFreeAsync(memory, stream_));
  ASSERT_CUDA_OK(cudaStreamSynchronize(stream_));
  EXPECT_EQ(last, 3);
}

}  // namespace
}  // namespace tutti::softgpu
