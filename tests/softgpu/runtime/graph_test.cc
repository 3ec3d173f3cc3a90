#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "softgpu/runtime/support.h"

namespace tutti::softgpu {
namespace {

class RuntimeGraph : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_CUDA_OK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    ASSERT_CUDA_OK(cudaMalloc(&device_, sizeof(int)));
  }
  void TearDown() override {
    if (stream_ == nullptr) return;
    EXPECT_CUDA(cudaSuccess, cudaFree(device_));
    EXPECT_CUDA(cudaSuccess, cudaStreamDestroy(stream_));
  }
  int readBack() {
    int value = -1;
    EXPECT_CUDA(cudaSuccess, cudaStreamSynchronize(stream_));
    EXPECT_CUDA(cudaSuccess, cudaMemcpy(&value, device_, sizeof value, cudaMemcpyDeviceToHost));
    return value;
  }
  cudaStream_t stream_ = nullptr;
  void* device_ = nullptr;
};

TEST_F(RuntimeGraph, CapturedWorkRunsOnlyAtEachLaunch) {
  int calls = 0;
  ASSERT_CUDA_OK(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  ASSERT_CUDA_OK(cudaLaunchHostFunc(
      stream_, [](void* n) { ++*static_cast<std::atomic<int>*>(n); }, &calls));
  cudaStreamCaptureStatus status{};
  unsigned long long id = 0;
  cudaGraph_t inside = nullptr;
  const cudaGraphNode_t* dependencies = nullptr;
  size_t count = 0;
  ASSERT_CUDA_OK(cudaStreamGetCaptureInfo(stream_, &status, &id, &inside, &dependencies, nullptr, &count));
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  EXPECT_EQ(count, 1u);
  cudaGraph_t graph = nullptr;
  ASSERT_CUDA_OK(cudaStreamEndCapture(stream_, &graph));
  EXPECT_EQ(graph, inside);
  ASSERT_CUDA_OK(cudaStreamIsCapturing(stream_, &status));
  EXPECT_EQ(status, cudaStreamCaptureStatusNone);
  cudaGraphExec_t exec = nullptr;
  ASSERT_CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
  ASSERT_CUDA_OK(cudaStreamSynchronize(stream_));
  EXPECT_EQ(calls, 0);
  for (int i = 0; i < 3; ++i) ASSERT_CUDA_OK(cudaGraphLaunch(exec, stream_));
  ASSERT_CUDA_OK(cudaStreamSynchronize(stream_));
  EXPECT_EQ(calls, 3);
  ASSERT_CUDA_OK(cudaGraphExecDestroy(exec));
  ASSERT_CUDA_OK(cudaGraphDestroy(graph));
}

TEST_F(RuntimeGraph, CopyNodeIsPatchedInTheExecutable) {
  int* sources = nullptr;
  ASSERT_CUDA_OK(cudaMallocHost(reinterpret_cast<void**>(&sources), 2 * sizeof(int)));
  sources[0] = 11;
  sources[1] = 22;
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t node = nullptr;
  ASSERT_CUDA_OK(cudaGraphCreate(&graph, 0));
  ASSERT_CUDA_OK(cudaGraphAddMemcpyNode1D(&node, graph, nullptr, 0, device_, &sources[0], 4, cudaMemcpyHostToDevice));
  size_t count = 0;
  ASSERT_CUDA_OK(cudaGraphGetNodes(graph, nullptr, &count));
  EXPECT_EQ(count, 1u);
  cudaGraphNodeType type{};
  ASSERT_CUDA_OK(cudaGraphNodeGetType(node, &type));
  EXPECT_EQ(type, cudaGraphNodeTypeMemcpy);
  cudaGraphExec_t exec = nullptr;
  ASSERT_CUDA_OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  ASSERT_CUDA_OK(cudaGraphLaunch(exec, stream_));
  EXPECT_EQ(readBack(), 11);
  ASSERT_CUDA_OK(cudaGraphExecMemcpyNodeSetParams1D(exec, node, device_, &sources[1], 4, cudaMemcpyHostToDevice));
  ASSERT_CUDA_OK(cudaGraphLaunch(exec, stream_));
  EXPECT_EQ(readBack(), 22);
  ASSERT_CUDA_OK(cudaGraphExecDestroy(exec));
  ASSERT_CUDA_OK(cudaGraphDestroy(graph));
  ASSERT_CUDA_OK(cudaFreeHost(sources));
}

TEST_F(RuntimeGraph, UserObjectDiesWithItsGraph) {
  std::atomic<int> destroyed{0};
  cudaUserObject_t object = nullptr;
  cudaGraph_t graph = nullptr;
  ASSERT_CUDA_OK(cudaGraphCreate(&graph, 0));
  ASSERT_CUDA_OK(cudaUserObjectCreate(
      &object, &destroyed, [](void* n) { ++*static_cast<std::atomic<int>*>(n); }, 1, cudaUserObjectNoDestructorSync));
  ASSERT_CUDA_OK(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
  EXPECT_EQ(destroyed, 0);
  ASSERT_CUDA_OK(cudaGraphDestroy(graph));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (destroyed == 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(destroyed, 1);
}

}  // namespace
}  // namespace tutti::softgpu
