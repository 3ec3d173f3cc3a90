// Beginning, end, versions and errors.
#include <atomic>

#include "softgpu/nvml/call.h"
#include "softgpu/nvml/unsupported.h"

namespace tutti::softgpu::nvml {
namespace {

// The driver branch of CUDA 13.0; there is no build of it here.
constexpr const char* kDriverVersion = "580.0";
constexpr const char* kNvmlVersion = "13.580.0";
constexpr unsigned kKnownFlags = 7;  // no devices are no error here, and none are attached: all flags are met

std::atomic<unsigned> starts{0};

}  // namespace

bool started() {
  return starts.load(std::memory_order_acquire) > 0;
}

int unsupportedFunction(const char*) {
  return started() ? kNotSupported : kUninitialized;
}

}  // namespace tutti::softgpu::nvml

using namespace tutti::softgpu;
using namespace tutti::softgpu::nvml;

extern "C" {

Result nvmlInitWithFlags(unsigned flags) {
  return guarded([&]() -> Result {
    if ((flags & ~kKnownFlags) != 0) return kInvalidArgument;
    static_cast<void>(nvml::machine());
    starts.fetch_add(1, std::memory_order_release);
    return kSuccess;
  });
}

Result nvmlInit_v2() {
  return nvmlInitWithFlags(0);
}

Result nvmlShutdown() {
  unsigned count = starts.load();
  do {
    if (count == 0) return kUninitialized;
  } while (!starts.compare_exchange_weak(count, count - 1));
  return kSuccess;
}

const char* nvmlErrorString(int result) {
  constexpr const char* kWords[] = {"Success",
                                    "Uninitialized",
                                    "Invalid Argument",
                                    "Not Supported",
                                    "Insufficient Permissions",
                                    "Already Initialized",
                                    "Not Found",
                                    "Insufficient Size",
                                    "Insufficient External Power",
                                    "Driver Not Loaded",
                                    "Timeout",
                                    "Interrupt Request Issue",
                                    "NVML Shared Library Not Found",
                                    "Function Not Found",
                                    "Corrupted infoROM",
                                    "GPU is lost",
                                    "GPU requires reset",
                                    "The operating system has blocked the request",
                                    "Driver/library version mismatch",
                                    "In use by another client",
                                    "Insufficient Memory",
                                    "No data",
                                    "ECC is not supported with this vGPU",
                                    "Insufficient Resources",
                                    "Frequency not supported",
                                    "Argument version mismatch",
                                    "Deprecated function",
                                    "Not ready",
                                    "GPU not found",
                                    "Invalid state",
                                    "Reset type not supported"};
  constexpr int kCount = static_cast<int>(sizeof(kWords) / sizeof(kWords[0]));
  return result >= 0 && result < kCount ? kWords[result] : "Unknown Error";
}

Result nvmlSystemGetDriverVersion(char* version, unsigned length) {
  return call([&] { return copyText(kDriverVersion, version, length); });
}

Result nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  return guarded([&] { return copyText(kNvmlVersion, version, length); });
}

Result nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return guarded([&]() -> Result {
    if (version == nullptr) return kInvalidArgument;
    *version = kCudaVersion;
    return kSuccess;
  });
}

/// There are none: S-class units, and boards that an administrator took out.
Result nvmlUnitGetCount(unsigned* count) {
  return call([&]() -> Result {
    if (count == nullptr) return kInvalidArgument;
    *count = 0;
    return kSuccess;
  });
}

Result nvmlGetExcludedDeviceCount(unsigned* count) {
  return nvmlUnitGetCount(count);
}

}  // extern "C"
