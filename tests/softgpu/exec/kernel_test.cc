#include <chrono>
#include <thread>

#include "softgpu/cuda_fixture.h"

namespace tutti::softgpu::test {
namespace {

class Kernel : public CudaTest {};

TEST_F(Kernel, BlockBarrierSeparatesRounds) {
  std::uint32_t* out = words();
  EXPECT_CU(launch("Barrier", 3, 96, stream_, {out, nullptr, 50, 0}));
  EXPECT_CU(cuStreamSynchronize(stream_));
  for (int i = 0; i < 3 * 96; ++i) ASSERT_EQ(out[i], 49u * 50 / 2) << i;
}

TEST_F(Kernel, NamedBarriersAreIndependent) {
  std::uint32_t* out = words();
  EXPECT_CU(launch("NamedBarrier", 1, 128, stream_, {out, nullptr, 20, 0}));
  EXPECT_CU(cuStreamSynchronize(stream_));
  for (int i = 0; i < 128; ++i) ASSERT_EQ(out[i], i < 64 ? 20u : 40u) << i;
}

TEST_F(Kernel, ShuffleAndBallotSeeTheWholeWarp) {
  std::uint32_t* out = words();
  EXPECT_CU(launch("Warp", 1, 64, stream_, {out, nullptr, 0, 0}));
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(out[7], 496u);
  EXPECT_EQ(out[40], 496u + 32 * 32);
}

TEST_F(Kernel, ThreadsThatEndedDoNotHoldUpOthers) {
  std::uint32_t* out = words();
  EXPECT_CU(launch("EarlyExit", 1, 96, stream_, {out, nullptr, 0, 0}));
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(out[64], 0x55555555u);
  EXPECT_EQ(out[65], 0u);
}

TEST_F(Kernel, TwoDevicesTalkThroughMemory) {
  std::uint32_t* flags = words();
  EXPECT_CU(cuCtxSetCurrent(contexts_[1]));
  CUstream other = nullptr;
  EXPECT_CU(cuStreamCreate(&other, 0));
  const KernelParams params = {flags + 64, flags, 200, 0};
  EXPECT_CU(launch("Pong", 1, 1, other, params));
  EXPECT_CU(launch("Ping", 1, 1, stream_, params));
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_CU(cuStreamSynchronize(other));
  EXPECT_EQ(flags[16], 200u);
  EXPECT_CU(cuStreamDestroy(other));
  EXPECT_CU(cuCtxSetCurrent(contexts_[0]));
}

TEST_F(Kernel, StreamsOfOneDeviceRunSideBySide) {
  std::uint32_t* flags = words();
  CUstream other = nullptr;
  EXPECT_CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  EXPECT_CU(launch("Wait", 4, 64, stream_, {flags + 64, flags, 0, 7}));
  EXPECT_CU(launch("Write", 1, 32, other, {flags, nullptr, 0, 7}));
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(flags[64 + 3], 7u);
  EXPECT_CU(cuStreamDestroy(other));
}

TEST_F(Kernel, BadLaunchesAreRefused) {
  EXPECT_CU_ERROR(launch("Empty", 0, 32, stream_, {}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU_ERROR(launch("Barrier", 1, 160, stream_, {}), CUDA_ERROR_INVALID_VALUE);
  CUfunction function = nullptr;
  EXPECT_CU_ERROR(cuModuleGetFunction(&function, module_, "absent"), CUDA_ERROR_NOT_FOUND);
  CUmodule module = nullptr;
  EXPECT_CU_ERROR(cuModuleLoadData(&module, "code"), CUDA_ERROR_INVALID_PTX);
}

TEST_F(Kernel, TrapIsStickyUntilReset) {
  EXPECT_CU(launch("Trap", 2, 64, stream_, {}));
  EXPECT_CU_ERROR(cuStreamSynchronize(stream_), CUDA_ERROR_LAUNCH_FAILED);
  CUdeviceptr pointer = 0;
  EXPECT_CU_ERROR(cuMemAlloc(&pointer, 16), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_CU(cuDevicePrimaryCtxReset(0));
  EXPECT_CU(cuStreamCreate(&stream_, 0));
  EXPECT_CU(cuStreamSynchronize(stream_));
}

TEST_F(Kernel, BlocksThatAFailureStopsLeaveRoomForOthers) {
  for (int i = 0; i < 5; ++i) {  // 5000 blocks in all, of the 4096 that a device takes at once
    std::uint32_t* flags = words();
    memory_.clear();  // goes with the context
    CUstream other = nullptr;
    EXPECT_CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    EXPECT_CU(launch("Wait", 1000, 1, other, {flags + 64, flags, 0, 7}));
    EXPECT_CU(launch("Trap", 1, 64, stream_, {}));
    EXPECT_CU_ERROR(cuStreamSynchronize(stream_), CUDA_ERROR_LAUNCH_FAILED);
    EXPECT_CU(cuDevicePrimaryCtxReset(0));
    EXPECT_CU(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
  }
  EXPECT_CU(launch("Empty", 1, 32, stream_, {}));
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (cuStreamQuery(stream_) == CUDA_ERROR_NOT_READY && std::chrono::steady_clock::now() < limit) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_CU(cuStreamQuery(stream_));
}

}  // namespace
}  // namespace tutti::softgpu::test
