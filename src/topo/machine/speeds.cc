#include "topo/machine/speeds.h"

#include "topo/xml/values.h"

namespace tutti::topo {

float nvlinkBandwidth(int sm) {
  if (sm >= 100) return 40.1F;
  if (sm >= 90) return 20.6F;
  if (sm == 86) return 12;
  if (sm >= 70) return 20;
  return sm >= 60 ? 18.0F : 20.0F;
}

float pciBandwidth(std::string_view speed, int width) {
  return static_cast<float>((width == 0 ? 16 : width) * pciLaneSpeed(speed)) / 80.0F;
}

float cpuBandwidth(CpuKind kind) {
  switch (kind) {
    case CpuKind::IntelBroadwell:
    case CpuKind::Zhaoxin:
    case CpuKind::Arm:
      return 6;
    case CpuKind::IntelSkylake:
      return 10;
    case CpuKind::IntelSapphireRapids:
      return 22;
    case CpuKind::IntelEmeraldRapids:
      return 40;
    case CpuKind::Amd:
      return 16;
    case CpuKind::ZhaoxinYongfeng:
      return 9;
    case CpuKind::OtherX86:
      return kLocalBandwidth;
    case CpuKind::Power:
      return 32;
  }
  return kLocalBandwidth;
}

}  // namespace tutti::topo
