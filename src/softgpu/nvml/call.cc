#include "softgpu/nvml/call.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace tutti::softgpu::nvml {
namespace {

/// One byte per device whose address is the handle: a handle may be anything, and must be told from others unfollowed.
std::array<char, 1024> handles;

}  // namespace

Device handleOf(unsigned index) {
  return reinterpret_cast<Device>(handles.data() + index);
}

const Gpu* gpuOf(Device device) {
  const auto& gpus = machine().gpus;
  const std::uintptr_t index =
      reinterpret_cast<std::uintptr_t>(device) - reinterpret_cast<std::uintptr_t>(handles.data());
  return index < gpus.size() ? &gpus[index] : nullptr;
}

void fillPciInfo(const Function& function, PciInfo& info) {
  info.domain = function.domain;
  info.bus = function.bus;
  info.device = function.slot;
  std::snprintf(info.busIdLegacy, sizeof(info.busIdLegacy), "%04X:%02X:%02X.0", function.domain & 0xffffu,
                function.bus & 0xffu, function.slot & 0xffu);
  std::snprintf(info.busId, sizeof(info.busId), "%08X:%02X:%02X.0", function.domain, function.bus & 0xffu,
                function.slot & 0xffu);
}

Result copyText(const std::string& text, char* to, unsigned length) {
  if (to == nullptr) return kInvalidArgument;
  if (length <= text.size()) return kInsufficientSize;
  std::memcpy(to, text.c_str(), text.size() + 1);
  return kSuccess;
}

}  // namespace tutti::softgpu::nvml
