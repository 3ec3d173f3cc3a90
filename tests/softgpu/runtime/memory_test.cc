#include <cstring>
#include <vector>

#include "softgpu/runtime/support.h"

namespace tutti::softgpu {
namespace {

using RuntimeMemory = RuntimeTest;

TEST_F(RuntimeMemory, CopiesOfEveryKindMoveTheBytes) {
  std::vector<int> in(1000, 7);
  std::vector<int> out(1000, 0);
  const size_t bytes = in.size() * sizeof(int);
  void* a = nullptr;
  void* b = nullptr;
  ASSERT_CUDA_OK(cudaMalloc(&a, bytes));
  ASSERT_CUDA_OK(cudaMalloc(&b, bytes));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 256, 0u);
  ASSERT_CUDA_OK(cudaMemcpy(a, in.data(), bytes, cudaMemcpyHostToDevice));
  ASSERT_CUDA_OK(cudaMemcpy(b, a, bytes, cudaMemcpyDeviceToDevice));
  ASSERT_CUDA_OK(cudaMemcpy(out.data(), b, bytes, cudaMemcpyDefault));
  EXPECT_EQ(in, out);
  EXPECT_CUDA(cudaErrorInvalidValue, cudaMemcpy(in.data(), out.data(), bytes, cudaMemcpyHostToDevice));
  EXPECT_CUDA(cudaErrorInvalidMemcpyDirection, cudaMemcpy(a, b, bytes, static_cast<cudaMemcpyKind>(9)));
  cudaGetLastError();
  ASSERT_CUDA_OK(cudaFree(a));
  ASSERT_CUDA_OK(cudaFree(b));
}

TEST_F(RuntimeMemory, OnlyTheBaseOfAnAllocationIsFreed) {
  char* memory = nullptr;
  ASSERT_CUDA_OK(cudaMalloc(reinterpret_cast<void**>(&memory), 4096));
  EXPECT_CUDA(cudaErrorInvalidValue, cudaFree(memory + 16));
  cudaGetLastError();
  ASSERT_CUDA_OK(cudaFree(memory));
  ASSERT_CUDA_OK(cudaFree(nullptr));
}

TEST_F(RuntimeMemory, RegisteringTwiceAndUnregisteringTheUnknownAreErrors) {
  std::vector<char> host(1 << 16);
  ASSERT_CUDA_OK(cudaHostRegister(host.data(), host.size(), cudaHostRegisterDefault));
  EXPECT_CUDA(cudaErrorHostMemoryAlreadyRegistered,
              cudaHostRegister(host.data(), host.size(), cudaHostRegisterDefault));
  ASSERT_CUDA_OK(cudaHostUnregister(host.data()));
  EXPECT_CUDA(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(host.data()));
  cudaGetLastError();
}

TEST_F(RuntimeMemory, PointerAttributesTellTheKinds) {
  ASSERT_CUDA_OK(cudaSetDevice(1));
  int onStack = 0;
  cudaPointerAttributes attributes{};
  ASSERT_CUDA_OK(cudaPointerGetAttributes(&attributes, &onStack));
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  void* device = nullptr;
  ASSERT_CUDA_OK(cudaMalloc(&device, 512));
  ASSERT_CUDA_OK(cudaPointerGetAttributes(&attributes, device));
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 1);
  EXPECT_EQ(attributes.devicePointer, device);
  void* host = nullptr;
  ASSERT_CUDA_OK(cudaHostAlloc(&host, 512, cudaHostAllocMapped));
  ASSERT_CUDA_OK(cudaPointerGetAttributes(&attributes, host));
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_EQ(attributes.hostPointer, host);
  void* mapped = nullptr;
  ASSERT_CUDA_OK(cudaHostGetDevicePointer(&mapped, host, 0));
  EXPECT_EQ(mapped, host);
  ASSERT_CUDA_OK(cudaFreeHost(host));
  ASSERT_CUDA_OK(cudaFree(device));
}

TEST_F(RuntimeMemory, PitchedFillTouchesOnlyItsColumns) {
  unsigned char* memory = nullptr;
  size_t pitch = 0;
  ASSERT_CUDA_OK(cudaMallocPitch(reinterpret_cast<void**>(&memory), &pitch, 100, 3));
  ASSERT_CUDA_OK(cudaMemset(memory, 0, pitch * 3));
  ASSERT_CUDA_OK(cudaMemset2D(memory, pitch, 5, 100, 3));
  std::vector<unsigned char> out(pitch * 3);
  ASSERT_CUDA_OK(cudaMemcpy(out.data(), memory, out.size(), cudaMemcpyDeviceToHost));
  EXPECT_EQ(out[pitch + 99], 5);
  EXPECT_EQ(out[pitch + 100], 0);
  ASSERT_CUDA_OK(cudaFree(memory));
}

TEST_F(RuntimeMemory, BatchedCopiesArrive) {
  std::vector<int> in{1, 2};
  std::vector<int> out{0, 0};
  void* device = nullptr;
  cudaStream_t stream = nullptr;
  ASSERT_CUDA_OK(cudaStreamCreate(&stream));
  ASSERT_CUDA_OK(cudaMalloc(&device, 8));
  ASSERT_CUDA_OK(cudaMemcpy(device, in.data(), 8, cudaMemcpyHostToDevice));
  void* to[] = {&out[0], &out[1]};
  const void* from[] = {device, static_cast<char*>(device) + 4};
  const size_t sizes[] = {4, 4};
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  size_t index = 0;
  ASSERT_CUDA_OK(cudaMemcpyBatchAsync(to, from, sizes, 2, &attributes, &index, 1, stream));
  ASSERT_CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(in, out);
  ASSERT_CUDA_OK(cudaFree(device));
  ASSERT_CUDA_OK(cudaStreamDestroy(stream));
}

}  // namespace
}  // namespace tutti::softgpu
