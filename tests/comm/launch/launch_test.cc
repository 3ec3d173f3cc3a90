#include "comm/launch/launches.h"

#include <chrono>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "gpu/fake_driver.h"
#include "support/log_capture.h"

namespace tutti::test {
namespace {

TEST_F(Launches, OnTwoStreamsRunInTheOrderOfTheCalls) {
  hold(first());
  ASSERT_TRUE(copy(a(), b(), first()).ok());
  ASSERT_TRUE(copy(b(), c(), second()).ok());
  expectWaitsForTheGate(second());
  EXPECT_EQ(valueOf(c()), 1);
}

TEST_F(Launches, OnTheDefaultStreamAreOrderedToo) {
  hold(nullptr);
  ASSERT_TRUE(copy(a(), b(), nullptr).ok());
  ASSERT_TRUE(copy(b(), c(), second()).ok());
  expectWaitsForTheGate(second());
  EXPECT_EQ(valueOf(c()), 1);
}

TEST_F(Launches, GroupOfSeveralStreamsWaitsForAllAndAllWaitForIt) {
  fill(a(), 9);
  hold(first());
  // Work of the first stream before the group: a becomes 3. The kernel runs on the second stream.
  ASSERT_EQ(device->driver().cuMemsetD8Async(a().address(), 3, kBytes, first()), CUDA_SUCCESS);
  const CUstream both[] = {first(), second()};
  ASSERT_TRUE(copy(a(), b(), both).ok());
  // Work of the first stream after the group comes after the kernel.
  ASSERT_EQ(device->driver().cuMemcpyAsync(c().address(), b().address(), kBytes, first()), CUDA_SUCCESS);
  expectWaitsForTheGate(second());
  EXPECT_EQ(valueOf(b()), 3);
  EXPECT_EQ(valueOf(c()), 3);
}

TEST_F(Launches, DrainWaitsForTheLastLaunch) {
  EXPECT_TRUE(launcher->drain(nullptr).ok()) << "nothing was launched";
  hold(first());
  ASSERT_TRUE(copy(a(), b(), first()).ok());
  expectLog("did not finish its work within 10 ms");
  EXPECT_EQ(launcher->drain(nullptr, kMoment).code(), ncclSystemError);
  gate.open();
  EXPECT_TRUE(launcher->drain(nullptr).ok());
  EXPECT_EQ(valueOf(b()), 1);
}

TEST_F(Launches, OutliveTheStreamTheyWereLaunchedOn) {
  ASSERT_TRUE(copy(a(), b(), first()).ok());
  streams[0].reset();
  EXPECT_TRUE(copy(b(), c(), second()).ok());
  EXPECT_TRUE(launcher->drain(nullptr).ok());
  EXPECT_EQ(valueOf(c()), 1);
  streams[0] = std::make_unique<gpu::Stream>(gpu::Stream::create(*device).value());
}

TEST_F(Launches, CapturedRunAtEveryReplay) {
  const auto graph = captureCopy(a(), b());
  ASSERT_NE(graph, nullptr);
  EXPECT_TRUE(launcher->everCaptured());
  EXPECT_EQ(valueOf(b()), 0) << "captured, not run";
  for (const int value : {4, 5}) {
    fill(a(), value);
    graph->launch(second());
    ASSERT_TRUE(gpu::waitStream(*device, second(), nullptr).ok());
    EXPECT_EQ(valueOf(b()), value);
  }
}

TEST_F(Launches, OfOneCaptureOnForkedStreamsKeepTheirOrder) {
  auto fork = gpu::Event::create(*device);
  begin(first());
  ASSERT_TRUE(fork.value().record(first()).ok());
  ASSERT_TRUE(fork.value().waitOn(second()).ok());
  ASSERT_TRUE(copy(a(), b(), first()).ok());
  ASSERT_TRUE(copy(b(), c(), second()).ok());
  ASSERT_TRUE(fork.value().record(second()).ok());
  ASSERT_TRUE(fork.value().waitOn(first()).ok());
  const auto graph = end(first());
  ASSERT_NE(graph, nullptr);
  graph->launch(first());
  ASSERT_TRUE(gpu::waitStream(*device, first(), nullptr).ok());
  EXPECT_EQ(valueOf(c()), 1);
}

TEST_F(Launches, AfterAGraphWaitForIt) {
  const auto graph = captureCopy(a(), b());
  hold(first());
  graph->launch(first());
  ASSERT_TRUE(copy(b(), c(), second()).ok());
  expectWaitsForTheGate(second());
  EXPECT_EQ(valueOf(c()), 1);
}

TEST_F(Launches, BeforeAGraphAreWaitedFor) {
  const auto graph = captureCopy(b(), c());
  hold(first());
  ASSERT_TRUE(copy(a(), b(), first()).ok());
  graph->launch(second());
  expectWaitsForTheGate(second());
  EXPECT_EQ(valueOf(c()), 1);
}

TEST_F(Launches, OfTwoGraphsRunInTheOrderOfTheReplays) {
  const auto early = captureCopy(a(), b());
  const auto late = captureCopy(b(), c());
  hold(first());
  early->launch(first());
  late->launch(second());
  expectWaitsForTheGate(second());
  EXPECT_EQ(valueOf(c()), 1);
}

TEST_F(Launches, OnOneStreamBeforeAndAfterAGraphOnAnotherKeepTheOrder) {
  const auto graph = captureCopy(b(), c());
  ASSERT_TRUE(copy(a(), b(), first()).ok());
  ASSERT_TRUE(gpu::waitStream(*device, first(), nullptr).ok());
  hold(second());
  graph->launch(second());
  fill(a(), 8);
  // The same stream as the last launch outside a graph, but a graph came between: b must not change before it ran.
  ASSERT_TRUE(copy(a(), b(), first()).ok());
  expectWaitsForTheGate(first());
  EXPECT_EQ(valueOf(b()), 8);
  EXPECT_EQ(valueOf(c()), 1);
}

TEST_F(Launches, DrainWaitsForReplays) {
  const auto graph = captureCopy(a(), b());
  hold(first());
  graph->launch(first());
  expectLog("did not finish its work within 10 ms");
  EXPECT_FALSE(launcher->drain(nullptr, kMoment).ok());
  gate.open();
  EXPECT_TRUE(launcher->drain(nullptr).ok());
}

TEST_F(Launches, WithoutMixingAGraphDoesNotWaitForThem) {
  launcher = comm::Launcher::create(*device, {.mix = false}).value();
  const auto graph = captureCopy(a(), c());
  hold(first());
  ASSERT_TRUE(copy(a(), b(), first()).ok());
  graph->launch(second());
  EXPECT_TRUE(gpu::waitStream(*device, second(), nullptr).ok());
  EXPECT_EQ(valueOf(c()), 1);
  EXPECT_TRUE(busy(first()));
}

TEST_F(Launches, WithoutOrderForkedStreamsOfACaptureAreIndependent) {
  launcher = comm::Launcher::create(*device, {.mix = false, .orderWithin = false}).value();
  CUevent fork = nullptr;
  CUevent joined = nullptr;
  ASSERT_EQ(device->driver().cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ASSERT_EQ(device->driver().cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  begin(first());
  ASSERT_EQ(device->driver().cuEventRecord(fork, first()), CUDA_SUCCESS);
  ASSERT_EQ(device->driver().cuStreamWaitEvent(second(), fork, 0), CUDA_SUCCESS);
  hold(first());
  ASSERT_TRUE(copy(a(), b(), first()).ok());
  ASSERT_TRUE(copy(a(), c(), second()).ok());
  ASSERT_EQ(device->driver().cuEventRecord(joined, second()), CUDA_SUCCESS);
  ASSERT_EQ(device->driver().cuStreamWaitEvent(first(), joined, 0), CUDA_SUCCESS);
  const auto graph = end(first());
  graph->launch(first());
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (valueOf(c()) != 1 && std::chrono::steady_clock::now() < limit) std::this_thread::sleep_for(kMoment);
  EXPECT_EQ(valueOf(c()), 1) << "although the other branch is held";
  EXPECT_EQ(valueOf(b()), 0);
  gate.open();
  EXPECT_TRUE(gpu::waitStream(*device, first(), nullptr).ok());
  EXPECT_EQ(valueOf(b()), 1);
  device->driver().cuEventDestroy(fork);
  device->driver().cuEventDestroy(joined);
}

TEST_F(Launches, TwoCapturesMayGoOnSideBySide) {
  begin(first());
  ASSERT_TRUE(copy(a(), b(), first()).ok());
  begin(second());
  ASSERT_TRUE(copy(b(), c(), second()).ok());
  ASSERT_TRUE(copy(a(), b(), first()).ok());
  const auto early = end(first());
  const auto late = end(second());
  early->launch(first());
  late->launch(second());
  EXPECT_TRUE(gpu::waitStream(*device, second(), nullptr).ok());
  EXPECT_EQ(valueOf(c()), 1);
}

TEST_F(Launches, TellWhetherTheyAreDone) {
  EXPECT_FALSE(launcher->mayBeBusy());
  EXPECT_EQ(launcher->lastLaunch(), "none");
  hold(first());
  ASSERT_TRUE(copy(a(), b(), first()).ok());
  EXPECT_TRUE(launcher->mayBeBusy());
  EXPECT_EQ(launcher->query(), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(launcher->lastLaunch(), "operation SendRecv");
  gate.open();
  EXPECT_TRUE(launcher->drain(nullptr).ok());
  EXPECT_EQ(launcher->query(), CUDA_SUCCESS);
  EXPECT_FALSE(launcher->mayBeBusy());
}

TEST_F(Launches, MixingCapturedAndOtherStreamsInAGroupIsInvalidUsage) {
  begin(first());
  const CUstream both[] = {first(), second()};
  expectLog("must all be captured by the same graph, or none of them (stream 1 of 2 on device 0 differs)");
  EXPECT_EQ(copy(a(), b(), both).code(), ncclInvalidUsage);
  EXPECT_NE(end(first()), nullptr) << "the capture goes on";
}

TEST_F(Launches, LeaveTheCallersDeviceAlone) {
  const auto other = gpu::Device::create(device->driver(), 1);
  const auto inside = other.value()->enter();
  ASSERT_TRUE(copy(a(), b(), first()).ok());
  EXPECT_EQ(gpu::currentDevice(device->driver()).value(), 1);
}

/// A launcher that launches nothing, and what it notes of collectives.
class LaunchNotes : public testing::Test {
 protected:
  comm::LaunchNote noteOf(std::initializer_list<device::PairMethod> ways) {
    device::KernelArgs args{};
    for (const device::PairMethod way : ways) args.coll[args.nWorks++].pairMethod = way;
    const comm::PreparedLaunch launch{nullptr, "AllReduce", 1, 32, &args};
    EXPECT_TRUE(launcher_->launch({&launch, 1}, CUstream{}).ok());
    return launcher_->lastNote();
  }
  FakeDriver fake_;
  std::unique_ptr<gpu::Device> device_ = gpu::Device::create(fake_.driver(), 0).value();
  std::unique_ptr<comm::Launcher> launcher_ = comm::Launcher::create(*device_).value();
};

TEST_F(LaunchNotes, SayWhetherCollectivesUseTheirGraphOrGoInPlace) {
  using enum device::PairMethod;
  const comm::LaunchNote mixed = noteOf({InPlace, Ring});
  EXPECT_TRUE(mixed.inPlace && mixed.follows) << "both kinds of connections may be waited for";
  const comm::LaunchNote alone = noteOf({InPlace, InPlace});
  EXPECT_TRUE(alone.inPlace && !alone.follows) << "no ring need be connected";
  const comm::LaunchNote none = noteOf({Ring, Exchange});
  EXPECT_TRUE(!none.inPlace && none.follows) << "and what the launch before it did is forgotten";
  EXPECT_EQ(none.collectives, 6U);
}

TEST_F(LaunchNotes, OfMessagesKeepEachOfThem) {
  static_cast<void>(noteOf({device::PairMethod::InPlace}));
  device::KernelArgs args{};
  args.nWorks = 2;
  args.p2p[0].sendPeer = 3;
  args.p2p[1].recvPeer = 5;
  const comm::PreparedLaunch launch{nullptr, "SendRecv", 1, 32, &args, {}, {.func = device::Func::SendRecv}};
  ASSERT_TRUE(launcher_->launch({&launch, 1}, CUstream{}).ok());
  const comm::LaunchNote note = launcher_->lastNote();
  EXPECT_TRUE(!note.inPlace && note.follows);
  ASSERT_EQ(note.messages.size(), 2U);
  EXPECT_EQ(note.messages[0].sendPeer, 3);
  EXPECT_EQ(note.messages[1].recvPeer, 5);
  EXPECT_EQ(note.operations, 3U);
}

TEST(LaunchErrors, NameOperationAndDevice) {
  FakeDriver fake;
  const auto device = gpu::Device::create(fake.driver(), 1);
  const auto launcher = comm::Launcher::create(*device.value());
  ASSERT_TRUE(launcher.ok());
  device::KernelArgs args{};
  const comm::PreparedLaunch launch{nullptr, "AllReduce", 1, 32, &args};
  fake.failNth("cuLaunchKernel", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  expectLog("in cuLaunchKernel for operation AllReduce on device 1");
  EXPECT_EQ(launcher.value()->launch({&launch, 1}, CUstream{}).code(), ncclUnhandledCudaError);
  EXPECT_EQ(fake.stackDepth(), 0U);
}

TEST(LaunchErrors, WhatIsCountedIsNotDoneBeforeItIsLaunchedNorWhereThatFails) {
  FakeDriver fake;
  gpu::Driver driver = fake.driver();
  static const comm::Launcher* observed = nullptr;
  static bool busyMeanwhile = false;
  driver.cuLaunchKernel = [](CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                             void**, void**) -> CUresult {
    busyMeanwhile = observed->mayBeBusy();
    EXPECT_EQ(observed->lastLaunch(), "operation AllReduce");
    return CUDA_ERROR_LAUNCH_FAILED;
  };
  const auto device = gpu::Device::create(driver, 0);
  const auto launcher = comm::Launcher::create(*device.value());
  observed = launcher.value().get();
  device::KernelArgs args{};
  const comm::PreparedLaunch launch{nullptr, "AllReduce", 1, 32, &args};
  EXPECT_FALSE(observed->mayBeBusy());
  expectLog("in cuLaunchKernel");
  EXPECT_FALSE(launcher.value()->launch({&launch, 1}, CUstream{}).ok());
  EXPECT_TRUE(busyMeanwhile) << "a thread that ends the process asks at this moment";
  EXPECT_TRUE(observed->mayBeBusy());
}

TEST(LaunchErrors, EveryFailureIsNamedAndLeaksNothing) {
  for (const char* call : {"cuStreamGetCaptureInfo", "cuStreamGetId", "cuEventRecord", "cuCtxPushCurrent"}) {
    FakeDriver fake;
    {
      const auto device = gpu::Device::create(fake.driver(), 0);
      const auto launcher = comm::Launcher::create(*device.value());
      fake.failNth(call, CUDA_ERROR_UNKNOWN);
      expectLog(std::string("in ") + call);
      EXPECT_EQ(launcher.value()->launch({}, CUstream{}).code(), ncclUnhandledCudaError) << call;
    }
    EXPECT_EQ(fake.leaks(), "") << call;
  }
}

TEST(LaunchErrors, AQueryGivesTheDriversCodeAndLogsNothing) {
  FakeDriver fake;
  const auto device = gpu::Device::create(fake.driver(), 0);
  const auto launcher = comm::Launcher::create(*device.value());
  for (const char* call : {"cuCtxPushCurrent", "cuThreadExchangeStreamCaptureMode", "cuEventQuery"}) {
    fake.failNth(call, CUDA_ERROR_DEINITIALIZED);
    EXPECT_EQ(launcher.value()->query(), CUDA_ERROR_DEINITIALIZED) << call;
    EXPECT_EQ(fake.stackDepth(), 0U) << call;
  }
}

TEST(LaunchErrors, ALaunchNeedsAStream) {
  FakeDriver fake;
  const auto device = gpu::Device::create(fake.driver(), 0);
  const auto launcher = comm::Launcher::create(*device.value());
  expectLog("A launch needs a stream");
  EXPECT_EQ(launcher.value()->launch({}, std::span<const CUstream>{}).code(), ncclInternalError);
}

}  // namespace
}  // namespace tutti::test
