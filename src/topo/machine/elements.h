// What single elements of a topology file say: the facts of nodes, and the bandwidth of PCI links.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "topo/machine/machine.h"
#include "topo/xml/values.h"
#include "topo/xml/xml.h"

namespace tutti::topo {

inline constexpr IntRange kNatural = {.least = 0, .most = INT32_MAX};
inline constexpr IntRange kNaturalOrNone = {.least = -1, .most = INT32_MAX};

/// All of them: errors are ncclInvalidUsage with element, line and attribute.
Result<CpuKind> cpuKindOf(const XmlElement& cpu);
/// Vendor, device and those of the subsystem, 16 bits each.
Result<std::uint64_t> deviceIdOf(const XmlElement& pci);
/// Of the link towards the CPU.
Result<float> uplinkBandwidth(const XmlElement& pci);
Result<DeviceFacts> deviceFactsOf(const XmlElement& gpu);
/// Of a rank on the device with that number of the machine.
Result<GpuFacts> gpuFactsOf(const XmlElement& gpu, int device, const DeviceFacts& deviceFacts);
/// `system`: the host's number, for nets without a guid. A negative `dev` says that the net cannot be used.
Result<NetFacts> netFactsOf(const XmlElement& net, int system);

}  // namespace tutti::topo
