#include "device/built_kernels.h"

#include "device/thread_executor.h"

namespace tutti::device::test {

const bool kPartialBuild = TUTTI_PARTIAL_KERNELS;
const std::uint64_t kSeeds = TUTTI_TEST_SEEDS;

bool isLeftOut(std::string_view kernelName) {
  return kPartialBuild && findKernel(kernelName) == nullptr;
}

}  // namespace tutti::device::test
