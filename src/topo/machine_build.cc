#include "topo/machine_build.h"

#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "topo/machine_speeds.h"
#include "topo/xml_scan.h"
#include "topo/xml_values.h"

namespace tutti {

namespace {

constexpr IntRange kNatural = {.least = 0, .most = INT32_MAX};

/// Where an element of the PCI tree hangs.
struct Place {
  int system = 0;
  int cpu = -1;
  int parent = -1;
  int depth = 0;  ///< PCI elements above
};

const XmlElement* firstChild(const XmlElement& element, std::string_view name) {
  for (const XmlElement& child : element.children) {
    if (child.name == name) return &child;
  }
  return nullptr;
}

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

class Builder {
 public:
  Result<Machine> build(const XmlElement& system);

 private:
  struct PendingDevice {
    const XmlElement* gpu;  // carries nvlink and c2c
    int node;
    int cpu;
  };

  Status checkSize(const XmlElement& next) const;
  Result<int> systemOf(const XmlElement& cpu);
  Status addCpu(const XmlElement& cpu);
  Status addPci(const XmlElement& pci, const Place& place);
  Status addSwitch(const XmlElement& pci, std::uint64_t busId, const Place& place);
  Status addDevice(const XmlElement& pci, std::uint64_t busId, const Place& place);
  Status addGpu(const XmlElement& gpu, int device, int index);
  Status addNic(const XmlElement& nic, int node);
  Status addNet(const XmlElement& net, int nic);
  Status addNvLinks(const PendingDevice& device);
  Status addNvLink(const XmlElement& nvlink, const PendingDevice& device);
  Status addC2c(const PendingDevice& device);
  Status addPciLinks();
  Status connectCpus(const XmlElement& system);
  Status checkBandwidths(const XmlElement& system) const;
  int nvSwitch();
  /// The node of a bus id on a host, -1: none.
  int find(int system, std::uint64_t busId) const;

  Machine machine_;
  std::vector<std::uint64_t> hosts_;
  std::map<std::pair<int, std::uint64_t>, int> byBusId_;
  std::vector<PendingDevice> devices_;
  std::vector<std::pair<const XmlElement*, int>> pciLinks_;
  std::uint64_t virtualNics_ = 0;
};

Status Builder::checkSize(const XmlElement& next) const {
  if (machine_.nodeCount() < kMaxNodes &&
      std::ssize(machine_.nodes(NodeKind::Cpu)) < kMaxCpus + (next.name == "cpu" ? 0 : 1)) {
    return {};
  }
  return fail(ncclInvalidUsage, "{}: the machine has more than {} nodes or {} CPUs", next.where(), kMaxNodes, kMaxCpus);
}

Result<int> Builder::systemOf(const XmlElement& cpu) {
  ASSIGN(const std::uint64_t hash, hexAttribute(cpu, "host_hash", 0));
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i] == hash) return static_cast<int>(i);
  }
  hosts_.push_back(hash);
  return static_cast<int>(hosts_.size()) - 1;
}

int Builder::find(int system, std::uint64_t busId) const {
  const auto found = byBusId_.find({system, busId});
  return found == byBusId_.end() ? -1 : found->second;
}

Status Builder::addCpu(const XmlElement& cpu) {
  TRY(checkSize(cpu));
  ASSIGN(const int numa, intAttribute(cpu, "numaid", {}, {.least = -1, .most = INT32_MAX}));
  ASSIGN(const CpuKind kind, cpuKindOf(cpu));
  const std::string* affinity = cpu.find("affinity");
  ASSIGN(const int system, systemOf(cpu));
  const int node = machine_.addNode(system, static_cast<std::uint32_t>(numa),
                                    CpuFacts{kind, numa, affinity == nullptr ? "" : *affinity});
  const Place place{system, node, node, 0};
  for (const XmlElement& child : cpu.children) {
    if (child.name == "pci") TRY(addPci(child, place));
    if (child.name == "nic") {
      TRY(checkSize(child));
      const int nic = machine_.addNode(system, virtualNics_++, NicFacts{});
      machine_.connect(nic, node, LinkKind::Local, kLocalBandwidth);
      TRY(addNic(child, nic));
    }
  }
  return {};
}

Status Builder::addPci(const XmlElement& pci, const Place& place) {
  TRY(checkSize(pci));
  if (place.depth >= kMaxPciDepth) {
    return fail(ncclInvalidUsage, "{}: it stands in {} others, more than any machine has", pci.where(), place.depth);
  }
  ASSIGN(const std::uint64_t busId, busIdAttribute(pci, "busid"));
  if (find(place.system, busId) >= 0) {
    return fail(ncclInvalidUsage, "{}: another element has busid=\"{}\" too", pci.where(), *pci.find("busid"));
  }
  if (firstChild(pci, "gpu") != nullptr) return addDevice(pci, busId, place);
  const XmlElement* nic = firstChild(pci, "nic");
  ASSIGN(const std::string pciClass, textAttribute(pci, "class"));
  if (nic == nullptr) {
    // The function of a GPU or NIC that nobody uses.
    const PciClass kind = pciClassOf(pciClass);
    return kind == PciClass::Gpu || kind == PciClass::Nic ? Status{} : addSwitch(pci, busId, place);
  }
  ASSIGN(const float bandwidth, uplinkBandwidth(pci));
  const int node = machine_.addNode(place.system, busId, NicFacts{});
  byBusId_[{place.system, busId}] = node;
  machine_.connect(node, place.parent, LinkKind::Pci, bandwidth);
  for (const XmlElement& child : pci.children) {
    if (child.name == "nic") TRY(addNic(child, node));
  }
  return {};
}

Status Builder::addSwitch(const XmlElement& pci, std::uint64_t busId, const Place& place) {
  ASSIGN(const std::uint64_t deviceId, deviceIdOf(pci));
  ASSIGN(const float bandwidth, uplinkBandwidth(pci));
  Place below = place;
  ++below.depth;
  const bool underSwitch = machine_.node(place.parent).kind() == NodeKind::Switch;
  if (!underSwitch || !isOneSwitch(machine_.facts<SwitchFacts>(place.parent).deviceId, deviceId)) {
    below.parent = machine_.addNode(place.system, busId, SwitchFacts{deviceId});
    machine_.connect(below.parent, place.parent, LinkKind::Pci, bandwidth);
  }
  byBusId_[{place.system, busId}] = below.parent;
  for (const XmlElement& child : pci.children) {
    if (child.name == "pci") TRY(addPci(child, below));
    if (child.name == "pcilink") pciLinks_.emplace_back(&child, below.parent);
  }
  return {};
}

Status Builder::addDevice(const XmlElement& pci, std::uint64_t busId, const Place& place) {
  const XmlElement& first = *firstChild(pci, "gpu");
  std::vector<const XmlElement*> used;
  for (const XmlElement& child : pci.children) {
    if (child.name == "gpu" && child.find("rank") != nullptr) used.push_back(&child);
  }
  if (used.empty()) return {};
  DeviceFacts facts;
  ASSIGN(facts.dev, intAttribute(*used.front(), "dev", {}, kNatural));
  ASSIGN(facts.sm, intAttribute(*used.front(), "sm", {}, {.least = 1, .most = 9999}));
  ASSIGN(facts.partition, intAttribute(*used.front(), "mlopart", -1, {.least = -1, .most = INT32_MAX}));
  ASSIGN(const int gdr, intAttribute(*used.front(), "gdr", 0));
  facts.gdr = gdr != 0;
  ASSIGN(const float bandwidth, uplinkBandwidth(pci));
  const int node = machine_.addNode(place.system, busId, facts);
  byBusId_[{place.system, busId}] = node;
  machine_.connect(node, place.parent, LinkKind::Pci, bandwidth);
  for (std::size_t i = 0; i < used.size(); ++i) TRY(addGpu(*used[i], node, static_cast<int>(i)));
  devices_.push_back({&first, node, place.cpu});
  return {};
}

Status Builder::addGpu(const XmlElement& gpu, int device, int index) {
  const Node& owner = machine_.node(device);
  const auto& deviceFacts = std::get<DeviceFacts>(owner.facts);
  TRY(checkSize(gpu));
  GpuFacts facts;
  facts.device = device;
  facts.sm = deviceFacts.sm;
  facts.gdr = deviceFacts.gdr;
  ASSIGN(facts.rank, intAttribute(gpu, "rank", {}, kNatural));
  ASSIGN(facts.dev, intAttribute(gpu, "dev", {}, kNatural));
  const std::uint64_t id = owner.id + (static_cast<std::uint64_t>(index) << 40);
  const float bandwidth = deviceFacts.partition >= 0 ? kPartitionBandwidth : kLocalBandwidth;
  const int node = machine_.addNode(owner.system, id, facts);
  machine_.connect(node, device, LinkKind::Local, bandwidth);
  return {};
}

Status Builder::addNic(const XmlElement& nic, int node) {
  for (const XmlElement& net : nic.children) {
    if (net.name != "net" || net.find("dev") == nullptr) continue;
    ASSIGN(const int usable, intAttribute(net, "net", 1));
    if (usable != 0) TRY(addNet(net, node));
  }
  return {};
}

Status Builder::addNet(const XmlElement& net, int nic) {
  const int system = machine_.node(nic).system;
  TRY(checkSize(net));
  NetFacts facts;
  if (const std::string* name = net.find("name")) facts.name = *name;
  ASSIGN(facts.dev, intAttribute(net, "dev", {}, {.least = -1, .most = INT32_MAX}));
  if (facts.dev < 0) return {};
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
  ASSIGN(facts.rail, intAttribute(net, "rail", -1, {.least = -1, .most = INT32_MAX}));
  ASSIGN(facts.plane, intAttribute(net, "plane", -1, {.least = -1, .most = INT32_MAX}));
  const float bandwidth = facts.speed;
  const int node = machine_.addNode(system, id, std::move(facts));
  machine_.connect(node, nic, LinkKind::Net, bandwidth);
  return {};
}

int Builder::nvSwitch() {
  const auto known = machine_.nodes(NodeKind::NvSwitch);
  return known.empty() ? machine_.addNode(0, 0, NvSwitchFacts{}) : known.front();
}

Status Builder::addNvLink(const XmlElement& nvlink, const PendingDevice& device) {
  ASSIGN(const std::uint64_t target, busIdAttribute(nvlink, "target"));
  ASSIGN(const int count, intAttribute(nvlink, "count", {}, {.least = 0, .most = 1024}));
  const float bandwidth = static_cast<float>(count) * nvlinkBandwidth(machine_.facts<DeviceFacts>(device.node).sm);
  if (count == 0) return {};
  const int other = find(machine_.node(device.node).system, target);
  const bool known = other >= 0 && machine_.node(other).kind() == NodeKind::Device;
  const std::string* text = nvlink.find("tclass");
  const PciClass kind = text != nullptr ? pciClassOf(*text) : known ? PciClass::Gpu : PciClass::NvSwitch;
  if (kind == PciClass::CpuBridge) {
    machine_.connect(device.node, device.cpu, LinkKind::NvLink, bandwidth);
    return {};
  }
  if (kind != PciClass::Gpu) {
    machine_.connect(device.node, nvSwitch(), LinkKind::NvLink, bandwidth);
    return {};
  }
  // A GPU that is not used, or (some machines say so) itself: nothing to travel to.
  if (known && other != device.node) machine_.connect(device.node, other, LinkKind::NvLink, bandwidth, true);
  return {};
}

Status Builder::addNvLinks(const PendingDevice& device) {
  for (const XmlElement& child : device.gpu->children) {
    if (child.name == "nvlink") TRY(addNvLink(child, device));
  }
  return {};
}

Status Builder::addC2c(const PendingDevice& device) {
  for (const XmlElement& child : device.gpu->children) {
    if (child.name != "c2c") continue;
    ASSIGN(const int megabytes, intAttribute(child, "bw", {}, kNatural));
    ASSIGN(const int count, intAttribute(child, "count", {}, {.least = 0, .most = 1024}));
    const float bandwidth = static_cast<float>(megabytes) * static_cast<float>(count) / 1000.0F;
    if (bandwidth > 0) machine_.connect(device.node, device.cpu, LinkKind::C2c, bandwidth);
  }
  return {};
}

Status Builder::addPciLinks() {
  for (const auto& [element, from] : pciLinks_) {
    ASSIGN(const std::uint64_t target, busIdAttribute(*element, "target"));
    const int to = find(machine_.node(from).system, target);
    if (to < 0 || to == from || machine_.node(to).kind() != NodeKind::Switch) continue;
    if (machine_.findLink(from, to, LinkKind::Local) >= 0) continue;
    machine_.connect(from, to, LinkKind::Local, kLocalBandwidth, true);
  }
  return {};
}

Status Builder::connectCpus(const XmlElement& system) {
  const std::vector<int> cpus(machine_.nodes(NodeKind::Cpu).begin(), machine_.nodes(NodeKind::Cpu).end());
  std::map<int, int> ofHost;
  for (const int cpu : cpus) {
    if (++ofHost[machine_.node(cpu).system] <= kMaxCpusOfHost) continue;
    return fail(ncclInvalidUsage, "{}: a host has more than {} CPUs", system.where(), kMaxCpusOfHost);
  }
  const float bandwidth = cpuBandwidth(machine_.cpuKind());
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    for (std::size_t j = i + 1; j < cpus.size(); ++j) {
      if (machine_.node(cpus[i]).system != machine_.node(cpus[j]).system) continue;
      machine_.connect(cpus[i], cpus[j], LinkKind::Sys, bandwidth);
    }
  }
  return {};
}

Status Builder::checkBandwidths(const XmlElement& system) const {
  std::set<float> bandwidths;
  for (int link = 0; link < machine_.linkCount(); ++link) bandwidths.insert(machine_.link(link).bandwidth);
  if (std::ssize(bandwidths) <= kMaxBandwidths) return {};
  return fail(ncclInvalidUsage, "{}: its links have {} different bandwidths, more than any machine has ({})",
              system.where(), bandwidths.size(), kMaxBandwidths);
}

Result<Machine> Builder::build(const XmlElement& system) {
  if (system.name != "system") {
    return fail(ncclInvalidUsage, "{}: a topology file begins with <system>", system.where());
  }
  ASSIGN(const int version, intAttribute(system, "version", {}, {.least = INT32_MIN, .most = INT32_MAX}));
  if (version != 1) {
    return fail(ncclInvalidUsage, "{} of the topology has version=\"{}\"; only version 1 is known", system.where(),
                version);
  }
  for (const XmlElement& child : system.children) {
    if (child.name == "cpu") TRY(addCpu(child));
  }
  for (const PendingDevice& device : devices_) TRY(addNvLinks(device));
  for (const PendingDevice& device : devices_) TRY(addC2c(device));
  TRY(addPciLinks());
  TRY(connectCpus(system));
  TRY(checkBandwidths(system));
  machine_.sortLinks();
  return std::move(machine_);
}

}  // namespace

bool isOneSwitch(std::uint64_t parent, std::uint64_t child) {
  constexpr std::uint64_t kGen4 = 0x1000c0101000a000;
  constexpr std::uint64_t kGen5Upper = 0x1000c03010000000;
  constexpr std::uint64_t kGen5Lower = 0x1000c03010001000;
  constexpr std::uint64_t kGen4Mask = 0xffffffffffffff00;
  constexpr std::uint64_t kGen5Mask = 0xfffffffffffff000;
  if ((parent & kGen4Mask) == kGen4) return (child & kGen4Mask) == kGen4;
  return (parent & kGen5Mask) == kGen5Upper && (child & kGen5Mask) == kGen5Lower;
}

Result<Machine> buildMachine(const XmlElement& system) {
  return Builder().build(system);
}

}  // namespace tutti
