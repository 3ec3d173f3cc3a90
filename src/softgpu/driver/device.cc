// Initialisation and devices.
#include <cstdio>
#include <cstring>

#include "softgpu/driver/entry.h"
#include "softgpu/idle_hook.h"
#include "softgpu/memory_use.h"
#include "softgpu/topology_text.h"

using namespace tutti::softgpu;

extern "C" {

CUresult cuInit(unsigned int flags) {
  return flags != 0 ? CUDA_ERROR_INVALID_VALUE : initialiseMachine();
}

CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = kCudaVersion;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  return call("cuDeviceGetCount", [&]() -> CUresult {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<int>(machine().devices.size());
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return withDevice("cuDeviceGet", ordinal, [&](Device&) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetName(char* name, int length, CUdevice ordinal) {
  return withDevice("cuDeviceGetName", ordinal, [&](Device&) {
    if (name == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
    std::snprintf(name, static_cast<std::size_t>(length), "%s", kDeviceName);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice ordinal) {
  return withDevice("cuDeviceGetUuid", ordinal, [&](Device& device) {
    if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *uuid = device.uuid();
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice ordinal) {
  return withDevice("cuDeviceTotalMem", ordinal, [&](Device& device) {
    if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *bytes = device.memoryBytes();
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice ordinal) {
  return withDevice("cuDeviceGetAttribute", ordinal, [&](Device& device) {
    if (value == nullptr || !device.attribute(attribute, value)) return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice ordinal) {
  return withDevice("cuDeviceComputeCapability", ordinal, [&](Device& device) {
    if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *major = device.facts().capability / 10;
    *minor = device.facts().capability % 10;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetPCIBusId(char* text, int length, CUdevice ordinal) {
  return withDevice("cuDeviceGetPCIBusId", ordinal, [&](Device& device) {
    const std::string id = device.facts().busId();
    if (text == nullptr || length <= static_cast<int>(id.size())) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(text, id.c_str(), id.size() + 1);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetByPCIBusId(CUdevice* ordinal, const char* text) {
  return call("cuDeviceGetByPCIBusId", [&]() -> CUresult {
    if (ordinal == nullptr || text == nullptr) return CUDA_ERROR_INVALID_VALUE;
    unsigned domain = 0;
    unsigned bus = 0;
    unsigned slot = 0;
    if (std::sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3) {
      domain = 0;
      if (std::sscanf(text, "%x:%x", &bus, &slot) != 2) return CUDA_ERROR_INVALID_VALUE;
    }
    for (const auto& device : machine().devices) {
      const DeviceFacts& facts = device->facts();
      if (facts.domain != domain || facts.bus != bus || facts.slot != slot) continue;
      *ordinal = device->index();
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_DEVICE;
  });
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice ordinal, CUdevice peer) {
  return withDevice("cuDeviceCanAccessPeer", ordinal, [&](Device&) {
    if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (deviceOf(peer) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *can = ordinal == peer ? 0 : 1;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice ordinal, CUdevice peer) {
  return withDevice("cuDeviceGetP2PAttribute", ordinal, [&](Device&) {
    if (value == nullptr || ordinal == peer) return CUDA_ERROR_INVALID_VALUE;
    if (deviceOf(peer) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ||
                     attribute == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED
                 ? 1
                 : 0;
    return CUDA_SUCCESS;
  });
}

__attribute__((visibility("default"))) int softgpuAddIdleHook(int (*turn)(void*), void (*leave)(void*), void* argument,
                                                              std::uint64_t* ticket) {
  return call("softgpuAddIdleHook", [&]() -> CUresult {
    if (turn == nullptr || leave == nullptr || ticket == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto given = machine().idleHooks.add({turn, leave, argument});
    if (!given.has_value()) return CUDA_ERROR_OUT_OF_MEMORY;
    *ticket = *given;
    return CUDA_SUCCESS;
  });
}

__attribute__((visibility("default"))) int softgpuRemoveIdleHook(std::uint64_t ticket) {
  // Also while the process ends: threads may still be waiting.
  if (!machineExists()) return CUDA_ERROR_NOT_INITIALIZED;
  return machine().idleHooks.remove(ticket) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

__attribute__((visibility("default"))) int softgpuMemoryUse(int physical, size_t* bytes) {
  return call("softgpuMemoryUse", [&]() -> CUresult {
    if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (const auto& device : machine().devices) {
      if (device->facts().physical != physical) continue;
      *bytes = device->usedBytes();
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_DEVICE;
  });
}

__attribute__((visibility("default"))) int softgpuTopology(const char** text, size_t* bytes, const char** path) {
  return call("softgpuTopology", [&]() -> CUresult {
    if (text == nullptr || bytes == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (machine().file.text.empty()) return CUDA_ERROR_NOT_FOUND;
    *text = machine().file.text.c_str();
    *bytes = machine().file.text.size();
    *path = machine().settings.topology.c_str();
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
