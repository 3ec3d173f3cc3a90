#include "gpu/kernels.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <latch>
#include <semaphore>
#include <string>
#include <thread>

#include "device/kernels/fatbins.h"
#include "gpu/fake_driver.h"
#include "gpu/self_copy.h"
#include "support/log_capture.h"

namespace tutti::test {
namespace {

int refuseKernels(const simt::HostKernelTable*, void**) {
  return CUDA_ERROR_INVALID_IMAGE;
}

int takeKernels(const simt::HostKernelTable*, void** module) {
  *module = reinterpret_cast<void*>(std::size_t{128});
  return CUDA_SUCCESS;
}

std::string pathFrom(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? "" : value;
}

/// Asks the software GPU's way for one kernel from the module at `path`.
Status getHostKernel(FakeDriver& fake, const std::string& path,
                     int (*registerKernels)(const simt::HostKernelTable*, void**)) {
  fake.driver().softGpu = true;
  fake.driver().softgpuRegisterKernels = registerKernels;
  ASSIGN(const auto device, gpu::Device::create(fake.driver(), 0));
  ASSIGN(const auto kernels, gpu::KernelSet::create(*device, {path}));
  return kernels->get("tutti_SendRecv_Copy_i8").status();
}

TEST(KernelSet, KernelThatWasNotBuiltIsInvalidUsage) {
  FakeDriver fake;
  const auto device = gpu::Device::create(fake.driver(), 1);
  const auto kernels = gpu::KernelSet::create(*device.value());
  expectLog(device::embeddedFatbins().empty() ? "This library was built without GPU kernels"
                                              : "This library was built without these kernels");
  EXPECT_EQ(kernels.value()->get("tutti_Nothing_Ring_Simple_Sum_f32").status().code(), ncclInvalidUsage);
}

TEST(KernelSet, FatbinThatDoesNotFitNamesArchitectureAndRemedy) {
  if (device::embeddedFatbins().empty()) GTEST_SKIP() << "built without nvcc: no fatbin to load";
  FakeDriver fake;
  const auto device = gpu::Device::create(fake.driver(), 1);
  const auto kernels = gpu::KernelSet::create(*device.value());
  fake.failNth("cuModuleLoadData", CUDA_ERROR_NO_BINARY_FOR_GPU);
  expectLog("(compute capability 9.0) on device 1. This build has no kernel for the GPU's architecture");
  EXPECT_EQ(kernels.value()->get("tutti_SendRecv_Copy_i8").status().code(), ncclUnhandledCudaError);
  EXPECT_TRUE(kernels.value()->get("tutti_SendRecv_Copy_i8").ok()) << "the next attempt starts afresh";
}

TEST(KernelSet, LoadsNothingMoreOnceAllIsLoaded) {
  if (device::embeddedFatbins().empty()) GTEST_SKIP() << "built without nvcc: no fatbin to load";
  FakeDriver fake;
  {
    const auto device = gpu::Device::create(fake.driver(), 1);
    const auto kernels = gpu::KernelSet::create(*device.value());
    ASSERT_TRUE(kernels.value()->loadAll().ok());
    EXPECT_EQ(fake.calls("cuModuleLoadData"), static_cast<int>(device::embeddedFatbins().size()));
    const int lookUps = fake.calls("cuModuleGetFunction");
    ASSERT_TRUE(kernels.value()->get("tutti_SendRecv_Copy_i8").ok());
    ASSERT_TRUE(kernels.value()->get("tutti_AllReduce_Ring_Simple_Any_f32").ok());
    ASSERT_TRUE(kernels.value()->loadAll().ok());
    EXPECT_EQ(fake.calls("cuModuleLoadData"), static_cast<int>(device::embeddedFatbins().size()));
    EXPECT_EQ(fake.calls("cuModuleGetFunction"), lookUps);
  }
  EXPECT_EQ(fake.leaks(), "");
}

TEST(KernelSet, LoadingAllStopsAtTheFirstErrorAndCanBeTriedAgain) {
  if (device::embeddedFatbins().empty()) GTEST_SKIP() << "built without nvcc: no fatbin to load";
  FakeDriver fake;
  const auto device = gpu::Device::create(fake.driver(), 1);
  const auto kernels = gpu::KernelSet::create(*device.value());
  fake.failNth("cuModuleLoadData", CUDA_ERROR_OUT_OF_MEMORY, 3);
  expectLog("in cuModuleLoadData for kernels ");
  EXPECT_EQ(kernels.value()->loadAll().code(), ncclUnhandledCudaError);
  EXPECT_TRUE(kernels.value()->loadAll().ok());
  EXPECT_EQ(fake.calls("cuModuleLoadData"), static_cast<int>(device::embeddedFatbins().size()) + 1);
}

/// What a driver does that loads until it is told to stop, 20 s at most.
struct SlowLoading {
  std::latch begun{1};
  std::binary_semaphore enough{0};
  bool inTime = false;
};

SlowLoading& slowLoading() {
  static SlowLoading instance;
  return instance;
}

TEST(KernelSet, KnownKernelsAreFoundWhileOthersLoad) {
  if (device::embeddedFatbins().empty()) GTEST_SKIP() << "built without nvcc: no fatbin to load";
  FakeDriver fake;
  const auto device = gpu::Device::create(fake.driver(), 0);
  const auto kernels = gpu::KernelSet::create(*device.value());
  ASSERT_TRUE(kernels.value()->get("tutti_SendRecv_Copy_i8").ok());
  fake.driver().cuModuleLoadData = [](CUmodule*, const void*) {
    slowLoading().begun.count_down();
    slowLoading().inTime = slowLoading().enough.try_acquire_for(std::chrono::seconds(20));
    return CUDA_ERROR_OUT_OF_MEMORY;
  };
  expectLog("in cuModuleLoadData for kernels AllReduce_Ring_Simple_f32");
  std::thread loader([&] { EXPECT_FALSE(kernels.value()->get("tutti_AllReduce_Ring_Simple_Sum_f32").ok()); });
  slowLoading().begun.wait();
  EXPECT_TRUE(kernels.value()->get("tutti_SendRecv_Copy_i8").ok());
  slowLoading().enough.release();
  loader.join();
  EXPECT_TRUE(slowLoading().inTime) << "the known kernel was found only after the other had been loaded";
}

TEST(KernelSet, MissingHostModuleNamesPathAndRemedy) {
  FakeDriver fake;
  expectLog("/nowhere/kernels.so cannot be loaded");
  EXPECT_EQ(getHostKernel(fake, "/nowhere/kernels.so", takeKernels).code(), ncclSystemError);
  EXPECT_NE(capturedText().find("TUTTI_KERNELS_PATH"), std::string::npos);
  EXPECT_EQ(fake.leaks(), "");
}

TEST(KernelSet, WithoutAPathLooksBesideItself) {
  FakeDriver fake;
  expectLog("/libtutti-kernels-host.so cannot be loaded");
  EXPECT_EQ(getHostKernel(fake, "", takeKernels).code(), ncclSystemError);
}

TEST(KernelSet, AnInstalledModuleLiesInTheFolderTutti) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("tutti-kernels-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder / "tutti");
  const std::string beside = folder / "libtutti-kernels-host.so";
  const std::string installed = folder / "tutti/libtutti-kernels-host.so";
  EXPECT_EQ(gpu::hostModuleIn(folder), beside) << "the path that errors name where there is none";
  std::ofstream(installed) << "kernels";
  EXPECT_EQ(gpu::hostModuleIn(folder), installed);
  std::ofstream(beside) << "kernels";
  EXPECT_EQ(gpu::hostModuleIn(folder), beside);
  std::filesystem::remove_all(folder);
}

TEST(KernelSet, OtherLibraryIsNoKernelModule) {
  FakeDriver fake;
  expectLog("is not tutti's kernel module");
  EXPECT_EQ(getHostKernel(fake, pathFrom("TUTTI_TEST_OLD_DRIVER"), takeKernels).code(), ncclSystemError);
}

TEST(KernelSet, ModuleOfAnotherBuildIsRefused) {
  FakeDriver fake;
  expectLog("install both from one build");
  EXPECT_EQ(getHostKernel(fake, pathFrom("TUTTI_TEST_FOREIGN_KERNELS"), takeKernels).code(), ncclSystemError);
}

TEST(KernelSet, RefusedRegistrationIsReported) {
  FakeDriver fake;
  expectLog("in softgpuRegisterKernels");
  EXPECT_EQ(getHostKernel(fake, hostKernelsPath(), refuseKernels).code(), ncclUnhandledCudaError);
  EXPECT_EQ(fake.leaks(), "");
}

TEST(KernelSet, UnknownKernelOfALoadedModuleIsInvalidUsage) {
  FakeDriver fake;
  fake.driver().cuModuleUnload = [](CUmodule) { return CUDA_SUCCESS; };
  fake.failNth("cuModuleGetFunction", CUDA_ERROR_NOT_FOUND);
  expectLog("This build of tutti has no kernel tutti_SendRecv_Copy_i8");
  EXPECT_EQ(getHostKernel(fake, hostKernelsPath(), takeKernels).code(), ncclInvalidUsage);
}

TEST(KernelSet, OtherLookUpErrorNamesTheKernel) {
  FakeDriver fake;
  fake.driver().cuModuleUnload = [](CUmodule) { return CUDA_SUCCESS; };
  fake.failNth("cuModuleGetFunction", CUDA_ERROR_UNKNOWN);
  expectLog("in cuModuleGetFunction for kernel tutti_SendRecv_Copy_i8");
  EXPECT_EQ(getHostKernel(fake, hostKernelsPath(), takeKernels).code(), ncclUnhandledCudaError);
}

TEST(KernelSet, LoadsOnceAndRemembers) {
  FakeDriver fake;
  fake.driver().cuModuleUnload = [](CUmodule) { return CUDA_SUCCESS; };
  fake.driver().softGpu = true;
  fake.driver().softgpuRegisterKernels = takeKernels;
  const auto device = gpu::Device::create(fake.driver(), 0);
  const auto kernels = gpu::KernelSet::create(*device.value(), {hostKernelsPath()});
  ASSERT_TRUE(kernels.value()->get("tutti_SendRecv_Copy_i8").ok());
  ASSERT_TRUE(kernels.value()->get("tutti_SendRecv_Copy_i8").ok());
  EXPECT_EQ(fake.calls("cuModuleGetFunction"), 1);
}

}  // namespace
}  // namespace tutti::test
