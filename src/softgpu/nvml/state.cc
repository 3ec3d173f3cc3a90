// What devices do and how they are set: memory, load, processes, modes.
#include <algorithm>

#include "softgpu/nvml/call.h"

using namespace tutti::softgpu;
using namespace tutti::softgpu::nvml;

namespace {

/// What is switched off on every device, and cannot be switched on.
Result off(Device device, unsigned* value) {
  return tell(device, value, [](const Gpu&) { return 0u; });
}

/// Two states, now and after the next start.
Result bothOff(Device device, unsigned* current, unsigned* pending) {
  const Result result = off(device, current);
  return result == kSuccess ? off(device, pending) : result;
}

/// Nobody's processes are known: each has a software GPU of its own.
Result noProcesses(Device device, unsigned* count) {
  return off(device, count);
}

}  // namespace

extern "C" {

Result nvmlDeviceGetMemoryInfo(Device device, Memory* memory) {
  return withGpu(device, [&](const Gpu& gpu) -> Result {
    if (memory == nullptr) return kInvalidArgument;
    const std::uint64_t total = nvml::machine().memoryBytes;
    const std::uint64_t used = std::min(usedBytes(gpu), total);  // the environment may have changed in between
    *memory = {total, total - used, used};
    return kSuccess;
  });
}

Result nvmlDeviceGetMemoryInfo_v2(Device device, MemoryV2* memory) {
  return call([&]() -> Result {
    if (memory == nullptr) return kInvalidArgument;
    if (memory->version != versionOf<MemoryV2>(2)) return kVersionMismatch;
    Memory plain{};
    const Result result = nvmlDeviceGetMemoryInfo(device, &plain);
    if (result == kSuccess) *memory = {memory->version, plain.total, 0, plain.free, plain.used};
    return result;
  });
}

/// The processors of the machine do the work, and others' work besides.
Result nvmlDeviceGetUtilizationRates(Device device, Utilization* rates) {
  return withGpu(device, [&](const Gpu&) -> Result {
    if (rates == nullptr) return kInvalidArgument;
    *rates = {0, 0};
    return kSuccess;
  });
}

Result nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count, void*) {
  return noProcesses(device, count);
}

Result nvmlDeviceGetGraphicsRunningProcesses_v3(Device device, unsigned* count, void*) {
  return noProcesses(device, count);
}

Result nvmlDeviceGetMPSComputeRunningProcesses_v3(Device device, unsigned* count, void*) {
  return noProcesses(device, count);
}

Result nvmlDeviceGetPersistenceMode(Device device, unsigned* mode) {
  return off(device, mode);
}

/// 0: any number of processes.
Result nvmlDeviceGetComputeMode(Device device, unsigned* mode) {
  return off(device, mode);
}

Result nvmlDeviceGetEccMode(Device device, unsigned* current, unsigned* pending) {
  return bothOff(device, current, pending);
}

Result nvmlDeviceGetDefaultEccMode(Device device, unsigned* mode) {
  return off(device, mode);
}

Result nvmlDeviceGetMigMode(Device device, unsigned* current, unsigned* pending) {
  return bothOff(device, current, pending);
}

Result nvmlDeviceGetMaxMigDeviceCount(Device device, unsigned* count) {
  return off(device, count);
}

Result nvmlDeviceIsMigDeviceHandle(Device device, unsigned* is) {
  return off(device, is);
}

Result nvmlDeviceGetVirtualizationMode(Device device, unsigned* mode) {
  return off(device, mode);
}

Result nvmlDeviceGetDisplayMode(Device device, unsigned* display) {
  return off(device, display);
}

Result nvmlDeviceGetDisplayActive(Device device, unsigned* active) {
  return off(device, active);
}

}  // extern "C"
