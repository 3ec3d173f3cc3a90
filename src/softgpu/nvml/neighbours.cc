// Devices to one another and to processors: peer access, PCI tree, affinity.
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "softgpu/nvml/call.h"

using namespace tutti::softgpu;
using namespace tutti::softgpu::nvml;

namespace {

constexpr unsigned kBits = sizeof(unsigned long) * CHAR_BIT;
constexpr unsigned kScopes = 2;  // node and socket: the file knows no difference

/// By a link from one to the other, or by links of both to switches, of which a machine has one network.
bool joinedByNvLink(const Gpu& a, const Gpu& b) {
  const auto isSwitch = [](const NvLink& link) { return link.end == kEndSwitch; };
  const auto& one = a.place.links;
  const auto& other = b.place.links;
  return std::any_of(one.begin(), one.end(),
                     [&](const NvLink& link) { return link.end == kEndGpu && link.target == b.function(); }) ||
         (std::any_of(one.begin(), one.end(), isSwitch) && std::any_of(other.begin(), other.end(), isSwitch));
}

/// Runs `body` on two devices.
template <class Body>
Result withPair(Device device, Device other, Body&& body) {
  return withGpu(device, [&](const Gpu& gpu) -> Result {
    const Gpu* second = gpuOf(other);
    return second == nullptr ? kInvalidArgument : body(gpu, *second);
  });
}

bool hasProcessor(const Place& place, unsigned processor) {
  const auto& words = place.processors;
  return processor / 32 < words.size() && (words[processor / 32] >> processor % 32 & 1u) != 0;
}

/// Those of the file that this machine has; where there is none of them, all that it has.
void fillProcessors(const Place& place, unsigned words, unsigned long* set) {
  const auto here = static_cast<unsigned>(std::max(1l, ::sysconf(_SC_NPROCESSORS_CONF)));
  const unsigned count = words > here / kBits ? here : words * kBits;
  bool any = false;
  for (unsigned i = 0; i < here; ++i) any = any || hasProcessor(place, i);
  std::fill_n(set, words, 0ul);
  for (unsigned i = 0; i < count; ++i) {
    if (!any || hasProcessor(place, i)) set[i / kBits] |= 1ul << i % kBits;
  }
}

/// A number of the PCIe link; 0 is unknown.
template <class Ask>
Result tellKnown(Device device, unsigned* value, Ask&& ask) {
  return withGpu(device, [&](const Gpu& gpu) -> Result {
    if (value == nullptr) return kInvalidArgument;
    if (ask(gpu) == 0) return kNotSupported;
    *value = ask(gpu);
    return kSuccess;
  });
}

unsigned generation(const Gpu& gpu) {
  return gpu.place.pcieGeneration;
}
unsigned width(const Gpu& gpu) {
  return gpu.place.pcieWidth;
}

}  // namespace

extern "C" {

/// As cuDeviceGetP2PAttribute: all devices reach each other's memory, by whatever way.
Result nvmlDeviceGetP2PStatus(Device device, Device other, unsigned what, unsigned* status) {
  return withPair(device, other, [&](const Gpu& a, const Gpu& b) -> Result {
    if (status == nullptr || a.index == b.index || what >= kPeerQuestions) return kInvalidArgument;
    const bool yes = what == kPeerNvLink ? joinedByNvLink(a, b) : what <= kPeerAtomics;
    *status = yes ? kPeerOk : kPeerNotSupported;
    return kSuccess;
  });
}

Result nvmlDeviceGetTopologyCommonAncestor(Device device, Device other, unsigned* level) {
  return withPair(device, other, [&](const Gpu& a, const Gpu& b) -> Result {
    if (level == nullptr) return kInvalidArgument;
    if (a.index != b.index && !(a.place.known && b.place.known)) return kNotSupported;
    *level = a.index == b.index ? kInternal : commonAncestor(a.place, b.place);
    return kSuccess;
  });
}

Result nvmlDeviceGetTopologyNearestGpus(Device device, unsigned level, unsigned* count, Device* devices) {
  return withGpu(device, [&](const Gpu& gpu) -> Result {
    if (count == nullptr || level > kSystem || (*count > 0 && devices == nullptr)) return kInvalidArgument;
    if (!gpu.place.known) return kNotSupported;
    unsigned found = 0;
    for (const Gpu& other : nvml::machine().gpus) {
      if (other.index == gpu.index || !other.place.known || commonAncestor(gpu.place, other.place) != level) continue;
      if (found < *count) devices[found] = handleOf(other.index);
      ++found;
    }
    *count = *count == 0 ? found : std::min(found, *count);
    return kSuccess;
  });
}

Result nvmlDeviceGetCpuAffinityWithinScope(Device device, unsigned words, unsigned long* set, unsigned scope) {
  return withGpu(device, [&](const Gpu& gpu) -> Result {
    if (set == nullptr || words == 0 || scope >= kScopes) return kInvalidArgument;
    fillProcessors(gpu.place, words, set);
    return kSuccess;
  });
}

Result nvmlDeviceGetCpuAffinity(Device device, unsigned words, unsigned long* set) {
  return nvmlDeviceGetCpuAffinityWithinScope(device, words, set, 0);
}

Result nvmlDeviceGetMemoryAffinity(Device device, unsigned words, unsigned long* set, unsigned scope) {
  return withGpu(device, [&](const Gpu& gpu) -> Result {
    if (set == nullptr || words == 0 || scope >= kScopes) return kInvalidArgument;
    if (gpu.place.numaNode < 0) return kNotSupported;
    const auto node = static_cast<unsigned>(gpu.place.numaNode);
    std::fill_n(set, words, 0ul);
    if (node / kBits < words) set[node / kBits] = 1ul << node % kBits;
    return kSuccess;
  });
}

Result nvmlDeviceGetMaxPcieLinkGeneration(Device device, unsigned* value) {
  return tellKnown(device, value, generation);
}

Result nvmlDeviceGetCurrPcieLinkGeneration(Device device, unsigned* value) {
  return tellKnown(device, value, generation);
}

Result nvmlDeviceGetMaxPcieLinkWidth(Device device, unsigned* value) {
  return tellKnown(device, value, width);
}

Result nvmlDeviceGetCurrPcieLinkWidth(Device device, unsigned* value) {
  return tellKnown(device, value, width);
}

}  // extern "C"
