#include "gpu/driver.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/log.h"
#include "gpu/fake_driver.h"
#include "support/log_capture.h"

namespace tutti::test {
namespace {

/// Runs loadDriver() twice in a process of its own, whose first libcuda.so.1 is the one in `folder`. Gives the
/// process's output: "code N: text" per attempt.
std::string loadInChild(const std::string& folder, const std::string& environment = {}) {
  const std::string command = "env " + environment + " LD_LIBRARY_PATH=" + folder + " timeout 20 " +
                              std::filesystem::read_symlink("/proc/self/exe").string() +
                              " --gtest_also_run_disabled_tests --gtest_filter=LoadDriverChild.* 2>&1";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string output;
  std::array<char, 512> line{};
  while (pipe != nullptr && std::fgets(line.data(), line.size(), pipe) != nullptr) output += line.data();
  if (pipe != nullptr) ::pclose(pipe);
  return output;
}

/// A folder for a libcuda.so.1, removed with all that is in it.
struct DriverFolder {
  explicit DriverFolder(const char* name)
      : path(testing::TempDir() + "tutti-driver-" + name + "-" + std::to_string(::getpid())) {
    std::filesystem::create_directories(path);
  }
  DriverFolder(const DriverFolder&) = delete;
  ~DriverFolder() { std::filesystem::remove_all(path); }
  std::string path;
};

std::size_t countOf(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::string environmentPath(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? "" : value;
}

TEST(LoadDriverChild, DISABLED_PrintsWhatHappens) {
  allowLog("");
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto loaded = gpu::loadDriver();
    std::printf("code %d: %s\n", static_cast<int>(loaded.status().code()), lastErrorText());
  }
}

TEST(LoadDriver, MissingDriverIsACudaErrorWithARemedyOnEveryCall) {
  // A file that is no library hides any driver of the machine.
  const DriverFolder folder("none");
  std::ofstream(folder.path + "/libcuda.so.1") << "not a library";
  const std::string output = loadInChild(folder.path);
  EXPECT_EQ(countOf(output, "code 1: The CUDA driver was not found: "), 2U) << output;
  EXPECT_NE(output.find("Install the NVIDIA driver"), std::string::npos) << output;
  EXPECT_NE(output.find("softgpu-run"), std::string::npos) << output;
}

TEST(LoadDriver, OldDriverIsNamedWithWhatItLacks) {
  const std::string library = environmentPath("TUTTI_TEST_OLD_DRIVER");
  ASSERT_FALSE(library.empty()) << "run by meson test, which sets TUTTI_TEST_OLD_DRIVER";
  const DriverFolder folder("old");
  std::filesystem::create_symlink(library, folder.path + "/libcuda.so.1");
  const std::string output = loadInChild(folder.path);
  EXPECT_NE(output.find("code 1: The CUDA driver " + folder.path + "/libcuda.so.1 lacks cuDriverGetVersion"),
            std::string::npos)
      << output;
  EXPECT_NE(output.find("Update the NVIDIA driver"), std::string::npos) << output;
}

TEST(LoadDriver, FailingInitialisationCarriesTheDriversWords) {
  const std::string output = loadInChild("$LD_LIBRARY_PATH", "SOFTGPU_DEVICES=0");
  EXPECT_NE(output.find(" in cuInit of "), std::string::npos) << output;
  EXPECT_EQ(countOf(output, "code 1: Cuda failure "), 2U) << output;
}

TEST(LoadDriver, InfoLogOfTheFirstCallDoesNotStopIt) {
  const std::string output = loadInChild("$LD_LIBRARY_PATH", "NCCL_DEBUG=INFO");
  EXPECT_EQ(countOf(output, "code 0"), 2U) << output;
}

TEST(CheckCu, SuccessSaysNothing) {
  FakeDriver fake;
  EXPECT_TRUE(gpu::checkCu(fake.driver(), CUDA_SUCCESS, "cuMemAlloc").ok());
  EXPECT_TRUE(gpu::checkCu(fake.driver(), CUDA_SUCCESS, gpu::CuCall{"cuMemAlloc"}).ok());
}

TEST(CheckCu, NamesCallDescriptionNameAndDevice) {
  FakeDriver fake;
  expectLog("Cuda failure 201 'as the test wished' (CUDA_ERROR_FAKE) in cuCtxPushCurrent on device 3");
  const Status status = gpu::checkCu(fake.driver(), CUDA_ERROR_INVALID_CONTEXT, "cuCtxPushCurrent", 3);
  EXPECT_EQ(status.code(), ncclUnhandledCudaError);
}

TEST(CheckCu, OutOfMemoryNamesBytesPurposeAndRemedy) {
  FakeDriver fake;
  expectLog(
      "Cuda failure 2 'out of memory' (CUDA_ERROR_OUT_OF_MEMORY) in cuMemAlloc of 4096 bytes for slots of rank 1 "
      "on device 0. The device has no memory left");
  EXPECT_FALSE(
      gpu::checkCu(fake.driver(), CUDA_ERROR_OUT_OF_MEMORY, gpu::CuCall{"cuMemAlloc", 0, 4096, "slots of rank 1"})
          .ok());
}

TEST(CheckCu, ADriverThatWasNotStartedMayBeThatOfAParent) {
  FakeDriver fake;
  expectLog("in cuMemAlloc on device 0. In a child made by fork() nothing of its parent's CUDA works");
  EXPECT_FALSE(gpu::checkCu(fake.driver(), CUDA_ERROR_NOT_INITIALIZED, gpu::CuCall{"cuMemAlloc", 0}).ok());
}

TEST(CheckCu, ADriverThatShutsDownIsNoErrorLineButTheLastError) {
  FakeDriver fake;  // a WARN or ERROR line that nobody expects fails the test
  const Status status = gpu::checkCu(fake.driver(), CUDA_ERROR_DEINITIALIZED, "cuCtxPushCurrent", 0);
  EXPECT_EQ(status.code(), ncclUnhandledCudaError);
  EXPECT_NE(std::string_view(lastErrorText()).find("Cuda failure 4"), std::string_view::npos) << lastErrorText();
}

TEST(CheckCu, DriverWithoutWordsStillGivesTheNumber) {
  const gpu::Driver silent;
  expectLog("Cuda failure 700 'no description' (unknown error) in cuLaunchKernel");
  EXPECT_FALSE(gpu::checkCu(silent, CUDA_ERROR_ILLEGAL_ADDRESS, "cuLaunchKernel").ok());
  EXPECT_EQ(gpu::describeCu(silent, CUDA_ERROR_ILLEGAL_ADDRESS), "unknown error 'no description'");
}

}  // namespace
}  // namespace tutti::test
