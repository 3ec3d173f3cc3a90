#include "gpu/context.h"

#include <gtest/gtest.h>

#include <string>

#include "gpu/fake_driver.h"
#include "support/log_capture.h"

namespace tutti::test {
namespace {

TEST(ContextGuard, RestoresContextAndCaptureMode) {
  FakeDriver fake;
  fake.pushContext(1);
  {
    auto guard = gpu::ContextGuard::enter(fake.driver(), fake.contextOf(0));
    ASSERT_TRUE(guard.ok());
    EXPECT_EQ(fake.current(), fake.contextOf(0));
    EXPECT_EQ(fake.captureMode(), CU_STREAM_CAPTURE_MODE_RELAXED);
    const gpu::ContextGuard moved = std::move(guard).value();
    EXPECT_EQ(fake.current(), fake.contextOf(0));
  }
  EXPECT_EQ(fake.current(), fake.contextOf(1));
  EXPECT_EQ(fake.stackDepth(), 1U);
  EXPECT_EQ(fake.captureMode(), FakeDriver::kCallerMode);
}

TEST(ContextGuard, FailureLeavesTheCallersContext) {
  FakeDriver fake;
  fake.pushContext(1);
  for (const char* call : {"cuCtxPushCurrent", "cuThreadExchangeStreamCaptureMode"}) {
    fake.failNth(call, CUDA_ERROR_INVALID_CONTEXT);
    expectLog(std::string("in ") + call);
    EXPECT_EQ(gpu::ContextGuard::enter(fake.driver(), fake.contextOf(0)).status().code(), ncclUnhandledCudaError);
    EXPECT_EQ(fake.current(), fake.contextOf(1));
    EXPECT_EQ(fake.stackDepth(), 1U);
    EXPECT_EQ(fake.captureMode(), FakeDriver::kCallerMode);
  }
}

TEST(Device, GivesEverythingBack) {
  FakeDriver fake;
  {
    const auto device = gpu::Device::create(fake.driver(), 1);
    ASSERT_TRUE(device.ok());
    EXPECT_EQ(device.value()->ordinal(), 1);
    EXPECT_EQ(device.value()->handle(), FakeDriver::kFirstHandle + 1);
    EXPECT_EQ(device.value()->context(), fake.contextOf(1));
    EXPECT_NE(fake.leaks(), "");
  }
  EXPECT_EQ(fake.leaks(), "");
  EXPECT_EQ(fake.stackDepth(), 0U);
}

TEST(Device, EveryFailingCallIsNamedAndLeaksNothing) {
  for (const char* call :
       {"cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetPCIBusId", "cuDeviceGetUuid",
        "cuDeviceTotalMem", "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain", "cuStreamCreate"}) {
    FakeDriver fake;
    fake.failNth(call, CUDA_ERROR_UNKNOWN);
    expectLog(std::string("'as the test wished' (CUDA_ERROR_FAKE) in ") + call);
    EXPECT_EQ(gpu::Device::create(fake.driver(), 0).status().code(), ncclUnhandledCudaError) << call;
    EXPECT_EQ(fake.leaks(), "") << call;
    EXPECT_EQ(fake.stackDepth(), 0U) << call;
  }
}

TEST(Device, UnknownOrdinalSaysHowManyThereAre) {
  FakeDriver fake;
  for (const int ordinal : {-1, 2}) {
    expectLog("There is no CUDA device " + std::to_string(ordinal) + ": this process sees 2");
    EXPECT_EQ(gpu::Device::create(fake.driver(), ordinal).status().code(), ncclInvalidArgument);
  }
}

TEST(DeviceFacts, ComeFromTheDriver) {
  FakeDriver fake;
  const auto facts = gpu::readDeviceFacts(fake.driver(), 0);
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts.value().computeCapability, 90);
  EXPECT_EQ(facts.value().busIdText, "0000:1b:00.0");
  EXPECT_EQ(facts.value().busId, 0x1b000);
  EXPECT_TRUE(facts.value().vmm);
  fake.driver().cuMemRetainAllocationHandle = nullptr;
  EXPECT_FALSE(gpu::readDeviceFacts(fake.driver(), 0).value().vmm) << "a driver without the calls has no such memory";
}

TEST(CurrentDevice, IsZeroWithoutContextAndTheOrdinalOtherwise) {
  FakeDriver fake;
  EXPECT_EQ(gpu::currentDevice(fake.driver()).value(), 0);
  fake.pushContext(1);
  EXPECT_EQ(gpu::currentDevice(fake.driver()).value(), 1) << "the ordinal, not the CUdevice";
  EXPECT_EQ(fake.stackDepth(), 1U);
}

TEST(CurrentDevice, ReportsFailures) {
  for (const char* call : {"cuCtxGetCurrent", "cuCtxGetDevice", "cuDeviceGetCount", "cuDeviceGet"}) {
    FakeDriver fake;
    fake.pushContext(0);
    fake.failNth(call, CUDA_ERROR_UNKNOWN);
    expectLog(std::string("in ") + call);
    EXPECT_EQ(gpu::currentDevice(fake.driver()).status().code(), ncclUnhandledCudaError);
  }
}

TEST(DeviceIndex, GoesByUuid) {
  FakeDriver fake;
  const auto second = gpu::readDeviceFacts(fake.driver(), 1).value().uuid;
  const auto index = gpu::DeviceIndex::read(fake.driver());
  ASSERT_TRUE(index.ok());
  EXPECT_EQ(index.value().ordinalOf(second), 1);
  EXPECT_EQ(index.value().ordinalOf({}), -1);
}

TEST(DeviceIndex, AsksTheDriverOnce) {
  FakeDriver fake;
  const auto index = gpu::DeviceIndex::read(fake.driver());
  ASSERT_TRUE(index.ok());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(index.value().ordinalOf({}), -1);
  EXPECT_EQ(fake.calls("cuDeviceGetUuid"), FakeDriver::kDevices);
}

TEST(DeviceIndex, ReportsFailures) {
  for (const char* call : {"cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetUuid"}) {
    FakeDriver fake;
    fake.failNth(call, CUDA_ERROR_UNKNOWN);
    expectLog(std::string("in ") + call);
    EXPECT_EQ(gpu::DeviceIndex::read(fake.driver()).status().code(), ncclUnhandledCudaError) << call;
  }
}

}  // namespace
}  // namespace tutti::test
