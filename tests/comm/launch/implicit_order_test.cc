#include "comm/launch/implicit_order.h"

#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "comm/launch/launches.h"
#include "support/log_capture.h"

namespace tutti::test {
namespace {

/// Two launchers whose launches have one order, and two that have none but their own.
class ImplicitOrder : public Launches {
 protected:
  void SetUp() override {
    Launches::SetUp();
    order = comm::ImplicitOrder::create(*device).value();
    for (auto& one : ordered) one = comm::Launcher::create(*device, {.across = order.get()}).value();
    free = comm::Launcher::create(*device).value();
  }
  void sync() const {
    for (const auto& stream : streams) EXPECT_TRUE(gpu::waitStream(*device, stream->get(), nullptr).ok());
  }
  Status copyOn(comm::Launcher& by, const gpu::DeviceBuffer& from, const gpu::DeviceBuffer& to, CUstream on) const {
    return copyBy(by, from, to, {&on, 1});
  }

  std::unique_ptr<comm::ImplicitOrder> order;
  std::array<std::unique_ptr<comm::Launcher>, 2> ordered;
  std::unique_ptr<comm::Launcher> free;
};

TEST_F(ImplicitOrder, ALaunchWaitsForTheBeginOfAnotherCommunicators) {
  hold(first());
  ASSERT_TRUE(copyOn(*ordered[0], a(), b(), first()).ok());
  ASSERT_TRUE(copyOn(*ordered[1], a(), c(), second()).ok());
  expectWaitsForTheGate(second());
  EXPECT_EQ(valueOf(c()), 1);
}

TEST_F(ImplicitOrder, LaunchesWithoutItWaitForNone) {
  hold(first());
  ASSERT_TRUE(copyOn(*ordered[0], a(), b(), first()).ok());
  ASSERT_TRUE(copyOn(*free, a(), c(), second()).ok());
  EXPECT_TRUE(gpu::waitStream(*device, second(), nullptr).ok()) << "while the gate is shut";
  EXPECT_EQ(valueOf(c()), 1);
}

TEST_F(ImplicitOrder, InAGraphTheyRunOneAfterTheOther) {
  auto fork = gpu::Event::create(*device);
  begin(first());
  ASSERT_TRUE(fork.value().record(first()).ok());
  ASSERT_TRUE(fork.value().waitOn(second()).ok());
  hold(first());  // at the replay; the other branch is free
  ASSERT_TRUE(copyOn(*ordered[0], a(), b(), first()).ok());
  ASSERT_TRUE(copyOn(*ordered[1], b(), c(), second()).ok());
  ASSERT_TRUE(fork.value().record(second()).ok());
  ASSERT_TRUE(fork.value().waitOn(first()).ok());
  const auto graph = end(first());
  ASSERT_NE(graph, nullptr);
  graph->launch(first());
  expectWaitsForTheGate(first());
  EXPECT_EQ(valueOf(c()), 1);
}

TEST_F(ImplicitOrder, ALaunchWaitsForAReplayBeforeIt) {
  begin(first());
  ASSERT_TRUE(copyOn(*ordered[0], a(), b(), first()).ok());
  const auto graph = end(first());
  ASSERT_NE(graph, nullptr);
  hold(first());
  graph->launch(first());
  ASSERT_TRUE(copyOn(*ordered[1], b(), c(), second()).ok());
  expectWaitsForTheGate(second());
  EXPECT_EQ(valueOf(c()), 1);
}

/// A gate in place of a kernel: it has begun long before it ends.
TEST_F(ImplicitOrder, WhereTheDriverCannotTellOfBeginsALaunchWaitsForTheEnd) {
  gpu::Driver older = device->driver();
  older.version = 12020;
  gpu::Driver without = device->driver();
  without.cuLaunchKernelEx = nullptr;
  EXPECT_NE(order->begin({}, first()).value().begun(), nullptr);
  for (const gpu::Driver* driver : {&older, &without}) {
    const std::unique_ptr<gpu::Device> other = gpu::Device::create(*driver, 0).value();
    const auto serial = comm::ImplicitOrder::create(*other).value();
    const auto late = comm::Launcher::create(*other, {.across = serial.get()}).value();
    StreamGate shut;
    {
      auto turn = serial->begin({}, first()).value();
      EXPECT_EQ(turn.begun(), nullptr);
      shut.hold(*driver, first());
      ASSERT_TRUE(turn.end(true).ok());
    }
    ASSERT_TRUE(copyOn(*late, a(), c(), second()).ok());
    std::this_thread::sleep_for(kMoment);
    EXPECT_TRUE(busy(second()));
    shut.open();
    sync();
    EXPECT_EQ(valueOf(c()), 1);
  }
}

TEST_F(ImplicitOrder, ALaunchThatFailsHoldsNobodyUp) {
  device::KernelArgs args = kernel->args(a(), b());
  const comm::PreparedLaunch bad{nullptr, "SendRecv", 1, SelfCopy::kThreads, &args};
  const comm::PreparedLaunch good{kernel->function(), "SendRecv", 1, SelfCopy::kThreads, &args};
  allowLog("cuLaunchKernel");
  for (const auto& launches : {std::vector{bad}, std::vector{good, bad}}) {
    EXPECT_EQ(ordered[0]->launch(launches, first()).code(), ncclUnhandledCudaError);
    ASSERT_TRUE(copyOn(*ordered[1], a(), c(), second()).ok());
    EXPECT_TRUE(gpu::waitStream(*device, second(), nullptr).ok());
  }
}

TEST_F(ImplicitOrder, ThreadsLaunchAtOnce) {
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      const gpu::ContextGuard inside = device->enter().value();
      for (int n = 0; n < 200; ++n) {
        EXPECT_TRUE(copyOn(*ordered[i], a(), i == 0 ? b() : c(), streams[i]->get()).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  sync();
  EXPECT_EQ(valueOf(b()), 1);
  EXPECT_EQ(valueOf(c()), 1);
}

}  // namespace
}  // namespace tutti::test
