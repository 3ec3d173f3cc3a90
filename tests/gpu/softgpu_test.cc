// The wrappers on a driver that works: the software GPU (or, where meson's environment is not used, any other).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "gpu/capture.h"
#include "gpu/driver_calls.h"
#include "gpu/event.h"
#include "gpu/memory.h"
#include "gpu/memory_ledger.h"
#include "gpu/self_copy.h"
#include "gpu/stream.h"
#include "gpu/stream_gate.h"
#include "gpu/vmm.h"
#include "support/log_capture.h"

namespace tutti::test {
namespace {

class OnDevice : public testing::Test {
 protected:
  void SetUp() override {
    const auto loaded = gpu::loadDriver();
    ASSERT_TRUE(loaded.ok());
    driver_ = loaded.value();
    auto device = gpu::Device::create(*driver_, 0);
    ASSERT_TRUE(device.ok());
    device_ = std::move(device).value();
  }
  const gpu::Driver* driver_ = nullptr;
  std::unique_ptr<gpu::Device> device_;
};

std::vector<std::byte> numbers(std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 7 + 1);
  return data;
}

std::vector<std::byte> contents(const gpu::DeviceBuffer& buffer) {
  std::vector<std::byte> data(buffer.size());
  EXPECT_TRUE(gpu::copyToHost(buffer.device(), data, buffer.address()).ok());
  return data;
}

TEST_F(OnDevice, EveryDeviceHasFactsOfItsOwn) {
  ASSERT_EQ(gpu::deviceCount(*driver_).value(), 4) << "meson test sets SOFTGPU_DEVICES=4";
  const auto index = gpu::DeviceIndex::read(*driver_);
  ASSERT_TRUE(index.ok());
  for (int a = 0; a < 4; ++a) {
    const auto facts = gpu::readDeviceFacts(*driver_, a);
    ASSERT_TRUE(facts.ok());
    EXPECT_GT(facts.value().memoryBytes, 0U);
    EXPECT_EQ(index.value().ordinalOf(facts.value().uuid), a);
  }
}

TEST_F(OnDevice, WordsAreWrittenAndTaken) {
  auto buffer = gpu::DeviceBuffer::create(*device_, 4096, "test");
  ASSERT_TRUE(buffer.ok());
  const CUdeviceptr address = buffer.value().address();
  std::vector<gpu::DeviceWord> words{{address, 11}, {address + 800, 12}, {address + 4088, 13}};
  ASSERT_TRUE(gpu::writeWords(*device_, words).ok());
  std::vector<gpu::DeviceWord> taken{{address, 0}, {address + 800, 0}, {address + 4088, 0}};
  ASSERT_TRUE(gpu::takeWords(*device_, taken).ok());
  for (std::size_t i = 0; i < words.size(); ++i) EXPECT_EQ(taken[i].value, words[i].value);
  ASSERT_TRUE(gpu::takeWords(*device_, taken).ok());
  for (const gpu::DeviceWord& word : taken) EXPECT_EQ(word.value, 0U) << "taken before";
}

TEST_F(OnDevice, ItsNumberCountsAllDevicesNotThoseShown) {
  EXPECT_EQ(gpu::readDeviceFacts(*driver_, 3).value().nvmlIndex, 3);
  ::setenv("CUDA_VISIBLE_DEVICES", "2,0,3", 1);
  EXPECT_EQ(gpu::readDeviceFacts(*driver_, 0).value().nvmlIndex, 2);
  EXPECT_EQ(gpu::readDeviceFacts(*driver_, 2).value().nvmlIndex, 3);
  EXPECT_EQ(gpu::readDeviceFacts(*driver_, 3).value().nvmlIndex, -1) << "not in the list";
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST_F(OnDevice, CurrentDeviceFollowsTheGuard) {
  const auto other = gpu::Device::create(*driver_, 2);
  EXPECT_EQ(gpu::currentDevice(*driver_).value(), 0);
  {
    const auto guard = other.value()->enter();
    EXPECT_EQ(gpu::currentDevice(*driver_).value(), 2);
  }
  EXPECT_EQ(gpu::currentDevice(*driver_).value(), 0);
}

TEST_F(OnDevice, BuffersAreZeroedCopiedAndGivenBack) {
  const auto guard = device_->enter();
  const std::size_t before = freeDeviceMemory();
  {
    const auto buffer = gpu::DeviceBuffer::create(*device_, 100'000, "test");
    ASSERT_TRUE(buffer.ok());
    EXPECT_EQ(contents(buffer.value()), std::vector<std::byte>(100'000));
    const auto data = numbers(100'000);
    ASSERT_TRUE(gpu::copyToDevice(*device_, buffer.value().address(), data).ok());
    EXPECT_EQ(contents(buffer.value()), data);
    ASSERT_TRUE(gpu::zeroDevice(*device_, buffer.value().address() + 1, 3).ok());
    const auto now = contents(buffer.value());
    EXPECT_EQ(now[0], data[0]);
    EXPECT_EQ(now[1], std::byte{0});
    EXPECT_EQ(now[3], std::byte{0});
    EXPECT_EQ(now[4], data[4]);
    EXPECT_LT(freeDeviceMemory(), before);
  }
  EXPECT_EQ(freeDeviceMemory(), before);
}

TEST_F(OnDevice, PinnedMemoryIsZeroedAndUsableByTheDevice) {
  const auto pinned = gpu::PinnedBuffer::create(*device_, 64, "test");
  ASSERT_TRUE(pinned.ok());
  EXPECT_TRUE(
      std::all_of(pinned.value().host(), pinned.value().host() + 64, [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_NE(pinned.value().onDevice(), nullptr);
}

TEST_F(OnDevice, EventsOrderStreams) {
  const auto guard = device_->enter();
  const auto first = gpu::Stream::create(*device_);
  const auto second = gpu::Stream::create(*device_);
  auto event = gpu::Event::create(*device_);
  EXPECT_NE(gpu::streamId(*driver_, first.value().get()).value(),
            gpu::streamId(*driver_, second.value().get()).value());
  EXPECT_TRUE(event.value().done().value()) << "never recorded";
  StreamGate gate;
  gate.hold(*driver_, first.value().get());
  ASSERT_TRUE(event.value().record(first.value().get()).ok());
  ASSERT_TRUE(event.value().waitOn(second.value().get()).ok());
  EXPECT_FALSE(event.value().done().value());
  EXPECT_EQ(driver_->cuStreamQuery(second.value().get()), CUDA_ERROR_NOT_READY);
  gate.open();
  EXPECT_TRUE(event.value().wait(nullptr).ok());
  EXPECT_TRUE(gpu::waitStream(*device_, second.value().get(), nullptr).ok());
}

TEST_F(OnDevice, CopiesOfTheLibraryDoNotWaitForTheApplication) {
  const auto guard = device_->enter();
  const auto stream = gpu::Stream::create(*device_);
  const auto buffer = gpu::DeviceBuffer::create(*device_, 8, "test");
  StreamGate gate;
  gate.hold(*driver_, nullptr);
  EXPECT_TRUE(gpu::copyToDevice(*device_, buffer.value().address(), numbers(8)).ok());
  EXPECT_EQ(contents(buffer.value()), numbers(8));
  gate.open();
  EXPECT_TRUE(gpu::waitStream(*device_, nullptr, nullptr).ok());
}

TEST_F(OnDevice, CaptureStateNamesTheCapture) {
  const auto guard = device_->enter();
  const auto stream = gpu::Stream::create(*device_);
  const CUstream raw = stream.value().get();
  EXPECT_FALSE(gpu::captureState(*driver_, raw).value().capturing);
  EXPECT_FALSE(gpu::captureState(*driver_, nullptr).value().capturing);
  ASSERT_EQ(DRIVER_CALL(cuStreamBeginCapture)(raw, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  const auto state = gpu::captureState(*driver_, raw);
  ASSERT_TRUE(state.ok());
  EXPECT_TRUE(state.value().capturing);
  EXPECT_NE(state.value().id, 0U);
  EXPECT_NE(state.value().graph, nullptr);
  // Allocations and waits of the library's own are fine meanwhile.
  EXPECT_TRUE(gpu::DeviceBuffer::create(*device_, 8, "test").ok());
  CUgraph graph = nullptr;
  EXPECT_EQ(DRIVER_CALL(cuStreamEndCapture)(raw, &graph), CUDA_SUCCESS);
  EXPECT_EQ(DRIVER_CALL(cuGraphDestroy)(graph), CUDA_SUCCESS);
}

TEST_F(OnDevice, KernelRuns) {
  const auto guard = device_->enter();
  const auto copy = SelfCopy::create(*device_);
  ASSERT_TRUE(copy.ok());
  const auto from = gpu::DeviceBuffer::create(*device_, 10'001, "test");
  const auto to = gpu::DeviceBuffer::create(*device_, 10'001, "test");
  ASSERT_TRUE(gpu::copyToDevice(*device_, from.value().address(), numbers(10'001)).ok());
  device::KernelArgs args = copy.value()->args(from.value(), to.value());
  void* params[] = {&args};
  ASSERT_EQ(driver_->cuLaunchKernel(copy.value()->function(), 1, 1, 1, SelfCopy::kThreads, 1, 1, 0,
                                    device_->ownStream(), params, nullptr),
            CUDA_SUCCESS);
  ASSERT_TRUE(gpu::waitStream(*device_, device_->ownStream(), nullptr).ok());
  EXPECT_EQ(contents(to.value()), numbers(10'001));
}

TEST_F(OnDevice, KernelThatDoesNotExistIsInvalidUsage) {
  const auto kernels = gpu::KernelSet::create(*device_, {hostKernelsPath()});
  expectLog("no kernel tutti_Nothing");
  EXPECT_EQ(kernels.value()->get("tutti_Nothing").status().code(), ncclInvalidUsage);
}

TEST_F(OnDevice, SharedMemoryWorksOnItsDeviceAndFreesFromAnother) {
  for (const bool vmm : {true, false}) {
    const auto memory = gpu::allocateShared(*driver_, 1, 5000, vmm);
    ASSERT_TRUE(memory.ok());
    const auto address = reinterpret_cast<CUdeviceptr>(memory.value());
    EXPECT_TRUE(gpu::copyToDevice(*device_, address, numbers(5000)).ok()) << "device 0 reaches it";
    std::vector<std::byte> back(5000);
    EXPECT_TRUE(gpu::copyToHost(*device_, back, address).ok());
    EXPECT_EQ(back, numbers(5000));
    const auto guard = device_->enter();
    EXPECT_TRUE(gpu::freeShared(*driver_, memory.value(), vmm).ok());
    EXPECT_EQ(gpu::currentDevice(*driver_).value(), 0);
  }
}

TEST_F(OnDevice, SharedMemoryGivesEverythingBack) {
  const auto guard = device_->enter();
  const std::size_t before = freeDeviceMemory();
  const auto memory = gpu::allocateShared(*driver_, 0, 1, true);
  ASSERT_TRUE(memory.ok());
  EXPECT_LT(freeDeviceMemory(), before);
  EXPECT_TRUE(gpu::freeShared(*driver_, memory.value(), true).ok());
  EXPECT_EQ(freeDeviceMemory(), before);
}

TEST_F(OnDevice, SharedMemoryIsRefusedForForeignPointers) {
  const auto buffer = gpu::DeviceBuffer::create(*device_, 64, "test");
  expectLog("a pointer that ncclMemAlloc did not give");
  EXPECT_EQ(gpu::freeShared(*driver_, buffer.value().data(), true).code(), ncclUnhandledCudaError);
  int local = 0;
  expectLog("a pointer that is no device memory");
  EXPECT_EQ(gpu::freeShared(*driver_, &local, true).code(), ncclUnhandledCudaError);
}

}  // namespace
}  // namespace tutti::test
