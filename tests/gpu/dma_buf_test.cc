#include "gpu/dma_buf.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <utility>

#include "base/log.h"
#include "gpu/fake_driver.h"
#include "support/log_capture.h"

namespace tutti::test {
namespace {

CUdeviceptr exported = 0;
std::size_t exportedBytes = 0;

CUresult exportRange(void* handle, CUdeviceptr address, std::size_t bytes, CUmemRangeHandleType, unsigned long long) {
  exported = address;
  exportedBytes = bytes;
  *static_cast<int*>(handle) = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  return CUDA_SUCCESS;
}

CUresult refuse(void*, CUdeviceptr, std::size_t, CUmemRangeHandleType, unsigned long long) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult supportsAll(int* value, CUdevice_attribute, CUdevice) {
  *value = 1;
  return CUDA_SUCCESS;
}

TEST(DmaBuf, CoversWholePages) {
  FakeDriver fake;
  const auto device = gpu::Device::create(fake.driver(), 0);
  ASSERT_TRUE(device.ok());
  fake.driver().cuMemGetHandleForAddressRange = exportRange;
  // Allocations share pages: one may begin and end within.
  for (const auto& [offset, pages] : {std::pair{0x0U, 2U}, {0x200U, 2U}, {0xf00U, 3U}}) {
    void* const memory = reinterpret_cast<void*>(0x700000 + offset);
    const auto made = gpu::dmaBufOf(*device.value(), memory, 5000, "slots");
    ASSERT_TRUE(made.ok());
    EXPECT_GE(::fcntl(made.value().fd.get(), F_GETFD), 0);
    EXPECT_EQ(exported, 0x700000U);
    EXPECT_EQ(exportedBytes, pages * 4096U);
    EXPECT_EQ(made.value().offset, offset);
  }
}

TEST(DmaBuf, NeedsADriverAndADeviceThatGiveThem) {
  FakeDriver fake;
  const auto device = gpu::Device::create(fake.driver(), 0);
  ASSERT_TRUE(device.ok());
  fake.driver().cuMemGetHandleForAddressRange = nullptr;
  EXPECT_FALSE(gpu::exportsDmaBufs(*device.value()));
  fake.driver().cuMemGetHandleForAddressRange = exportRange;
  fake.driver().cuDeviceGetAttribute = supportsAll;
  EXPECT_TRUE(gpu::exportsDmaBufs(*device.value()));
}

TEST(DmaBuf, AFailureSaysWhatItWasFor) {
  FakeDriver fake;
  const auto device = gpu::Device::create(fake.driver(), 0);
  ASSERT_TRUE(device.ok());
  fake.driver().cuMemGetHandleForAddressRange = refuse;
  expectLog("cuMemGetHandleForAddressRange");
  EXPECT_EQ(gpu::dmaBufOf(*device.value(), nullptr, 4096, "slots of channel 3").status().code(),
            ncclUnhandledCudaError);
  EXPECT_NE(std::string(lastErrorText()).find("slots of channel 3"), std::string::npos) << lastErrorText();
}

}  // namespace
}  // namespace tutti::test
