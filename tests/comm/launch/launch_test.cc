#include "comm/launch/launch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "gpu/driver_calls.h"
#include "gpu/fake_driver.h"
#include "gpu/memory.h"
#include "gpu/memory_ledger.h"
#include "gpu/self_copy.h"
#include "gpu/stream.h"
#include "support/log_capture.h"

namespace tutti::test {
namespace {

constexpr std::size_t kBytes = 5000;
constexpr auto kMoment = std::chrono::milliseconds(10);

/// Holds a stream until let go, and lets go when the test ends.
class Gate {
 public:
  ~Gate() { open(); }
  void hold(const gpu::Driver& driver, CUstream stream) {
    ASSERT_EQ(driver.cuLaunchHostFunc(stream, wait, &open_), CUDA_SUCCESS);
  }
  void open() { open_.store(true); }

 private:
  static void wait(void* open) {
    while (!static_cast<std::atomic<bool>*>(open)->load()) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  std::atomic<bool> open_{false};
};

/// A graph that can be launched. The objects must not outlive the test's device.
class Graph {
 public:
  explicit Graph(CUgraph graph) : graph_(graph) {
    EXPECT_EQ(DRIVER_CALL(cuGraphInstantiate)(&exec_, graph_, 0), CUDA_SUCCESS);
  }
  Graph(const Graph&) = delete;
  ~Graph() {
    EXPECT_EQ(DRIVER_CALL(cuGraphExecDestroy)(exec_), CUDA_SUCCESS);
    EXPECT_EQ(DRIVER_CALL(cuGraphDestroy)(graph_), CUDA_SUCCESS);
  }
  void launch(CUstream stream) const { EXPECT_EQ(DRIVER_CALL(cuGraphLaunch)(exec_, stream), CUDA_SUCCESS); }

 private:
  CUgraph graph_ = nullptr;
  CUgraphExec exec_ = nullptr;
};

/// One launcher, two streams, and copies a -> b -> c whose outcome tells their order.
class Launches : public testing::Test {
 protected:
  void SetUp() override {
    const auto loaded = gpu::loadDriver();
    ASSERT_TRUE(loaded.ok());
    device = gpu::Device::create(*loaded.value(), 0).value();
    guard = std::make_unique<gpu::ContextGuard>(device->enter().value());
    launcher = comm::Launcher::create(*device).value();
    kernel = SelfCopy::create(*device).value();
    for (auto& stream : streams) stream = std::make_unique<gpu::Stream>(gpu::Stream::create(*device).value());
    for (auto& buffer : buffers) {
      buffer = std::make_unique<gpu::DeviceBuffer>(gpu::DeviceBuffer::create(*device, kBytes, "test").value());
    }
    fill(a(), 1);
  }
  void TearDown() override {
    gate.open();
    for (const auto& stream : streams) EXPECT_TRUE(gpu::waitStream(*device, stream->get(), nullptr).ok());
  }

  CUstream first() const { return streams[0]->get(); }
  CUstream second() const { return streams[1]->get(); }
  const gpu::DeviceBuffer& a() const { return *buffers[0]; }
  const gpu::DeviceBuffer& b() const { return *buffers[1]; }
  const gpu::DeviceBuffer& c() const { return *buffers[2]; }

  void fill(const gpu::DeviceBuffer& buffer, int value) const {
    const std::vector<std::byte> data(kBytes, static_cast<std::byte>(value));
    EXPECT_TRUE(gpu::copyToDevice(*device, buffer.address(), data).ok());
  }
  /// The value all bytes have, -1 if they differ.
  int valueOf(const gpu::DeviceBuffer& buffer) const {
    std::vector<std::byte> data(kBytes);
    EXPECT_TRUE(gpu::copyToHost(*device, data, buffer.address()).ok());
    for (const std::byte byte : data) {
      if (byte != data[0]) return -1;
    }
    return static_cast<int>(data[0]);
  }
  Status copy(const gpu::DeviceBuffer& from, const gpu::DeviceBuffer& to, std::span<const CUstream> on) const {
    device::KernelArgs args = kernel->args(from, to);
    const comm::PreparedLaunch launch{kernel->function(), "SendRecv", 1, SelfCopy::kThreads, &args};
    return launcher->launch({&launch, 1}, on);
  }
  Status copy(const gpu::DeviceBuffer& from, const gpu::DeviceBuffer& to, CUstream on) const {
    return copy(from, to, {&on, 1});
  }
  void begin(CUstream stream) const {
    ASSERT_EQ(DRIVER_CALL(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  }
  std::unique_ptr<Graph> end(CUstream stream) const {
    CUgraph graph = nullptr;
    EXPECT_EQ(DRIVER_CALL(cuStreamEndCapture)(stream, &graph), CUDA_SUCCESS);
    return graph == nullptr ? nullptr : std::make_unique<Graph>(graph);
  }
  std::unique_ptr<Graph> captureCopy(const gpu::DeviceBuffer& from, const gpu::DeviceBuffer& to) const {
    begin(first());
    EXPECT_TRUE(copy(from, to, first()).ok());
    return end(first());
  }
  bool busy(CUstream stream) const { return device->driver().cuStreamQuery(stream) == CUDA_ERROR_NOT_READY; }
  void hold(CUstream stream) { gate.hold(device->driver(), stream); }
  /// What was launched on `late` waits although its stream was free; after the gate opens all is done.
  void expectWaitsForTheGate(CUstream late) {
    std::this_thread::sleep_for(kMoment);
    EXPECT_TRUE(busy(late));
    gate.open();
    for (const auto& stream : streams) EXPECT_TRUE(gpu::waitStream(*device, stream->get(), nullptr).ok());
  }

  std::unique_ptr<gpu::Device> device;
  std::unique_ptr<gpu::ContextGuard> guard;
  std::unique_ptr<comm::Launcher> launcher;
  std::unique_ptr<SelfCopy> kernel;
  std::unique_ptr<gpu::Stream> streams[2];
  std::unique_ptr<gpu::DeviceBuffer> buffers[3];
  Gate gate;
};

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
