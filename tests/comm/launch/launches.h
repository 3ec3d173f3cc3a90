// Launchers on a device, two streams and three buffers, whose copies tell in which order they ran.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "comm/launch/launch.h"
#include "comm/launch/prepared_launch.h"
#include "gpu/driver_calls.h"
#include "gpu/event.h"
#include "gpu/memory.h"
#include "gpu/memory_ledger.h"
#include "gpu/self_copy.h"
#include "gpu/stream.h"
#include "gpu/stream_gate.h"

namespace tutti::test {

inline constexpr std::size_t kBytes = 5000;
inline constexpr auto kMoment = std::chrono::milliseconds(10);

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
  Status copyBy(comm::Launcher& by, const gpu::DeviceBuffer& from, const gpu::DeviceBuffer& to,
                std::span<const CUstream> on) const {
    device::KernelArgs args = kernel->args(from, to);
    const comm::PreparedLaunch launch{kernel->function(), "SendRecv", 1, SelfCopy::kThreads, &args};
    return by.launch({&launch, 1}, on);
  }
  Status copy(const gpu::DeviceBuffer& from, const gpu::DeviceBuffer& to, std::span<const CUstream> on) const {
    return copyBy(*launcher, from, to, on);
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
  StreamGate gate;
};

}  // namespace tutti::test
