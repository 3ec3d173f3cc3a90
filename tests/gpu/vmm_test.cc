#include "gpu/vmm.h"

#include <gtest/gtest.h>

#include <string>

#include "gpu/fake_driver.h"
#include "support/log_capture.h"

namespace tutti::test {
namespace {

constexpr std::size_t kGrain = std::size_t{2} << 20;

TEST(SharedMemory, SizeZeroGivesNull) {
  FakeDriver fake;
  const auto nothing = gpu::allocateShared(fake.driver(), 0, 0, true);
  ASSERT_TRUE(nothing.ok());
  EXPECT_EQ(nothing.value(), nullptr);
  EXPECT_TRUE(gpu::freeShared(fake.driver(), nullptr, true).ok());
}

TEST(SharedMemory, RoundsUpAndGivesAccessToEveryDeviceThatReachesIt) {
  FakeDriver fake;
  const auto memory = gpu::allocateShared(fake.driver(), 0, kGrain + 1, true);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(fake.createdBytes, 2 * kGrain);
  ASSERT_EQ(fake.access.size(), 2U);
  EXPECT_EQ(fake.access[0].location.id, FakeDriver::kFirstHandle);
  EXPECT_EQ(fake.access[1].flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  EXPECT_TRUE(gpu::freeShared(fake.driver(), memory.value(), true).ok());
  EXPECT_EQ(fake.leaks(), "");
}

TEST(SharedMemory, DevicesThatCannotReachItGetNoAccess) {
  FakeDriver fake;
  fake.peerAccess = false;
  const auto memory = gpu::allocateShared(fake.driver(), 1, 1, true);
  ASSERT_TRUE(memory.ok());
  ASSERT_EQ(fake.access.size(), 1U);
  EXPECT_EQ(fake.access[0].location.id, FakeDriver::kFirstHandle + 1);
  EXPECT_TRUE(gpu::freeShared(fake.driver(), memory.value(), true).ok());
}

TEST(SharedMemory, PlainWhereForbiddenOrUnsupported) {
  FakeDriver fake;
  for (const bool supported : {true, false}) {
    fake.vmmSupported = supported;
    const bool allowed = !supported;
    const auto memory = gpu::allocateShared(fake.driver(), 1, 64, allowed);
    ASSERT_TRUE(memory.ok());
    EXPECT_EQ(fake.calls("cuMemCreate"), 0);
    EXPECT_TRUE(gpu::freeShared(fake.driver(), memory.value(), allowed).ok());
    EXPECT_EQ(fake.leaks(), "");
  }
}

TEST(SharedMemory, PlainPointerIsRefusedWhereVmmIsUsed) {
  FakeDriver fake;
  const auto plain = gpu::allocateShared(fake.driver(), 1, 64, false);
  ASSERT_TRUE(plain.ok());
  expectLog("in cuMemRetainAllocationHandle for a pointer that ncclMemAlloc did not give");
  EXPECT_EQ(gpu::freeShared(fake.driver(), plain.value(), true).code(), ncclUnhandledCudaError);
  EXPECT_TRUE(gpu::freeShared(fake.driver(), plain.value(), false).ok());
  EXPECT_EQ(fake.leaks(), "");
}

TEST(SharedMemory, HostPointerIsRefused) {
  FakeDriver fake;
  fake.knowsPointers = false;
  expectLog("in cuPointerGetAttribute for a pointer that is no device memory");
  EXPECT_EQ(gpu::freeShared(fake.driver(), &fake, true).code(), ncclUnhandledCudaError);
}

TEST(SharedMemory, EveryFailureIsNamedAndLeaksNothing) {
  for (const char* call : {"cuMemGetAllocationGranularity", "cuMemCreate", "cuMemAddressReserve", "cuMemMap",
                           "cuDeviceCanAccessPeer", "cuMemSetAccess"}) {
    FakeDriver fake;
    fake.failNth(call, CUDA_ERROR_OUT_OF_MEMORY);
    expectLog(std::string("(CUDA_ERROR_OUT_OF_MEMORY) in ") + call);
    EXPECT_EQ(gpu::allocateShared(fake.driver(), 0, 64, true).status().code(), ncclUnhandledCudaError) << call;
    EXPECT_EQ(fake.leaks(), "") << call;
    EXPECT_EQ(fake.stackDepth(), 0U) << call;
  }
  for (const char* call : {"cuMemAlloc", "cuDevicePrimaryCtxRetain"}) {
    FakeDriver fake;
    // The context is retained for the Device first, then for the memory.
    fake.failNth(call, CUDA_ERROR_OUT_OF_MEMORY, std::string(call) == "cuMemAlloc" ? 1 : 2);
    expectLog(std::string("(CUDA_ERROR_OUT_OF_MEMORY) in ") + call);
    EXPECT_EQ(gpu::allocateShared(fake.driver(), 0, 64, false).status().code(), ncclUnhandledCudaError) << call;
    EXPECT_EQ(fake.leaks(), "") << call;
  }
}

TEST(SharedMemory, OutOfMemoryNamesTheBytes) {
  FakeDriver fake;
  fake.failNth("cuMemCreate", CUDA_ERROR_OUT_OF_MEMORY);
  expectLog("in cuMemCreate of 2097152 bytes for ncclMemAlloc on device 1");
  EXPECT_FALSE(gpu::allocateShared(fake.driver(), 1, 5, true).ok());
}

}  // namespace
}  // namespace tutti::test
