// NVLinks, C2C links and fabrics of the machine that SOFTGPU_TOPO describes.
#include <chrono>
#include <cstring>

#include "softgpu/nvml/call.h"

using namespace tutti::softgpu;
using namespace tutti::softgpu::nvml;

namespace {

/// Runs `body` on one of the device's NVLinks.
template <class Body>
Result withLink(Device device, unsigned link, Body&& body) {
  return withGpu(device, [&](const Gpu& gpu) -> Result {
    if (link >= kMaxLinks) return kInvalidArgument;
    if (gpu.place.links.empty()) return kNotSupported;
    return link < gpu.place.links.size() ? body(gpu, gpu.place.links[link]) : kInvalidArgument;
  });
}

/// NVLink's version as NVML numbers it.
unsigned versionFor(int capability) {
  switch (capability / 10) {
    case 6:
      return 1;  // 1.0
    case 7:
      return 2;  // 2.0
    case 8:
      return capability == 80 ? 4 : 5;  // 3.0, 3.1
    case 9:
      return 6;  // 4.0
    default:
      return 7;  // 5.0
  }
}

Result copyRemote(const NvLink& link, void* to, std::size_t bytes) {
  if (to == nullptr) return kInvalidArgument;
  PciInfo info{};
  fillPciInfo(link.target, info);
  std::memcpy(to, &info, bytes);
  return kSuccess;
}

Result answer(const Gpu& gpu, FieldValue& field) {
  const Place& place = gpu.place;
  const bool isC2c = field.scope < place.c2cLinks;
  switch (field.field) {
    case kFieldNvLinkCount:
      field.value.word = static_cast<unsigned>(place.links.size());
      return kSuccess;
    case kFieldC2cLinks:
      field.value.word = place.c2cLinks;
      return kSuccess;
    case kFieldC2cStatus:
      field.value.word = 1;
      return isC2c ? kSuccess : kInvalidArgument;
    case kFieldC2cBandwidth:
      field.value.word = place.c2cBandwidth;
      return isC2c ? kSuccess : kInvalidArgument;
    default:
      return kNotSupported;
  }
}

/// No device is part of a fabric: its state is "not supported".
constexpr FabricInfo kNoFabric{};

}  // namespace

extern "C" {

Result nvmlDeviceGetNvLinkState(Device device, unsigned link, unsigned* active) {
  return withLink(device, link, [&](const Gpu&, const NvLink&) -> Result {
    if (active == nullptr) return kInvalidArgument;
    *active = 1;
    return kSuccess;
  });
}

Result nvmlDeviceGetNvLinkVersion(Device device, unsigned link, unsigned* version) {
  return withLink(device, link, [&](const Gpu& gpu, const NvLink&) -> Result {
    if (version == nullptr) return kInvalidArgument;
    *version = versionFor(gpu.facts.capability);
    return kSuccess;
  });
}

/// Traffic between devices, with atomics; over those to a processor also with its memory.
Result nvmlDeviceGetNvLinkCapability(Device device, unsigned link, unsigned capability, unsigned* has) {
  return withLink(device, link, [&](const Gpu&, const NvLink& facts) -> Result {
    if (has == nullptr || capability >= kLinkCapabilities) return kInvalidArgument;
    const bool memory = capability == kLinkSystemMemory || capability == kLinkSystemAtomics;
    *has = capability == kLinkBridge || (memory && facts.end != kEndNpu) ? 0 : 1;
    return kSuccess;
  });
}

Result nvmlDeviceGetNvLinkRemoteDeviceType(Device device, unsigned link, unsigned* type) {
  return withLink(device, link, [&](const Gpu&, const NvLink& facts) -> Result {
    if (type == nullptr) return kInvalidArgument;
    *type = facts.end;
    return kSuccess;
  });
}

Result nvmlDeviceGetNvLinkRemotePciInfo(Device device, unsigned link, PciInfo* pci) {
  return withLink(device, link,
                  [&](const Gpu&, const NvLink& facts) { return copyRemote(facts, pci, kPciInfoV2Bytes); });
}

Result nvmlDeviceGetNvLinkRemotePciInfo_v2(Device device, unsigned link, PciInfo* pci) {
  return withLink(device, link,
                  [&](const Gpu&, const NvLink& facts) { return copyRemote(facts, pci, sizeof(PciInfo)); });
}

/// Each field has a result of its own.
Result nvmlDeviceGetFieldValues(Device device, int count, FieldValue* fields) {
  return withGpu(device, [&](const Gpu& gpu) -> Result {
    if (fields == nullptr || count < 1) return kInvalidArgument;
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    for (int i = 0; i < count; ++i) {
      FieldValue& field = fields[i];
      field.timestamp = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
      field.latency = 0;
      field.type = kUnsignedInt;
      field.value.wide = 0;
      field.result = answer(gpu, field);
    }
    return kSuccess;
  });
}

Result nvmlDeviceGetGpuFabricInfo(Device device, FabricInfo* info) {
  return withGpu(device, [&](const Gpu&) -> Result {
    if (info == nullptr) return kInvalidArgument;
    *info = kNoFabric;
    return kSuccess;
  });
}

Result nvmlDeviceGetGpuFabricInfoV(Device device, void* info) {
  return withGpu(device, [&](const Gpu&) -> Result {
    if (info == nullptr) return kInvalidArgument;
    unsigned version = 0;
    std::memcpy(&version, info, sizeof(version));
    if (version == versionOf<FabricInfoV2>(2)) {
      *static_cast<FabricInfoV2*>(info) = {version, kNoFabric, 0};
    } else if (version == versionOf<FabricInfoV3>(3)) {
      *static_cast<FabricInfoV3*>(info) = {version, kNoFabric, 0, 0};
    } else {
      return kVersionMismatch;
    }
    return kSuccess;
  });
}

}  // extern "C"
