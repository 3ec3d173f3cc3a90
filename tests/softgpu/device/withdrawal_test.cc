// Host functions that are called no more.
#include "softgpu/withdrawal.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "softgpu/cuda_fixture.h"

namespace tutti::softgpu::test {
namespace {

constexpr unsigned kGenerous = 60'000;  // milliseconds: what comes in any case, and soon
constexpr unsigned kBrief = 50;         // for what does not come

CUresult withdraw(CUhostFn function, unsigned milliseconds) {
  return static_cast<CUresult>(softgpuWithdrawHostFunction(function, milliseconds));
}

/// Waits for what another thread does.
template <class Condition>
bool comesTrue(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kGenerous);
  while (!condition() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  return condition();
}

/// A function that stays inside until it may go on. Each test has a tag and so a function of its own: what is withdrawn
/// stays so for the life of the process.
template <int tag>
struct Gate {
  std::atomic<int> begun{0};
  std::atomic<int> ended{0};
  std::atomic<bool> open{false};

  static void pass(void* self) {
    auto& gate = *static_cast<Gate*>(self);
    ++gate.begun;
    while (!gate.open) std::this_thread::yield();
    ++gate.ended;  // the last word
  }
};

/// Opens a gate while another thread waits for what is behind it.
template <class Gate>
std::thread openLater(Gate& gate) {
  return std::thread([&gate] {
    std::this_thread::sleep_for(std::chrono::milliseconds(kBrief));
    gate.open = true;
  });
}

class Withdrawn : public CudaTest {};

TEST_F(Withdrawn, FunctionsAreCalledFirstAsOftenAsStreamsAreToCallThem) {
  Gate<0> gate;
  for (int i = 0; i < 3; ++i) EXPECT_CU(cuLaunchHostFunc(stream_, Gate<0>::pass, &gate));
  std::thread opener = openLater(gate);
  EXPECT_CU(withdraw(Gate<0>::pass, kGenerous));
  EXPECT_EQ(gate.ended, 3);
  opener.join();
}

TEST_F(Withdrawn, FunctionsAreLeftOutAndTheStreamGoesOn) {
  std::uint32_t* data = words();
  Gate<1> gate;
  gate.open = true;
  EXPECT_CU(withdraw(Gate<1>::pass, kGenerous));
  testing::internal::CaptureStderr();
  EXPECT_CU(cuLaunchHostFunc(stream_, Gate<1>::pass, &gate));
  EXPECT_CU(launch("Add", 1, 32, stream_, {data, nullptr, 0, 2}));
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_NE(testing::internal::GetCapturedStderr().find("withdrawn"), std::string::npos);
  EXPECT_EQ(gate.begun, 0);
  EXPECT_EQ(data[31], 2u);
}

TEST_F(Withdrawn, OtherFunctionsAreCalledAsEver) {
  Gate<2> gate;
  EXPECT_CU(withdraw(Gate<3>::pass, kGenerous));
  gate.open = true;
  EXPECT_CU(cuLaunchHostFunc(stream_, Gate<2>::pass, &gate));
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(gate.ended, 1);
}

TEST_F(Withdrawn, NodesOfGraphsCountAsDone) {
  std::uint32_t* data = words();
  Gate<4> gate;
  gate.open = true;
  EXPECT_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_CU(cuLaunchHostFunc(stream_, Gate<4>::pass, &gate));
  EXPECT_CU(launch("Add", 1, 32, stream_, {data, nullptr, 0, 2}));
  CUgraph graph = nullptr;
  EXPECT_CU(cuStreamEndCapture(stream_, &graph));
  CUgraphExec exec = nullptr;
  EXPECT_CU(cuGraphInstantiate(&exec, graph, 0));
  EXPECT_CU(cuGraphLaunch(exec, stream_));
  EXPECT_CU(withdraw(Gate<4>::pass, kGenerous));
  EXPECT_EQ(gate.ended, 1) << "the launch before";
  testing::internal::CaptureStderr();
  EXPECT_CU(cuGraphLaunch(exec, stream_));
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_NE(testing::internal::GetCapturedStderr().find("withdrawn"), std::string::npos);
  EXPECT_EQ(gate.begun, 1);
  EXPECT_EQ(data[31], 4u);
  EXPECT_CU(cuGraphExecDestroy(exec));
  EXPECT_CU(cuGraphDestroy(graph));
}

TEST_F(Withdrawn, DestructorsOfUserObjectsAreLeftOut) {
  Gate<5> gate;
  Gate<6> after;
  gate.open = after.open = true;
  EXPECT_CU(withdraw(Gate<5>::pass, kGenerous));
  CUuserObject object = nullptr;
  EXPECT_CU(cuUserObjectCreate(&object, &gate, Gate<5>::pass, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  EXPECT_CU(cuUserObjectRelease(object, 1));
  EXPECT_CU(cuUserObjectCreate(&object, &after, Gate<6>::pass, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  EXPECT_CU(cuUserObjectRelease(object, 1));
  EXPECT_TRUE(comesTrue([&] { return after.ended == 1; }));  // on the same thread, so behind the other one
  EXPECT_EQ(gate.begun, 0);
}

TEST_F(Withdrawn, FunctionsThatDoNotReturnAreReportedAfterTheTime) {
  Gate<7> gate;
  EXPECT_CU(cuLaunchHostFunc(stream_, Gate<7>::pass, &gate));
  ASSERT_TRUE(comesTrue([&] { return gate.begun == 1; }));
  EXPECT_CU_ERROR(withdraw(Gate<7>::pass, kBrief), CUDA_ERROR_TIMEOUT);
  gate.open = true;
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(gate.ended, 1);
}

TEST_F(Withdrawn, CallsBehindWorkThatDoesNotEndAreLeftOutAfterTheTime) {
  Gate<8> first;
  Gate<9> behind;
  behind.open = true;
  EXPECT_CU(cuLaunchHostFunc(stream_, Gate<8>::pass, &first));
  EXPECT_CU(cuLaunchHostFunc(stream_, Gate<9>::pass, &behind));
  EXPECT_CU_ERROR(withdraw(Gate<9>::pass, kBrief), CUDA_ERROR_NOT_READY);
  first.open = true;
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(first.ended, 1);
  EXPECT_EQ(behind.begun, 0);
}

TEST_F(Withdrawn, FunctionsDoNotWaitForThemselves) {
  static std::atomic<CUresult> answer{CUDA_SUCCESS};
  const CUhostFn inside = [](void*) { answer = withdraw(Gate<10>::pass, kGenerous); };
  EXPECT_CU(cuLaunchHostFunc(stream_, inside, nullptr));
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_CU_ERROR(answer.load(), CUDA_ERROR_NOT_PERMITTED);
  Gate<10> gate;
  gate.open = true;
  EXPECT_CU(cuLaunchHostFunc(stream_, Gate<10>::pass, &gate));
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(gate.ended, 1);
}

TEST_F(Withdrawn, FunctionsMustBeFunctions) {
  EXPECT_CU_ERROR(withdraw(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace tutti::softgpu::test
