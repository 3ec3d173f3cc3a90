// Launches of GPU code: shapes, parameters, shared memory, graphs.
#include <cstring>

#include "softgpu/driver/code_fixture.h"

namespace tutti::softgpu::test {
namespace {

TEST_F(CodeTest, EachParameterIsCopiedToItsPlace) {
  std::uint32_t* out = words();
  std::uint32_t base = 1000;
  std::uint8_t small = 20;
  double real = 3.0;
  void* params[] = {&out, &base, &small, &real};
  EXPECT_CU(cuLaunchKernel(function("fill"), 3, 1, 1, 8, 1, 1, 0, stream_, params, nullptr));
  base = 0;
  real = 0;
  EXPECT_CU(cuStreamSynchronize(stream_));
  for (std::uint32_t i = 0; i < 24; ++i) ASSERT_EQ(out[i], 1023 + i);
  EXPECT_EQ(out[24], 0u);
}

TEST_F(CodeTest, ParametersComeAsOneBlockAsWell) {
  ToyFill packed = {words(), 50, 6, 2.0};
  std::size_t bytes = sizeof(packed);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  EXPECT_CU(cuLaunchKernel(function("fill"), 1, 1, 1, 4, 1, 1, 0, stream_, nullptr, extra));
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(packed.out[3], 61u);
  bytes = sizeof(packed) - 1;
  EXPECT_CU_ERROR(cuLaunchKernel(function("fill"), 1, 1, 1, 4, 1, 1, 0, stream_, nullptr, extra),
                  CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU_ERROR(cuLaunchKernel(function("fill"), 1, 1, 1, 4, 1, 1, 0, stream_, nullptr, nullptr),
                  CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CodeTest, GridsAndBlocksHaveThreeDimensions) {
  std::uint32_t* out = words();
  EXPECT_CU(launchOut("shape", {2, 3, 4}, {8, 4, 2}, out, 100));
  EXPECT_CU(cuStreamSynchronize(stream_));
  const std::uint32_t expected[] = {8, 4, 2, 2, 3, 4, 100};
  EXPECT_EQ(std::memcmp(out, expected, sizeof(expected)), 0);
  std::uint32_t base = 0;
  std::uint8_t small = 0;
  double real = 0;
  void* params[] = {&out, &base, &small, &real};
  EXPECT_CU(cuLaunchKernel(function("fill"), 5, 4, 3, 4, 4, 2, 0, stream_, params, nullptr));
  EXPECT_CU(cuStreamSynchronize(stream_));
  for (std::uint32_t i = 0; i < 5 * 4 * 3 * 32; ++i)
    ASSERT_EQ(out[i], i) << "every block runs with a number of its own";
}

TEST_F(CodeTest, ThreadsThatMeetGetFibers) {
  std::uint32_t* out = words();
  EXPECT_CU(launchOut("meet", {2, 2, 1}, {32, 2, 2}, out));
  EXPECT_CU(cuStreamSynchronize(stream_));
  for (int i = 0; i < 4 * 128; ++i) ASSERT_EQ(out[i], 127u * 128 / 2) << i;
}

TEST_F(CodeTest, ThreadsThatMeetMustFitTheirStacks) {
  EXPECT_CU_ERROR(launchOut("hungry", {1, 1, 1}, {1, 1, 1}, words()), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
}

TEST_F(CodeTest, ShapesBeyondThoseOfHardwareAreRefused) {
  std::uint32_t* out = words();
  const Size one;
  for (const Size& block : {Size{1025, 1, 1}, Size{1, 1025, 1}, Size{1, 1, 65}, Size{32, 32, 2}, Size{0, 1, 1}}) {
    EXPECT_CU_ERROR(launchOut("shape", one, block, out), CUDA_ERROR_INVALID_VALUE) << block.x << block.y << block.z;
  }
  for (const Size& grid : {Size{1, 65536, 1}, Size{1, 1, 65536}, Size{0x80000000u, 1, 1}, Size{1, 0, 1}}) {
    EXPECT_CU_ERROR(launchOut("shape", grid, one, out), CUDA_ERROR_INVALID_VALUE) << grid.x;
  }
  EXPECT_CU_ERROR(launchOut("count", one, {257, 1, 1}, out), CUDA_ERROR_INVALID_VALUE) << "its code says 256";
  testing::internal::CaptureStderr();
  EXPECT_CU_ERROR(launchOut("shape", {65536, 65535, 2}, one, out), CUDA_ERROR_INVALID_VALUE);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("fewer than 2^32 blocks"), std::string::npos);
  EXPECT_CU(launchOut("shape", one, {2, 8, 64}, out));
  EXPECT_CU(launchOut("shape", one, {1, 1024, 1}, out));
  EXPECT_CU(cuStreamSynchronize(stream_));
  KernelParams params = {};
  void* list[] = {&params};
  EXPECT_CU_ERROR(cuLaunchKernel(kernel("Empty"), 1, 2, 1, 1, 1, 1, 0, stream_, list, nullptr),
                  CUDA_ERROR_INVALID_VALUE)
      << "kernels compiled for the host have one dimension";
}

TEST_F(CodeTest, MuchSharedMemoryMustBeAskedFor) {
  std::uint32_t* out = words();
  CUfunction shared = function("shared");
  EXPECT_CU(launchOut(shared, {2, 1, 1}, {}, out, 47 << 10));
  EXPECT_CU_ERROR(launchOut(shared, {}, {}, out, (47 << 10) + 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU_ERROR(cuFuncSetAttribute(shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 227 << 10),
                  CUDA_ERROR_INVALID_VALUE)
      << "with what is static it is more than there is";
  EXPECT_CU(cuFuncSetAttribute(shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 226 << 10));
  EXPECT_CU(launchOut(shared, {3, 1, 1}, {}, out + 2, 226 << 10));
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(out[1], 48u << 10);
  EXPECT_EQ(out[4], 227u << 10);
}

TEST_F(CodeTest, OtherStreamsGoOnWhileALongKernelRuns) {
  constexpr std::uint32_t kBlocks = 2000000;
  std::uint32_t* out = words();
  std::uint32_t* seen = words();
  CUdeviceptr counter = 0;
  CUstream other = nullptr;
  EXPECT_CU(cuModuleGetGlobal(&counter, nullptr, code_, "counter"));
  EXPECT_CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  EXPECT_CU(cuStreamWaitValue32(other, counter, kToyCounter + 1, CU_STREAM_WAIT_VALUE_GEQ));
  EXPECT_CU(cuMemcpyAsync(address(seen), counter, sizeof(*seen), other));
  EXPECT_CU(launchOut("count", {kBlocks, 1, 1}, {}, out));
  EXPECT_CU(cuStreamSynchronize(other));
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_GT(*seen, kToyCounter);
  EXPECT_LT(*seen, kToyCounter + kBlocks) << "the other stream's copy was made while the kernel ran";
  EXPECT_EQ(out[0], kToyCounter + kBlocks);
  EXPECT_CU(cuStreamDestroy(other));
}

TEST_F(CodeTest, BlocksComeInAFewAtATime) {
  std::uint32_t* out = words();
  EXPECT_CU(launchOut("crowd", {1000, 1, 1}, {64, 1, 1}, out));
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_LE(out[0], 2048u / 64);
  EXPECT_GT(out[0], 1u);
  EXPECT_CU(launchOut("crowd", {20, 1, 1}, {1024, 1, 1}, out + 2));
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_LE(out[2], 2u);
  EXPECT_EQ(out[1] + out[3], 0u) << "all of them have ended";
}

TEST_F(CodeTest, BlocksThatAreWaitedForComeIn) {
  // More threads than a device holds at a time, and fewer than the 8,128 that ThreadSanitizer knows.
  constexpr std::uint32_t kBlocks = 100;
  std::uint32_t* out = words();
  EXPECT_CU(launchOut("gather", {kBlocks, 1, 1}, {32, 1, 1}, out));
  EXPECT_CU(launchOut("hurry", {kBlocks, 1, 1}, {32, 1, 1}, out + 1));
  EXPECT_CU(launchOut("gather", {3, 1, 1}, {1024, 1, 1}, out + 2));
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(out[0], kBlocks);
  EXPECT_EQ(out[1], kBlocks);
  EXPECT_EQ(out[2], 3u);
}

TEST_F(CodeTest, CooperativeLaunchesAreOfBlocksThatAreThereAtOnce) {
  std::uint32_t* out = words();
  void* params[] = {&out};
  CUfunction meet = function("meet");
  EXPECT_CU(cuLaunchCooperativeKernel(meet, 4, 1, 1, 64, 1, 1, 0, stream_, params));
  EXPECT_CU_ERROR(cuLaunchCooperativeKernel(meet, 5000, 1, 1, 64, 1, 1, 0, stream_, params),
                  CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  CUlaunchAttribute attribute = {};
  attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attribute.value.cooperative = 1;
  CUlaunchConfig config = {5000, 1, 1, 64, 1, 1, 0, stream_, &attribute, 1};
  EXPECT_CU_ERROR(cuLaunchKernelEx(&config, meet, params, nullptr), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  config.gridDimX = 2;
  EXPECT_CU(cuLaunchKernelEx(&config, meet, params, nullptr));
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim = {2, 1, 1};
  EXPECT_CU_ERROR(cuLaunchKernelEx(&config, meet, params, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_CU(cuStreamSynchronize(stream_));
}

TEST_F(CodeTest, OccupancyIsThatOfTheLimits) {
  const auto blocks = [&](const char* name, int threads, std::size_t shared) {
    int result = -1;
    EXPECT_CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&result, function(name), threads, shared));
    return result;
  };
  EXPECT_EQ(blocks("fill", 256, 0), 8);
  EXPECT_EQ(blocks("fill", 33, 0), 32) << "two warps each, but no more than 32 blocks";
  EXPECT_EQ(blocks("shared", 128, 100 << 10), 2);
  EXPECT_EQ(blocks("count", 512, 0), 0) << "more threads than its code allows";
  int grid = 0;
  int block = 0;
  EXPECT_CU(cuOccupancyMaxPotentialBlockSize(&grid, &block, function("count"), nullptr, 0, 0));
  EXPECT_EQ(block, 256);
  int processors = 0;
  EXPECT_CU(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  EXPECT_EQ(grid, 8 * processors);
  EXPECT_CU(cuOccupancyMaxPotentialBlockSize(&grid, &block, function("fill"), nullptr, 0, 200));
  EXPECT_LE(block, 200);
  std::size_t bytes = 0;
  EXPECT_CU(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, function("shared"), 2, 128));
  EXPECT_EQ(bytes, 112u << 10) << "half of 228 KiB, less what is static and 1 KiB that each block costs";
}

TEST_F(CodeTest, KernelNodesRunWithTheParametersOfTheirTime) {
  std::uint32_t* out = words();
  std::uint32_t base = 100;
  std::uint8_t small = 0;
  double real = 0;
  void* params[] = {&out, &base, &small, &real};
  CUDA_KERNEL_NODE_PARAMS node = {};
  node.func = function("fill");
  node.gridDimX = node.gridDimZ = 1;
  node.gridDimY = 2;
  node.blockDimX = node.blockDimY = 2;
  node.blockDimZ = 1;
  node.kernelParams = params;
  CUgraph graph = nullptr;
  CUgraphNode added = nullptr;
  CUgraphExec exec = nullptr;
  EXPECT_CU(cuGraphCreate(&graph, 0));
  EXPECT_CU(cuGraphAddKernelNode(&added, graph, nullptr, 0, &node));
  base = 0;
  EXPECT_CU(cuGraphInstantiate(&exec, graph, 0));
  EXPECT_CU(cuGraphLaunch(exec, stream_));
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(out[7], 107u);
  base = 500;
  EXPECT_CU(cuGraphExecKernelNodeSetParams(exec, added, &node));
  EXPECT_CU(cuModuleUnload(code_));
  code_ = nullptr;
  EXPECT_CU(cuGraphLaunch(exec, stream_));
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(out[7], 507u) << "a graph keeps the code of its nodes";
  EXPECT_CU(cuGraphExecDestroy(exec));
  EXPECT_CU(cuGraphDestroy(graph));
}

TEST_F(CodeTest, LaunchesAreCaptured) {
  std::uint32_t* out = words();
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  EXPECT_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_CU(launchOut("meet", {}, {8, 8, 1}, out));
  EXPECT_CU(cuStreamEndCapture(stream_, &graph));
  EXPECT_EQ(out[0], 0u);
  EXPECT_CU(cuGraphInstantiate(&exec, graph, 0));
  EXPECT_CU(cuGraphLaunch(exec, stream_));
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(out[63], 63u * 64 / 2);
  EXPECT_CU(cuGraphExecDestroy(exec));
  EXPECT_CU(cuGraphDestroy(graph));
}

}  // namespace
}  // namespace tutti::softgpu::test
