#include "gpu/kernel_launch.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace tutti::test {
namespace {

struct Launched {
  std::string call;
  unsigned grid = 0;
  unsigned block = 0;
  CUstream stream = nullptr;
  void** params = nullptr;
  std::vector<CUlaunchAttribute> attributes;
};
Launched launched;

CUresult plain(CUfunction, unsigned gridX, unsigned, unsigned, unsigned blockX, unsigned, unsigned, unsigned,
               CUstream stream, void** params, void**) {
  launched = {"cuLaunchKernel", gridX, blockX, stream, params, {}};
  return CUDA_SUCCESS;
}

CUresult withAttributes(const CUlaunchConfig* config, CUfunction, void** params, void**) {
  launched = {"cuLaunchKernelEx",
              config->gridDimX * config->gridDimY * config->gridDimZ,
              config->blockDimX * config->blockDimY * config->blockDimZ,
              config->hStream,
              params,
              std::vector(config->attrs, config->attrs + config->numAttrs)};
  return CUDA_ERROR_LAUNCH_FAILED;
}

class KernelLaunch : public testing::Test {
 protected:
  KernelLaunch() {
    driver.cuLaunchKernel = plain;
    driver.cuLaunchKernelEx = withAttributes;
    launch.stream = reinterpret_cast<CUstream>(&driver);
    launch.params = &param;
    launch.grid = 5;
    launch.block = 96;
  }
  void expectShape(const std::string& call) const {
    EXPECT_EQ(launched.call, call);
    EXPECT_EQ(gpu::callOf(launch), call);
    EXPECT_EQ(launched.grid, 5u);
    EXPECT_EQ(launched.block, 96u);
    EXPECT_EQ(launched.stream, launch.stream);
    EXPECT_EQ(launched.params, launch.params);
  }
  static std::optional<CUlaunchAttributeValue> attribute(CUlaunchAttributeID id) {
    for (const CUlaunchAttribute& one : launched.attributes) {
      if (one.id == id) return one.value;
    }
    return std::nullopt;
  }

  gpu::Driver driver;
  void* param = nullptr;
  gpu::KernelLaunch launch;
};

TEST_F(KernelLaunch, NeedsNoNewDriverWhereItSaysNothingNew) {
  EXPECT_EQ(gpu::launchKernel(driver, launch), CUDA_SUCCESS);
  expectShape("cuLaunchKernel");
}

TEST_F(KernelLaunch, MayRunInTheRemoteDomain) {
  launch.remoteDomain = true;
  EXPECT_EQ(gpu::launchKernel(driver, launch), CUDA_ERROR_LAUNCH_FAILED) << "the driver's answer";
  expectShape("cuLaunchKernelEx");
  ASSERT_EQ(launched.attributes.size(), 1u);
  EXPECT_EQ(attribute(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN)->memSyncDomain, CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE);
}

TEST_F(KernelLaunch, MayRecordAnEventWhenItHasBegun) {
  launch.begun = reinterpret_cast<CUevent>(&param);
  gpu::launchKernel(driver, launch);
  expectShape("cuLaunchKernelEx");
  ASSERT_EQ(launched.attributes.size(), 1u);
  const auto completion = attribute(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)->launchCompletionEvent;
  EXPECT_EQ(completion.event, launch.begun);
  EXPECT_EQ(completion.flags, 0);
  launch.remoteDomain = true;
  gpu::launchKernel(driver, launch);
  EXPECT_EQ(launched.attributes.size(), 2u);
}

}  // namespace
}  // namespace tutti::test
