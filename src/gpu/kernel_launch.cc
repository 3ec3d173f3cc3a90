#include "gpu/kernel_launch.h"

#include <array>

namespace tutti::gpu {

namespace {

bool isPlain(const KernelLaunch& launch) {
  return !launch.remoteDomain && launch.begun == nullptr;
}

}  // namespace

CUresult launchKernel(const Driver& driver, const KernelLaunch& launch) {
  if (isPlain(launch)) {
    return driver.cuLaunchKernel(launch.function, launch.grid, 1, 1, launch.block, 1, 1, 0, launch.stream,
                                 launch.params, nullptr);
  }
  std::array<CUlaunchAttribute, 2> attributes{};
  CUlaunchConfig config{};
  config.gridDimX = launch.grid;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = launch.block;
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = launch.stream;
  config.attrs = attributes.data();
  if (launch.remoteDomain) {
    CUlaunchAttribute& domain = attributes[config.numAttrs++];
    domain.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
    domain.value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
  }
  if (launch.begun != nullptr) {
    CUlaunchAttribute& completion = attributes[config.numAttrs++];
    completion.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
    completion.value.launchCompletionEvent.event = launch.begun;
  }
  return driver.cuLaunchKernelEx(&config, launch.function, launch.params, nullptr);
}

const char* callOf(const KernelLaunch& launch) {
  return isPlain(launch) ? "cuLaunchKernel" : "cuLaunchKernelEx";
}

}  // namespace tutti::gpu
