#include "gpu/nvml_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>
#include <utility>

namespace tutti::gpu {
namespace {

std::string busIdOf(const nvml::PciInfo& pci) {
  const bool modern = pci.busId[0] != '\0';
  const char* text = modern ? pci.busId : pci.busIdLegacy;
  std::string busId(text, ::strnlen(text, modern ? sizeof(pci.busId) : sizeof(pci.busIdLegacy)));
  std::transform(busId.begin(), busId.end(), busId.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return busId;
}

NvmlRemote remoteOf(unsigned type) {
  switch (type) {
    case 0:
      return NvmlRemote::Gpu;
    case 1:
      return NvmlRemote::Npu;
    case 2:
      return NvmlRemote::Switch;
    default:
      return NvmlRemote::Unknown;
  }
}

const char* peerReason(unsigned status) {
  switch (status) {
    case 1:
      return "chipset not supported";
    case 2:
      return "GPU not supported";
    case 3:
      return "topology not supported";
    case 4:
      return "disabled by a setting of the driver";
    case 5:
      return "not supported";
    default:
      return "unknown reason";
  }
}

unsigned long long numberOf(const nvml::FieldValue& field) {
  switch (field.type) {
    case 0:
      return static_cast<unsigned long long>(field.value.real);
    case 1:
    case 5:
      return field.value.word;
    case 6:
      return field.value.half;
    default:
      return field.value.wide;
  }
}

}  // namespace

NvmlCalls::NvmlCalls(const DlLibrary& library) {
  const auto find = [&](auto& call, const char* name) {
    call = library.function<std::remove_reference_t<decltype(call)>>(name);
  };
  find(errorString, "nvmlErrorString");
  find(count, "nvmlDeviceGetCount_v2");
  find(handleByIndex, "nvmlDeviceGetHandleByIndex_v2");
  find(handleByBusId, "nvmlDeviceGetHandleByPciBusId_v2");
  find(index, "nvmlDeviceGetIndex");
  find(pciInfo, "nvmlDeviceGetPciInfo_v3");
  find(capability, "nvmlDeviceGetCudaComputeCapability");
  find(migMode, "nvmlDeviceGetMigMode");
  find(pcieGeneration, "nvmlDeviceGetMaxPcieLinkGeneration");
  find(pcieWidth, "nvmlDeviceGetMaxPcieLinkWidth");
  find(linkState, "nvmlDeviceGetNvLinkState");
  find(linkCapability, "nvmlDeviceGetNvLinkCapability");
  find(linkRemotePci, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
  find(linkRemoteType, "nvmlDeviceGetNvLinkRemoteDeviceType");
  find(fieldValues, "nvmlDeviceGetFieldValues");
  find(peerStatus, "nvmlDeviceGetP2PStatus");
}

std::string NvmlCalls::words(nvml::Result result) const {
  const char* text = errorString == nullptr ? nullptr : errorString(result);
  return text == nullptr ? fmt::format("error {}", result) : std::string(text);
}

NvmlMachine NvmlReader::read() {
  unsigned count = 0;
  const bool usable = calls_.count != nullptr && calls_.handleByIndex != nullptr && calls_.pciInfo != nullptr;
  const nvml::Result counted = usable ? calls_.count(&count) : nvml::kNotSupported;
  if (counted != nvml::kSuccess) {
    machine_.unknown.push_back(
        fmt::format("NVML does not list the GPUs ({}): NVLinks, NVSwitches, C2C links and MIG are "
                    "unknown",
                    usable ? calls_.words(counted) : "it lacks the calls"));
    return std::move(machine_);
  }
  machine_.complete = true;
  for (unsigned i = 0; i < count; ++i) readGpu(i);
  readRefusals();
  return std::move(machine_);
}

void NvmlReader::complain(const NvmlGpu& gpu, const char* call, nvml::Result result, const char* unknown) {
  // What a GPU does not have is not unknown.
  if (result == nvml::kSuccess || result == nvml::kNotSupported || result == nvml::kInvalidArgument) return;
  machine_.unknown.push_back(
      fmt::format("{} of GPU {} ({}): {}: {}", call, gpu.index, gpu.busId, calls_.words(result), unknown));
}

void NvmlReader::readGpu(unsigned index) {
  NvmlGpu gpu;
  gpu.index = static_cast<int>(index);
  nvml::Device device = nullptr;
  nvml::PciInfo pci{};
  nvml::Result result = calls_.handleByIndex(index, &device);
  if (result == nvml::kSuccess) result = calls_.pciInfo(device, &pci);
  if (result != nvml::kSuccess) {
    // Not to be used by this process (another container's, lost from the bus): others may know it.
    machine_.complete = false;
    machine_.unknown.push_back(fmt::format("NVML does not tell about GPU {}: {}", index, calls_.words(result)));
    return;
  }
  gpu.busId = busIdOf(pci);
  int major = 0;
  int minor = 0;
  if (calls_.capability != nullptr && calls_.capability(device, &major, &minor) == nvml::kSuccess) {
    gpu.computeCapability = major * 10 + minor;
  }
  readPcie(device, gpu);
  readMig(device, gpu);
  readLinks(device, gpu);
  readC2c(device, gpu);
  machine_.gpus.push_back(std::move(gpu));
  devices_.push_back(device);
}

void NvmlReader::readPcie(nvml::Device device, NvmlGpu& gpu) {
  unsigned generation = 0;
  unsigned width = 0;
  if (calls_.pcieGeneration == nullptr || calls_.pcieWidth == nullptr) return;
  if (calls_.pcieGeneration(device, &generation) != nvml::kSuccess) return;
  if (calls_.pcieWidth(device, &width) != nvml::kSuccess) return;
  gpu.pcieGeneration = static_cast<int>(generation);
  gpu.pcieWidth = static_cast<int>(width);
}

void NvmlReader::readMig(nvml::Device device, NvmlGpu& gpu) {
  unsigned current = 0;
  unsigned pending = 0;
  if (calls_.migMode == nullptr) return;
  const nvml::Result result = calls_.migMode(device, &current, &pending);
  gpu.mig = result == nvml::kSuccess && current != 0;
  complain(gpu, "nvmlDeviceGetMigMode", result, "whether it is divided into instances is unknown");
}

NvmlLink NvmlReader::readLink(nvml::Device device, unsigned link) const {
  NvmlLink facts;
  unsigned type = 0;
  if (calls_.linkRemoteType != nullptr && calls_.linkRemoteType(device, link, &type) == nvml::kSuccess) {
    facts.remote = remoteOf(type);
  }
  nvml::PciInfo pci{};
  if (calls_.linkRemotePci != nullptr && calls_.linkRemotePci(device, link, &pci) == nvml::kSuccess) {
    facts.busId = busIdOf(pci);
  }
  return facts;
}

void NvmlReader::readLinks(nvml::Device device, NvmlGpu& gpu) {
  if (calls_.linkState == nullptr) return;
  for (unsigned link = 0; link < nvml::kMaxLinks; ++link) {
    unsigned active = 0;
    const nvml::Result result = calls_.linkState(device, link, &active);
    complain(gpu, "nvmlDeviceGetNvLinkState", result, "its NVLinks are unknown");
    if (result == nvml::kNotSupported && link > 0) continue;  // some drivers: this link is not there, others may be
    if (result != nvml::kSuccess) break;
    unsigned peer = 1;
    if (calls_.linkCapability != nullptr &&
        calls_.linkCapability(device, link, nvml::kLinkPeerToPeer, &peer) != nvml::kSuccess) {
      peer = 1;
    }
    if (active != 0 && peer != 0) gpu.links.push_back(readLink(device, link));
  }
}

void NvmlReader::readC2c(nvml::Device device, NvmlGpu& gpu) {
  if (calls_.fieldValues == nullptr) return;
  const auto ask = [&](unsigned field, unsigned scope) -> std::optional<unsigned long long> {
    nvml::FieldValue value{};
    value.field = field;
    value.scope = scope;
    if (calls_.fieldValues(device, 1, &value) != nvml::kSuccess || value.result != nvml::kSuccess) return std::nullopt;
    return numberOf(value);
  };
  const unsigned links = static_cast<unsigned>(std::min(ask(nvml::kFieldC2cLinks, 0).value_or(0), 64ull));
  for (unsigned link = 0; link < links; ++link) {
    if (ask(nvml::kFieldC2cStatus, link).value_or(0) == 0) continue;
    const auto bandwidth = ask(nvml::kFieldC2cBandwidth, link);
    if (!bandwidth || *bandwidth == 0) continue;
    ++gpu.c2cLinks;
    gpu.c2cBandwidth = static_cast<int>(*bandwidth);
  }
}

void NvmlReader::readRefusals() {
  if (calls_.peerStatus == nullptr) return;
  const int count = static_cast<int>(devices_.size());
  const std::size_t sentences = machine_.unknown.size();
  const auto status = [&](int a, int b, unsigned what) {
    unsigned answer = 0;
    const auto asked = static_cast<std::size_t>(a);
    const nvml::Result result =
        calls_.peerStatus(devices_[asked], devices_[static_cast<std::size_t>(b)], what, &answer);
    // One sentence stands for all pairs: there are many.
    if (machine_.unknown.size() == sentences) {
      complain(machine_.gpus[asked], "nvmlDeviceGetP2PStatus", result,
               "whether the driver refuses it peer access is unknown");
    }
    return result == nvml::kSuccess ? answer : 0u;
  };
  for (int a = 0; a < count; ++a) {
    for (int b = a + 1; b < count; ++b) {
      unsigned answer = status(a, b, nvml::kPeerRead);
      if (answer == 0) answer = status(a, b, nvml::kPeerWrite);
      if (answer != 0) machine_.refusals.push_back({a, b, peerReason(answer)});
    }
  }
}

}  // namespace tutti::gpu
