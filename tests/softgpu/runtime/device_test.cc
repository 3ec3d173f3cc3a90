#include <cstring>
#include <thread>

#include "softgpu/runtime/support.h"

namespace tutti::softgpu {
namespace {

using RuntimeDevice = RuntimeTest;

TEST_F(RuntimeDevice, CurrentDeviceBelongsToTheThread) {
  ASSERT_CUDA_OK(cudaSetDevice(2));
  int other = -1;
  std::thread([&] { EXPECT_CUDA(cudaSuccess, cudaGetDevice(&other)); }).join();
  int mine = -1;
  ASSERT_CUDA_OK(cudaGetDevice(&mine));
  EXPECT_EQ(mine, 2);
  EXPECT_EQ(other, 0);
}

TEST_F(RuntimeDevice, LastErrorBelongsToTheThreadAndIsCleared) {
  EXPECT_CUDA(cudaErrorInvalidDevice, cudaSetDevice(4));
  EXPECT_CUDA(cudaErrorInvalidDevice, cudaSetDevice(-1));
  std::thread([] { EXPECT_CUDA(cudaSuccess, cudaPeekAtLastError()); }).join();
  EXPECT_CUDA(cudaErrorInvalidDevice, cudaPeekAtLastError());
  EXPECT_CUDA(cudaErrorInvalidDevice, cudaGetLastError());
  EXPECT_CUDA(cudaSuccess, cudaGetLastError());
}

TEST_F(RuntimeDevice, PropertiesAgreeWithAttributesAndBusId) {
  cudaDeviceProp properties{};
  ASSERT_CUDA_OK(cudaGetDeviceProperties(&properties, 1));
  EXPECT_GT(std::strlen(properties.name), 0u);
  EXPECT_GT(properties.totalGlobalMem, 0u);
  EXPECT_EQ(properties.unifiedAddressing, 1);
  int major = 0;
  ASSERT_CUDA_OK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 1));
  EXPECT_EQ(major, properties.major);
  char text[16];
  ASSERT_CUDA_OK(cudaDeviceGetPCIBusId(text, sizeof text, 1));
  int device = -1;
  ASSERT_CUDA_OK(cudaDeviceGetByPCIBusId(&device, text));
  EXPECT_EQ(device, 1);
  EXPECT_CUDA(cudaErrorInvalidDevice, cudaGetDeviceProperties(&properties, 4));
  cudaGetLastError();
}

TEST_F(RuntimeDevice, EveryAttributeHasAnAnswer) {
  for (int attribute = 1; attribute < cudaDevAttrMax; ++attribute) {
    int value = -1;
    EXPECT_CUDA(cudaSuccess, cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(attribute), 0)) << attribute;
  }
  int value = 0;
  EXPECT_CUDA(cudaErrorInvalidValue, cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(100000), 0));
  cudaGetLastError();
}

TEST_F(RuntimeDevice, SecondPeerAccessIsAlreadyEnabled) {
  int can = -1;
  ASSERT_CUDA_OK(cudaDeviceCanAccessPeer(&can, 0, 1));
  EXPECT_EQ(can, 1);
  ASSERT_CUDA_OK(cudaDeviceCanAccessPeer(&can, 0, 0));
  EXPECT_EQ(can, 0);
  ASSERT_CUDA_OK(cudaDeviceEnablePeerAccess(1, 0));
  EXPECT_CUDA(cudaErrorPeerAccessAlreadyEnabled, cudaDeviceEnablePeerAccess(1, 0));
  EXPECT_CUDA(cudaErrorPeerAccessAlreadyEnabled, cudaGetLastError());
  ASSERT_CUDA_OK(cudaDeviceDisablePeerAccess(1));
}

TEST_F(RuntimeDevice, ResetDropsMemoryAndTheDeviceWorksAgain) {
  ASSERT_CUDA_OK(cudaSetDevice(3));
  size_t before = 0;
  size_t after = 0;
  size_t total = 0;
  void* memory = nullptr;
  ASSERT_CUDA_OK(cudaMemGetInfo(&before, &total));
  ASSERT_CUDA_OK(cudaMalloc(&memory, 8 << 20));
  ASSERT_CUDA_OK(cudaMemGetInfo(&after, &total));
  EXPECT_GE(before - after, size_t{8} << 20);
  ASSERT_CUDA_OK(cudaDeviceReset());
  ASSERT_CUDA_OK(cudaMemGetInfo(&after, &total));
  EXPECT_EQ(after, before);
  int device = -1;
  ASSERT_CUDA_OK(cudaGetDevice(&device));
  EXPECT_EQ(device, 3);
  ASSERT_CUDA_OK(cudaMalloc(&memory, 1024));
  ASSERT_CUDA_OK(cudaFree(memory));
}

TEST_F(RuntimeDevice, EntryPointsComeByNameAndVersion) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult status{};
  ASSERT_CUDA_OK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 3020, cudaEnableDefault, &status));
  EXPECT_EQ(status, cudaDriverEntryPointSuccess);
  EXPECT_NE(function, nullptr);
  ASSERT_CUDA_OK(cudaGetDriverEntryPointByVersion("cuNoSuchName", &function, 13000, cudaEnableDefault, &status));
  EXPECT_EQ(status, cudaDriverEntryPointSymbolNotFound);
  EXPECT_EQ(function, nullptr);
}

}  // namespace
}  // namespace tutti::softgpu
