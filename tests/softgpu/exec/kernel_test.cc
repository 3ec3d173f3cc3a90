#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

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

/// A launch that records an event when all its blocks have begun.
class LaunchCompletion : public Kernel {
 protected:
  void SetUp() override {
    Kernel::SetUp();
    EXPECT_CU(cuEventCreate(&begun_, CU_EVENT_DISABLE_TIMING));
    attribute_.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
    attribute_.value.launchCompletionEvent.event = begun_;
  }
  void TearDown() override {
    EXPECT_CU(cuEventDestroy(begun_));
    Kernel::TearDown();
  }
  CUresult launchToldOf(const char* name, unsigned blocks, KernelParams params) {
    CUfunction function = nullptr;
    EXPECT_CU(cuModuleGetFunction(&function, module_, name));
    void* list[] = {&params};
    const CUlaunchConfig config = {blocks, 1, 1, 64, 1, 1, 0, stream_, &attribute_, 1};
    return cuLaunchKernelEx(&config, function, list, nullptr);
  }

  CUevent begun_ = nullptr;
  CUlaunchAttribute attribute_ = {};
};

TEST_F(LaunchCompletion, EventComesWhenAllBlocksHaveBegunAndBeforeTheyEnd) {
  std::uint32_t* flags = words();
  CUstream other = nullptr;
  EXPECT_CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  EXPECT_CU(launch("Wait", 4, 64, stream_, {flags + 64, flags, 0, 7}));
  EXPECT_CU(launchToldOf("Wait", 4, {flags + 96, flags + 1, 0, 8}));
  EXPECT_CU_ERROR(cuEventQuery(begun_), CUDA_ERROR_NOT_READY) << "the kernel before it has not ended";
  EXPECT_CU(cuStreamWaitEvent(other, begun_, 0));
  EXPECT_CU(launch("Write", 1, 32, other, {flags + 1, nullptr, 0, 8}));
  EXPECT_CU_ERROR(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
  std::atomic_ref(flags[0]).store(7);
  EXPECT_CU(cuStreamSynchronize(stream_)) << "ends after what waits for its begin";
  EXPECT_CU(cuStreamSynchronize(other));
  EXPECT_EQ(flags[96 + 3], 8u);
  EXPECT_CU(cuStreamDestroy(other));
}

TEST_F(LaunchCompletion, EventOfAKernelThatNeverRunsIsNotWaitedForForEver) {
  // Both are launched before the first one fails: afterwards a launch is refused.
  std::atomic<bool> open{false};
  const auto waitsForIt = [](void* gate) {
    while (!static_cast<std::atomic<bool>*>(gate)->load()) std::this_thread::yield();
  };
  EXPECT_CU(cuLaunchHostFunc(stream_, waitsForIt, &open));
  EXPECT_CU(launch("Trap", 2, 64, stream_, {}));
  EXPECT_CU(launchToldOf("Empty", 4, {}));
  open = true;
  EXPECT_CU_ERROR(cuEventSynchronize(begun_), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_CU(cuDevicePrimaryCtxReset(0));
  EXPECT_CU(cuStreamCreate(&stream_, 0));
}

TEST_F(LaunchCompletion, EventsThatCannotBeRecordedSoAreRefused) {
  for (const unsigned flags : {0U, unsigned{CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS}}) {
    CUevent event = nullptr;
    EXPECT_CU(cuEventCreate(&event, flags));
    attribute_.value.launchCompletionEvent.event = event;
    EXPECT_CU_ERROR(launchToldOf("Empty", 1, {}), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU(cuEventDestroy(event));
    EXPECT_CU_ERROR(launchToldOf("Empty", 1, {}), CUDA_ERROR_INVALID_HANDLE);
  }
  attribute_.value.launchCompletionEvent.event = begun_;
  CUstream captured = nullptr;
  EXPECT_CU(cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING));
  EXPECT_CU(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
  std::swap(captured, stream_);
  EXPECT_CU_ERROR(launchToldOf("Empty", 1, {}), CUDA_ERROR_NOT_SUPPORTED);
  std::swap(captured, stream_);
  CUgraph graph = nullptr;
  EXPECT_CU(cuStreamEndCapture(captured, &graph));
  EXPECT_CU(cuGraphDestroy(graph));
  EXPECT_CU(cuStreamDestroy(captured));
}

}  // namespace
}  // namespace tutti::softgpu::test
