#include "topo/machine/elements.h"

#include <string>

#include "base/log.h"
#include "topo/machine/speeds.h"
#include "topo/xml/scan.h"

namespace tutti::topo {

namespace {

Result<CpuKind> intelKind(const XmlElement& cpu) {
  ASSIGN(const int family, intAttribute(cpu, "familyid", {}, kNatural));
  ASSIGN(const int model, intAttribute(cpu, "modelid", {}, kNatural));
  if (family != 6 || model < 0x55) return CpuKind::IntelBroadwell;
  if (model >= 0xCF) return CpuKind::IntelEmeraldRapids;
  return model >= 0x8F ? CpuKind::IntelSapphireRapids : CpuKind::IntelSkylake;
}

Result<CpuKind> zhaoxinKind(const XmlElement& cpu) {
  ASSIGN(const int family, intAttribute(cpu, "familyid", {}, kNatural));
  ASSIGN(const int model, intAttribute(cpu, "modelid", {}, kNatural));
  return family == 7 && model == 0x5B ? CpuKind::ZhaoxinYongfeng : CpuKind::Zhaoxin;
}

}  // namespace

Result<CpuKind> cpuKindOf(const XmlElement& cpu) {
  ASSIGN(const std::string arch, textAttribute(cpu, "arch"));
  if (arch.starts_with("arm64")) return CpuKind::Arm;
  if (arch.starts_with("ppc64")) return CpuKind::Power;
  if (!arch.starts_with("x86_64")) {
    return fail(ncclInvalidUsage, "{}: arch=\"{}\" is none of x86_64, arm64 and ppc64", cpu.where(), shownText(arch));
  }
  ASSIGN(const std::string vendor, textAttribute(cpu, "vendor"));
  if (vendor.starts_with("GenuineIntel")) return intelKind(cpu);
  if (vendor.starts_with("AuthenticAMD")) return CpuKind::Amd;
  if (vendor.starts_with("CentaurHauls") || vendor.starts_with("  Shanghai  ")) return zhaoxinKind(cpu);
  return CpuKind::OtherX86;
}

Result<std::uint64_t> deviceIdOf(const XmlElement& pci) {
  std::uint64_t id = 0;
  for (const char* attribute : {"vendor", "device", "subsystem_vendor", "subsystem_device"}) {
    ASSIGN(const std::uint64_t part, hexAttribute(pci, attribute, 0));
    id = id << 16 | (part & 0xffff);
  }
  return id;
}

Result<float> uplinkBandwidth(const XmlElement& pci) {
  const std::string* speed = pci.find("link_speed");
  const std::string* width = pci.find("link_width");
  if (speed == nullptr) return textAttribute(pci, "link_speed").status();
  if (width == nullptr) return textAttribute(pci, "link_width").status();
  ASSIGN(const int lanes, intAttribute(pci, "link_width", 0, {.least = 0, .most = 1024}));
  return pciBandwidth(*speed, lanes);
}

Result<DeviceFacts> deviceFactsOf(const XmlElement& gpu) {
  DeviceFacts facts;
  ASSIGN(facts.dev, intAttribute(gpu, "dev", {}, kNatural));
  ASSIGN(facts.sm, intAttribute(gpu, "sm", {}, {.least = 1, .most = 9999}));
  ASSIGN(facts.partition, intAttribute(gpu, "mlopart", -1, kNaturalOrNone));
  ASSIGN(const int gdr, intAttribute(gpu, "gdr", 0));
  facts.gdr = gdr != 0;
  return facts;
}

Result<GpuFacts> gpuFactsOf(const XmlElement& gpu, int device, const DeviceFacts& deviceFacts) {
  GpuFacts facts;
  facts.device = device;
  facts.sm = deviceFacts.sm;
  facts.gdr = deviceFacts.gdr;
  ASSIGN(facts.rank, intAttribute(gpu, "rank", {}, kNatural));
  ASSIGN(facts.dev, intAttribute(gpu, "dev", {}, kNatural));
  return facts;
}

Result<NetFacts> netFactsOf(const XmlElement& net, int system) {
  NetFacts facts;
  if (const std::string* name = net.find("name")) facts.name = *name;
  ASSIGN(facts.dev, intAttribute(net, "dev", {}, kNaturalOrNone));
  if (facts.dev < 0) return facts;
  const auto id = static_cast<std::uint64_t>(facts.dev);
  ASSIGN(const int speed, intAttribute(net, "speed", 0, {.least = INT32_MIN, .most = INT32_MAX}));
  facts.speed = static_cast<float>(speed > 0 ? speed : 10000) / 8000.0F;
  ASSIGN(facts.port, intAttribute(net, "port", 0));
  ASSIGN(facts.guid, hexAttribute(net, "guid", static_cast<std::uint64_t>(system) << 56 | id));
  ASSIGN(facts.latency, floatAttribute(net, "latency", 0));
  ASSIGN(facts.maxConnections, intAttribute(net, "maxconn", 64));
  ASSIGN(const int gdr, intAttribute(net, "gdr", 0));
  ASSIGN(const int collective, intAttribute(net, "coll", 0));
  facts.gdr = gdr != 0;
  facts.collective = collective != 0;
  ASSIGN(facts.rail, intAttribute(net, "rail", -1, kNaturalOrNone));
  ASSIGN(facts.plane, intAttribute(net, "plane", -1, kNaturalOrNone));
  return facts;
}

}  // namespace tutti::topo
