#include "comm/settings/version.h"

#include <fmt/format.h>

#include "gpu/driver.h"
#include "nccl.h"

namespace tutti::comm {

std::string versionNumber() {
  return fmt::format("{}.{}.{}{}", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH, NCCL_SUFFIX);
}

std::string versionText() {
  return fmt::format("NCCL version {}+cuda{}.{}", versionNumber(), CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
}

}  // namespace tutti::comm
