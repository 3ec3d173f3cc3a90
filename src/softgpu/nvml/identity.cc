// Which devices there are, and what names them.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "softgpu/nvml/call.h"

using namespace tutti::softgpu;
using namespace tutti::softgpu::nvml;

namespace {

constexpr unsigned kUnknownArchitecture = 0xffffffff;

/// Finds the first device that `is` says yes to.
template <class Is>
Result find(Device* device, Is&& is) {
  if (device == nullptr) return kInvalidArgument;
  const auto& gpus = nvml::machine().gpus;
  const auto found = std::find_if(gpus.begin(), gpus.end(), is);
  if (found == gpus.end()) return kNotFound;
  *device = handleOf(found->index);
  return kSuccess;
}

unsigned architectureOf(int capability) {
  switch (capability / 10) {
    case 7:
      return capability < 75 ? 5 : 6;  // Volta, Turing
    case 8:
      return capability < 89 ? 7 : 8;  // Ampere, Ada
    case 9:
      return 9;  // Hopper
    case 10:
    case 11:
    case 12:
      return 10;  // Blackwell
    default:
      return kUnknownArchitecture;
  }
}

Result copyPciInfo(const Gpu& gpu, void* to, std::size_t bytes) {
  if (to == nullptr) return kInvalidArgument;
  PciInfo info{};
  fillPciInfo(gpu.function(), info);
  info.pciDeviceId = gpu.place.pciDeviceId;
  info.pciSubSystemId = gpu.place.pciSubSystemId;
  std::memcpy(to, &info, bytes);
  return kSuccess;
}

}  // namespace

extern "C" {

Result nvmlDeviceGetCount_v2(unsigned* count) {
  return call([&]() -> Result {
    if (count == nullptr) return kInvalidArgument;
    *count = static_cast<unsigned>(nvml::machine().gpus.size());
    return kSuccess;
  });
}

Result nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  return call([&]() -> Result {
    if (device == nullptr || index >= nvml::machine().gpus.size()) return kInvalidArgument;
    *device = handleOf(index);
    return kSuccess;
  });
}

Result nvmlDeviceGetHandleByPciBusId_v2(const char* text, Device* device) {
  return call([&]() -> Result {
    if (text == nullptr) return kInvalidArgument;
    const std::optional<Function> wanted = parseFunction(text);
    if (!wanted) return kInvalidArgument;
    return find(device, [&](const Gpu& gpu) { return gpu.function() == *wanted; });
  });
}

Result nvmlDeviceGetHandleByUUID(const char* uuid, Device* device) {
  return call([&]() -> Result {
    if (uuid == nullptr) return kInvalidArgument;
    return find(device, [&](const Gpu& gpu) { return gpu.uuidText() == uuid; });
  });
}

Result nvmlDeviceGetHandleByUUIDV(const Uuid* uuid, Device* device) {
  return call([&]() -> Result {
    if (uuid == nullptr) return kInvalidArgument;
    if (uuid->version != versionOf<Uuid>(1)) return kVersionMismatch;
    switch (uuid->type) {
      case kUuidText:
        return find(device, [&](const Gpu& gpu) {
          return gpu.uuidText() == std::string(uuid->value.text, ::strnlen(uuid->value.text, sizeof(uuid->value.text)));
        });
      case kUuidBytes:
        return find(device, [&](const Gpu& gpu) {
          return std::memcmp(uuid->value.bytes, gpu.uuid.bytes, sizeof(gpu.uuid.bytes)) == 0;
        });
      default:
        return kInvalidArgument;
    }
  });
}

Result nvmlDeviceGetHandleBySerial(const char* serial, Device* device) {
  return call([&]() -> Result {
    if (serial == nullptr) return kInvalidArgument;
    return find(device, [&](const Gpu& gpu) { return gpu.serial() == serial; });
  });
}

Result nvmlDeviceGetName(Device device, char* name, unsigned length) {
  return withGpu(device, [&](const Gpu&) { return copyText(kDeviceName, name, length); });
}

Result nvmlDeviceGetUUID(Device device, char* uuid, unsigned length) {
  return withGpu(device, [&](const Gpu& gpu) { return copyText(gpu.uuidText(), uuid, length); });
}

Result nvmlDeviceGetSerial(Device device, char* serial, unsigned length) {
  return withGpu(device, [&](const Gpu& gpu) { return copyText(gpu.serial(), serial, length); });
}

Result nvmlDeviceGetIndex(Device device, unsigned* index) {
  return tell(device, index, [](const Gpu& gpu) { return gpu.index; });
}

/// There is no /dev/nvidiaN; tools take the number for that of the device.
Result nvmlDeviceGetMinorNumber(Device device, unsigned* minor) {
  return nvmlDeviceGetIndex(device, minor);
}

Result nvmlDeviceGetPciInfo(Device device, PciInfo* pci) {
  return withGpu(device, [&](const Gpu& gpu) { return copyPciInfo(gpu, pci, kPciInfoV1Bytes); });
}

Result nvmlDeviceGetPciInfo_v2(Device device, PciInfo* pci) {
  return withGpu(device, [&](const Gpu& gpu) { return copyPciInfo(gpu, pci, kPciInfoV2Bytes); });
}

Result nvmlDeviceGetPciInfo_v3(Device device, PciInfo* pci) {
  return withGpu(device, [&](const Gpu& gpu) { return copyPciInfo(gpu, pci, sizeof(PciInfo)); });
}

Result nvmlDeviceGetPciInfoExt(Device device, PciInfoExt* pci) {
  return withGpu(device, [&](const Gpu& gpu) -> Result {
    if (pci == nullptr) return kInvalidArgument;
    if (pci->version != versionOf<PciInfoExt>(1)) return kVersionMismatch;
    PciInfo info{};
    fillPciInfo(gpu.function(), info);
    *pci = {pci->version,
            info.domain,
            info.bus,
            info.device,
            gpu.place.pciDeviceId,
            gpu.place.pciSubSystemId,
            gpu.place.pciClass >> 16 & 0xffu,
            gpu.place.pciClass >> 8 & 0xffu,
            {}};
    std::memcpy(pci->busId, info.busId, sizeof(pci->busId));
    return kSuccess;
  });
}

Result nvmlDeviceGetCudaComputeCapability(Device device, int* major, int* minor) {
  return withGpu(device, [&](const Gpu& gpu) -> Result {
    if (major == nullptr || minor == nullptr) return kInvalidArgument;
    *major = gpu.facts.capability / 10;
    *minor = gpu.facts.capability % 10;
    return kSuccess;
  });
}

Result nvmlDeviceGetArchitecture(Device device, unsigned* architecture) {
  return tell(device, architecture, [](const Gpu& gpu) { return architectureOf(gpu.facts.capability); });
}

/// It has none of NVIDIA's.
Result nvmlDeviceGetBrand(Device device, unsigned* brand) {
  return tell(device, brand, [](const Gpu&) { return 0u; });
}

/// Each device is a board of its own.
Result nvmlDeviceGetBoardId(Device device, unsigned* board) {
  return tell(device, board,
              [](const Gpu& gpu) { return gpu.facts.domain << 16 | gpu.facts.bus << 8 | gpu.facts.slot << 3; });
}

Result nvmlDeviceGetMultiGpuBoard(Device device, unsigned* several) {
  return tell(device, several, [](const Gpu&) { return 0u; });
}

Result nvmlDeviceOnSameBoard(Device device, Device other, int* same) {
  return tell(device, same, [&](const Gpu&) { return device == other ? 1 : 0; });
}

}  // extern "C"
