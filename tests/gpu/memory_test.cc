#include "gpu/memory.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gpu/event.h"
#include "gpu/fake_driver.h"
#include "gpu/ipc.h"
#include "gpu/memory_ledger.h"
#include "gpu/stream.h"
#include "support/log_capture.h"

namespace tutti::test {
namespace {

using Operation = std::function<Status(const gpu::Device&)>;

/// Runs `operation` once per call name with that call failing: the error must name it, and nothing may leak.
void expectEachFailureReported(const std::vector<std::string>& calls, const Operation& operation) {
  for (const std::string& call : calls) {
    FakeDriver fake;
    const auto device = gpu::Device::create(fake.driver(), 0);
    ASSERT_TRUE(device.ok());
    const std::string before = fake.leaks();
    fake.failNth(call, CUDA_ERROR_OUT_OF_MEMORY);
    expectLog("Cuda failure 2 'out of memory' (CUDA_ERROR_OUT_OF_MEMORY) in " + call);
    EXPECT_EQ(operation(*device.value()).code(), ncclUnhandledCudaError) << call;
    EXPECT_EQ(fake.leaks(), before) << call;
    EXPECT_EQ(fake.stackDepth(), 0U) << call;
  }
}

TEST(DeviceBuffer, ReportsEveryFailureAndLeaksNothing) {
  expectEachFailureReported({"cuCtxPushCurrent", "cuMemAlloc", "cuMemsetD8Async", "cuStreamQuery"},
                            [](const gpu::Device& d) { return gpu::DeviceBuffer::create(d, 64, "test").status(); });
}

TEST(DeviceBuffer, OutOfMemoryNamesSizeAndPurpose) {
  FakeDriver fake;
  const auto device = gpu::Device::create(fake.driver(), 1);
  fake.failNth("cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY);
  expectLog("in cuMemAlloc of 1048576 bytes for slots of channel 3 on device 1");
  EXPECT_FALSE(gpu::DeviceBuffer::create(*device.value(), 1 << 20, "slots of channel 3").ok());
}

TEST(PinnedBuffer, ReportsEveryFailureAndLeaksNothing) {
  expectEachFailureReported({"cuCtxPushCurrent", "cuMemHostAlloc", "cuMemHostGetDevicePointer"},
                            [](const gpu::Device& d) { return gpu::PinnedBuffer::create(d, 64, "test").status(); });
}

TEST(RegisteredMemory, ReportsEveryFailureAndLeaksNothing) {
  std::vector<std::byte> memory(4096);
  expectEachFailureReported(
      {"cuCtxPushCurrent", "cuMemHostRegister", "cuMemHostGetDevicePointer"},
      [&](const gpu::Device& d) { return gpu::RegisteredMemory::create(d, memory, "test").status(); });
}

TEST(RegisteredMemory, IsGivenBackToTheDriverAndNotFreed) {
  FakeDriver fake;
  const auto device = gpu::Device::create(fake.driver(), 0);
  const std::string before = fake.leaks();
  std::vector<std::byte> memory(4096);
  {
    const auto registered = gpu::RegisteredMemory::create(*device.value(), memory, "test");
    ASSERT_TRUE(registered.ok());
    EXPECT_EQ(registered.value().onDevice(), memory.data());
    EXPECT_NE(fake.leaks(), before);
  }
  EXPECT_EQ(fake.leaks(), before);
  EXPECT_EQ(fake.calls("cuMemFreeHost"), 0);
}

TEST(Copies, ReportEveryFailure) {
  std::vector<std::byte> data(8);
  expectEachFailureReported({"cuCtxPushCurrent", "cuMemcpyHtoDAsync", "cuStreamQuery"},
                            [&](const gpu::Device& d) { return gpu::copyToDevice(d, 64, data); });
  expectEachFailureReported({"cuCtxPushCurrent", "cuMemcpyDtoHAsync", "cuStreamQuery"},
                            [&](const gpu::Device& d) { return gpu::copyToHost(d, data, 64); });
  expectEachFailureReported({"cuCtxPushCurrent", "cuMemsetD8Async", "cuStreamQuery"},
                            [](const gpu::Device& d) { return gpu::zeroDevice(d, 64, 8); });
}

TEST(Copies, OfManyWordsReportEveryFailure) {
  std::vector<gpu::DeviceWord> words{{64, 1}, {128, 2}, {192, 3}};
  expectEachFailureReported({"cuCtxPushCurrent", "cuMemcpyHtoDAsync", "cuStreamQuery"},
                            [&](const gpu::Device& d) { return gpu::writeWords(d, words); });
  expectEachFailureReported({"cuCtxPushCurrent", "cuMemcpyDtoHAsync", "cuMemsetD8Async", "cuStreamQuery"},
                            [&](const gpu::Device& d) { return gpu::takeWords(d, words); });
}

TEST(Copies, OfManyWordsWaitOnce) {
  FakeDriver fake;
  const auto device = gpu::Device::create(fake.driver(), 0);
  std::vector<gpu::DeviceWord> words{{64, 1}, {128, 2}, {192, 3}};
  EXPECT_TRUE(gpu::writeWords(*device.value(), words).ok());
  EXPECT_EQ(fake.calls("cuMemcpyHtoDAsync"), 3);
  EXPECT_EQ(fake.calls("cuStreamQuery"), 1);
  EXPECT_TRUE(gpu::takeWords(*device.value(), words).ok());
  EXPECT_EQ(fake.calls("cuMemcpyDtoHAsync"), 3);
  EXPECT_EQ(fake.calls("cuStreamQuery"), 2);
}

TEST(Copies, ThatFailAreWaitedForAllTheSame) {
  FakeDriver fake;
  const auto device = gpu::Device::create(fake.driver(), 0);
  std::vector<gpu::DeviceWord> words{{64, 1}, {128, 2}, {192, 3}};
  fake.failNth("cuMemcpyHtoDAsync", CUDA_ERROR_UNKNOWN, 2);
  expectLog("in cuMemcpyHtoDAsync");
  EXPECT_EQ(gpu::writeWords(*device.value(), words).code(), ncclUnhandledCudaError);
  EXPECT_EQ(fake.calls("cuMemcpyHtoDAsync"), 2);
  EXPECT_EQ(fake.calls("cuStreamQuery"), 1) << "the first copy reads our memory";
  fake.failNth("cuMemcpyDtoHAsync", CUDA_ERROR_UNKNOWN, 2);
  expectLog("in cuMemcpyDtoHAsync");
  EXPECT_EQ(gpu::takeWords(*device.value(), words).code(), ncclUnhandledCudaError);
  EXPECT_EQ(fake.calls("cuStreamQuery"), 2);
}

TEST(Copies, OnTheSoftwareGpuAreDoneByTheThreadThatWaits) {
  FakeDriver fake;
  fake.driver().softGpu = true;
  const auto device = gpu::Device::create(fake.driver(), 0);
  EXPECT_TRUE(gpu::zeroDevice(*device.value(), 64, 8).ok());
  EXPECT_EQ(fake.calls("cuStreamSynchronize"), 1);
  EXPECT_EQ(fake.calls("cuStreamQuery"), 0);
  fake.failNth("cuStreamSynchronize", CUDA_ERROR_UNKNOWN);
  expectLog("in cuStreamSynchronize");
  EXPECT_EQ(gpu::zeroDevice(*device.value(), 64, 8).code(), ncclUnhandledCudaError);
}

TEST(Copies, OfNothingAskTheDriverNothing) {
  FakeDriver fake;
  const auto device = gpu::Device::create(fake.driver(), 0);
  const int before = fake.calls("cuCtxPushCurrent");
  EXPECT_TRUE(gpu::copyToDevice(*device.value(), 0, {}).ok());
  EXPECT_TRUE(gpu::copyToHost(*device.value(), {}, 0).ok());
  EXPECT_TRUE(gpu::zeroDevice(*device.value(), 0, 0).ok());
  EXPECT_TRUE(gpu::writeWords(*device.value(), {}).ok());
  EXPECT_TRUE(gpu::takeWords(*device.value(), {}).ok());
  EXPECT_EQ(fake.calls("cuCtxPushCurrent"), before);
}

TEST(Stream, ReportsEveryFailureAndLeaksNothing) {
  expectEachFailureReported({"cuCtxPushCurrent", "cuStreamCreate"},
                            [](const gpu::Device& d) { return gpu::Stream::create(d).status(); });
}

TEST(Stream, WaitLeavesWhenAborted) {
  FakeDriver fake;
  const auto device = gpu::Device::create(fake.driver(), 0);
  fake.streamState = CUDA_ERROR_NOT_READY;
  Abort abort;
  abort.raise(Status(ncclRemoteError), "peer gone");
  EXPECT_EQ(gpu::waitStream(*device.value(), nullptr, &abort).code(), ncclRemoteError);
  fake.streamState = CUDA_SUCCESS;
}

TEST(Stream, WaitIsBoundedAndSaysWhatIsStuck) {
  FakeDriver fake;
  const auto device = gpu::Device::create(fake.driver(), 1);
  fake.streamState = CUDA_ERROR_NOT_READY;
  expectLog("Device 1 did not finish its work within 5 ms");
  EXPECT_EQ(gpu::waitStream(*device.value(), nullptr, nullptr, std::chrono::milliseconds(5)).code(), ncclSystemError);
  fake.streamState = CUDA_SUCCESS;
}

TEST(Event, ReportsEveryFailureAndLeaksNothing) {
  expectEachFailureReported({"cuCtxPushCurrent", "cuEventCreate"},
                            [](const gpu::Device& d) { return gpu::Event::create(d).status(); });
  expectEachFailureReported({"cuEventRecord", "cuStreamWaitEvent", "cuEventQuery"}, [](const gpu::Device& d) -> Status {
    ASSIGN(gpu::Event event, gpu::Event::create(d));
    TRY(event.record(nullptr));
    TRY(event.waitOn(nullptr));
    return event.wait(nullptr);
  });
}

TEST(IpcMemory, ReportsEveryFailureAndLeaksNothing) {
  expectEachFailureReported({"cuIpcGetMemHandle", "cuIpcOpenMemHandle"}, [](const gpu::Device& d) -> Status {
    ASSIGN(const gpu::DeviceBuffer buffer, gpu::DeviceBuffer::create(d, 64, "test"));
    ASSIGN(const CUipcMemHandle handle, gpu::IpcMemory::exportHandle(buffer));
    return gpu::IpcMemory::open(d, handle, "rank 3").status();
  });
}

TEST(IpcMemory, ErrorNamesTheOwner) {
  FakeDriver fake;
  const auto device = gpu::Device::create(fake.driver(), 0);
  fake.failNth("cuIpcOpenMemHandle", CUDA_ERROR_MAP_FAILED);
  expectLog("in cuIpcOpenMemHandle for memory of rank 3 on node7");
  EXPECT_FALSE(gpu::IpcMemory::open(*device.value(), {}, "rank 3 on node7").ok());
}

TEST(IpcMemory, IsNoErrorWhereOneCanDoWithoutIt) {
  FakeDriver fake;
  const auto device = gpu::Device::create(fake.driver(), 0);
  fake.failNth("cuIpcOpenMemHandle", CUDA_ERROR_MAP_FAILED);
  std::string why;
  EXPECT_FALSE(gpu::IpcMemory::openIfAllowed(*device.value(), {}, why).value().has_value());
  EXPECT_EQ(why, gpu::describeCu(fake.driver(), CUDA_ERROR_MAP_FAILED));
  EXPECT_TRUE(gpu::IpcMemory::openIfAllowed(*device.value(), {}, why).value().has_value());
}

TEST(MemoryLedger, ALedgerHoldsWhatLives) {
  FakeDriver fake;
  const auto device = gpu::Device::create(fake.driver(), 0);
  ASSERT_TRUE(device.ok());
  const auto ledger = std::make_shared<gpu::MemoryLedger>();
  const auto bytes = [&](gpu::MemoryClass kind) { return ledger->bytes(kind); };
  {
    auto slots = gpu::DeviceBuffer::create(*device.value(), 100, {"slots", ledger});
    const auto table = gpu::DeviceBuffer::create(*device.value(), 7, {"table", ledger, gpu::MemoryClass::Persistent});
    ASSERT_TRUE(slots.ok() && table.ok());
    EXPECT_EQ(bytes(gpu::MemoryClass::Releasable), 100U);
    EXPECT_EQ(bytes(gpu::MemoryClass::Persistent), 7U);
    gpu::DeviceBuffer moved = std::move(slots).value();
    EXPECT_EQ(bytes(gpu::MemoryClass::Releasable), 100U) << "moving changes nothing";
    moved = gpu::DeviceBuffer::create(*device.value(), 30, {"slots", ledger}).value();
    EXPECT_EQ(bytes(gpu::MemoryClass::Releasable), 30U) << "what was assigned over is gone";
  }
  EXPECT_EQ(bytes(gpu::MemoryClass::Releasable), 0U);
  EXPECT_EQ(bytes(gpu::MemoryClass::Persistent), 0U);
}

TEST(MemoryLedger, WhatCannotBeHadIsInNoLedger) {
  FakeDriver fake;
  const auto device = gpu::Device::create(fake.driver(), 0);
  ASSERT_TRUE(device.ok());
  const auto ledger = std::make_shared<gpu::MemoryLedger>();
  expectLog("cuMemAlloc");
  fake.failNth("cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_FALSE(gpu::DeviceBuffer::create(*device.value(), 100, {"slots", ledger}).ok());
  EXPECT_EQ(ledger->bytes(gpu::MemoryClass::Releasable), 0U);
}

}  // namespace
}  // namespace tutti::test
