#include "gpu/mapped_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "gpu/fake_driver.h"
#include "gpu/memory.h"
#include "gpu/memory_ledger.h"
#include "support/log_capture.h"

namespace tutti::test {
namespace {

using gpu::MappedFor;
using gpu::MappedMemory;

constexpr std::size_t kMappedGrain = std::size_t{2} << 20;

TEST(MappedMemory, IsTheSameThroughItsDescriptor) {
  const gpu::Driver& driver = *gpu::loadDriver().value();
  const auto owner = gpu::Device::create(driver, 0).value();
  const auto other = gpu::Device::create(driver, 1).value();
  std::optional<MappedMemory> adopted;
  constexpr std::uint64_t kWord = 0x0123456789abcdefULL;
  {
    const MappedMemory memory = MappedMemory::create(*owner, kMappedGrain + 1, "a test", MappedFor::OwnDevice).value();
    EXPECT_EQ(memory.size(), 2 * kMappedGrain);
    const Fd descriptor = memory.descriptor().value();
    adopted.emplace(MappedMemory::adopt(*other, descriptor, memory.size(), "a test").value());
    EXPECT_NE(adopted->address(), memory.address());
    ASSERT_TRUE(gpu::copyToDevice(*owner, memory.address() + kMappedGrain, std::as_bytes(std::span(&kWord, 1))).ok());
  }
  std::uint64_t word = 0;
  ASSERT_TRUE(
      gpu::copyToHost(*other, std::as_writable_bytes(std::span(&word, 1)), adopted->address() + kMappedGrain).ok());
  EXPECT_EQ(word, kWord) << "it outlives its owner's mapping";
}

TEST(MappedMemory, ProgramsThatAreStartedDoNotInheritItsDescriptor) {
  FakeDriver fake;
  const auto device = gpu::Device::create(fake.driver(), 0).value();
  const auto memory = MappedMemory::create(*device, 1, "a test", MappedFor::OwnDevice);
  ASSERT_TRUE(memory.ok());
  const Fd descriptor = memory.value().descriptor().value();
  EXPECT_EQ(::fcntl(descriptor.get(), F_GETFD), FD_CLOEXEC);
}

TEST(MappedMemory, IsForItsOwnDeviceAloneUnlessOthersAreMeant) {
  FakeDriver fake;
  const auto device = gpu::Device::create(fake.driver(), 1).value();
  {
    const auto memory = MappedMemory::create(*device, 1, "a test", MappedFor::OwnDevice);
    ASSERT_TRUE(memory.ok());
    ASSERT_EQ(fake.access.size(), 1U);
    EXPECT_EQ(fake.access[0].location.id, FakeDriver::kFirstHandle + 1);
  }
  const auto memory = MappedMemory::create(*device, 1, "a test", MappedFor::EveryDeviceThatReachesIt);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(fake.access.size(), 2U);
}

TEST(MappedMemory, IsBookedWithWhatItTakes) {
  FakeDriver fake;
  const auto device = gpu::Device::create(fake.driver(), 0).value();
  const auto ledger = std::make_shared<gpu::MemoryLedger>();
  {
    const auto memory = MappedMemory::create(*device, 1, {"a test", ledger}, MappedFor::OwnDevice);
    EXPECT_EQ(ledger->bytes(gpu::MemoryClass::Releasable), kMappedGrain);
  }
  EXPECT_EQ(ledger->bytes(gpu::MemoryClass::Releasable), 0U);
}

TEST(MappedMemory, StaysMappedWhileTheDeviceDoesNotEndWithIt) {
  FakeDriver fake;
  const auto device = gpu::Device::create(fake.driver(), 0).value();
  {
    const auto memory = MappedMemory::create(*device, 64, "a test", MappedFor::OwnDevice);
    ASSERT_TRUE(memory.ok());
    fake.streamState = CUDA_ERROR_LAUNCH_FAILED;
    expectLog("2097152 bytes of device 0 stay mapped");
  }
  EXPECT_EQ(fake.calls("cuMemUnmap"), 0);
  fake.streamState = CUDA_SUCCESS;
}

TEST(MappedMemory, EveryFailureOfMakingItIsNamedAndLeaksNothing) {
  for (const char* call : {"cuMemGetAllocationGranularity", "cuMemCreate", "cuMemAddressReserve", "cuMemMap",
                           "cuDeviceCanAccessPeer", "cuMemSetAccess"}) {
    FakeDriver fake;
    const auto device = gpu::Device::create(fake.driver(), 0).value();
    const std::string before = fake.leaks();
    fake.failNth(call, CUDA_ERROR_OUT_OF_MEMORY);
    expectLog(std::string("(CUDA_ERROR_OUT_OF_MEMORY) in ") + call);
    const auto memory = MappedMemory::create(*device, 64, "a test", MappedFor::EveryDeviceThatReachesIt);
    EXPECT_EQ(memory.status().code(), ncclUnhandledCudaError) << call;
    EXPECT_EQ(fake.leaks(), before) << call;
  }
}

TEST(MappedMemory, EveryFailureOfSharingItIsNamedAndLeaksNothing) {
  for (const char* call : {"cuMemExportToShareableHandle", "cuMemImportFromShareableHandle", "cuMemAddressReserve",
                           "cuMemMap", "cuMemSetAccess"}) {
    FakeDriver fake;
    const auto device = gpu::Device::create(fake.driver(), 0).value();
    const std::string before = fake.leaks();
    {
      const auto memory = MappedMemory::create(*device, 64, "a test", MappedFor::OwnDevice);
      ASSERT_TRUE(memory.ok());
      fake.failNth(call, CUDA_ERROR_OUT_OF_MEMORY);
      expectLog(std::string("(CUDA_ERROR_OUT_OF_MEMORY) in ") + call);
      const auto descriptor = memory.value().descriptor();
      if (descriptor.ok()) {
        EXPECT_FALSE(MappedMemory::adopt(*device, descriptor.value(), kMappedGrain, "rank 3").ok()) << call;
      }
    }
    EXPECT_EQ(fake.leaks(), before) << call;
  }
}

TEST(MappedMemory, WhatCannotBeImportedNamesItsOwner) {
  FakeDriver fake;
  const auto device = gpu::Device::create(fake.driver(), 0).value();
  fake.failNth("cuMemImportFromShareableHandle", CUDA_ERROR_INVALID_VALUE);
  expectLog("in cuMemImportFromShareableHandle of 2097152 bytes for memory of rank 3 on device 0");
  EXPECT_FALSE(MappedMemory::adopt(*device, Fd(), kMappedGrain, "rank 3").ok());
}

TEST(MappedMemory, ThatIsReleasedIsFreedByAnyAddressInIt) {
  FakeDriver fake;
  const auto device = gpu::Device::create(fake.driver(), 0).value();
  const std::string before = fake.leaks();
  CUdeviceptr address = 0;
  {
    MappedMemory memory = MappedMemory::create(*device, 64, "a test", MappedFor::OwnDevice).value();
    address = memory.release();
  }
  EXPECT_NE(fake.leaks(), before);
  EXPECT_TRUE(gpu::freeMapped(*device, address).ok());
  EXPECT_EQ(fake.leaks(), before);
}

}  // namespace
}  // namespace tutti::test
