// Which PCI functions a topology needs.
#pragma once

#include <cstdint>
#include <vector>

#include "topo/detect/detect.h"

namespace tutti::topo {

/// A bridge between PCI buses: a port of a switch, or a root port.
constexpr bool isBridge(std::uint32_t classCode) {
  return classCode >> 8 == 0x0604;
}

/// Of all functions of a machine, by bus id: GPUs, NVSwitches, network and accelerator functions, and the bridges above
/// them. Storage, USB and the like are left out.
std::vector<PciFacts> pciOfUse(std::vector<PciFacts> all);

}  // namespace tutti::topo
