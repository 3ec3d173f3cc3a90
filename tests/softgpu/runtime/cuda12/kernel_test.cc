// Kernels that a program of CUDA 12 brings along, registered and launched as nvcc's code does.
#include <cstdint>
#include <cstring>

#include "softgpu/runtime/cuda12/abi.h"
#include "softgpu/toy_code.h"

namespace tutti::softgpu::cuda12::test {
namespace {

TEST_F(Cuda12, ABinaryOfTheProgramIsRegisteredAndItsKernelRuns) {
  softgpu::test::ToyWrapper wrapper{.image = softgpu::test::kToyImage};
  char stub = 0;
  void** binary = __cudaRegisterFatBinary(&wrapper);
  __cudaRegisterFunction(binary, &stub, &stub, "fill", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
  __cudaRegisterFatBinaryEnd(binary);
  void* memory = nullptr;
  ASSERT_EQ(cudaMallocManaged(&memory, 4096, 1), kSuccess);
  std::memset(memory, 0, 4096);
  ASSERT_EQ(__cudaPushCallConfiguration({2}, {8}, 0, nullptr), 0u);
  Dim3 grid;
  Dim3 block;
  std::size_t shared = 1;
  Handle stream = nullptr;
  ASSERT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), kSuccess);
  EXPECT_EQ(grid.x, 2u);
  EXPECT_EQ(block.x, 8u);
  EXPECT_EQ(shared, 0u);
  std::uint32_t base = 100;
  std::uint8_t small = 1;
  double real = 2.0;
  void* args[] = {&memory, &base, &small, &real};
  EXPECT_EQ(cudaLaunchKernel(&stub, grid, block, args, shared, stream), kSuccess);
  EXPECT_EQ(cudaStreamSynchronize(nullptr), kSuccess);
  for (std::uint32_t i = 0; i < 16; ++i) EXPECT_EQ(static_cast<std::uint32_t*>(memory)[i], 103 + i);
  __cudaUnregisterFatBinary(binary);
  EXPECT_NE(cudaLaunchKernel(&stub, grid, block, args, shared, stream), kSuccess) << "it is gone";
  cudaGetLastError();
  EXPECT_EQ(cudaFree(memory), kSuccess);
}

}  // namespace
}  // namespace tutti::softgpu::cuda12::test
