#include "base/result_name.h"

#include <fmt/core.h>

#include <array>
#include <cstddef>

namespace tutti {

std::string resultName(ncclResult_t code) {
  constexpr std::array<const char*, ncclNumResults> kNames{
      "ncclSuccess",      "ncclUnhandledCudaError", "ncclSystemError", "ncclInternalError", "ncclInvalidArgument",
      "ncclInvalidUsage", "ncclRemoteError",        "ncclInProgress",  "ncclTimeout"};
  const auto index = static_cast<std::size_t>(static_cast<unsigned>(code));
  return index < kNames.size() ? kNames[index] : fmt::format("{}, which is no result code", static_cast<int>(code));
}

}  // namespace tutti
