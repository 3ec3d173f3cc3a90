// CUPTI of the software GPU: it refuses. NVIDIA's own asks the driver for unpublished tables and crashes without them.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>

#include "softgpu/cupti/unsupported.h"
#include "softgpu/say.h"

namespace tutti::softgpu::cupti {
namespace {

/// CUPTI's results, as far as they occur.
enum Result : int { kSuccess = 0, kInvalidParameter = 1, kNotSupported = 27 };

#ifdef SOFTGPU_CUPTI_12
constexpr std::uint32_t kVersion = 28;  // of the interface, as CUDA 12.9 has it
#else
constexpr std::uint32_t kVersion = 130001;  // as CUDA 13.0 has it
#endif

}  // namespace

int unsupportedFunction(const char* name) {
  static std::atomic<bool> told{false};
  if (!told.exchange(true)) {
    say("CUPTI is not supported (%s was called): profilers see no kernels, copies or calls of CUDA", name);
  }
  return kNotSupported;
}

}  // namespace tutti::softgpu::cupti

using namespace tutti::softgpu::cupti;

extern "C" {

Result cuptiGetVersion(std::uint32_t* version) {
  if (version == nullptr) return kInvalidParameter;
  *version = kVersion;
  return kSuccess;
}

Result cuptiGetResultString(int result, const char** text) {
  if (text == nullptr) return kInvalidParameter;
  switch (result) {
    case kSuccess:
      *text = "CUPTI_SUCCESS";
      return kSuccess;
    case kInvalidParameter:
      *text = "CUPTI_ERROR_INVALID_PARAMETER";
      return kSuccess;
    case kNotSupported:
      *text = "CUPTI_ERROR_NOT_SUPPORTED";
      return kSuccess;
    default:
      return kInvalidParameter;
  }
}

Result cuptiGetErrorMessage(int result, const char** text) {
  if (text == nullptr) return kInvalidParameter;
  if (result != kNotSupported) return cuptiGetResultString(result, text);
  *text = "CUPTI is not supported by the software GPU";
  return kSuccess;
}

/// Nanoseconds since 1970, as on a GPU's host.
Result cuptiGetTimestamp(std::uint64_t* timestamp) {
  if (timestamp == nullptr) return kInvalidParameter;
  std::timespec now{};
  std::timespec_get(&now, TIME_UTC);
  *timestamp = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
  return kSuccess;
}

/// Nothing was recorded, so nothing was lost and there is nothing to hand over.
Result cuptiActivityGetNumDroppedRecords(void*, std::uint32_t, std::size_t* dropped) {
  if (dropped == nullptr) return kInvalidParameter;
  *dropped = 0;
  return kSuccess;
}

Result cuptiActivityFlushAll(std::uint32_t) {
  return kSuccess;
}

/// Nobody could subscribe, so nothing has to be undone.
Result cuptiFinalize() {
  return kSuccess;
}

}  // extern "C"
