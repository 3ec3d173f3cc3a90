#include "topo/machine/pci.h"

#include <iterator>
#include <string>

#include "base/log.h"
#include "topo/machine/build.h"
#include "topo/machine/elements.h"
#include "topo/machine/speeds.h"
#include "topo/xml/scan.h"
#include "topo/xml/values.h"

namespace tutti::topo {

namespace {

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

class PciBuilder {
 public:
  Result<PciTrees> build(const XmlElement& system);

 private:
  Status checkSize(const XmlElement& next) const;
  Result<int> systemOf(const XmlElement& cpu);
  Status addCpu(const XmlElement& cpu);
  Status addPci(const XmlElement& pci, const Place& place);
  Status addPciNic(const XmlElement& pci, std::uint64_t busId, const Place& place);
  Status addSwitch(const XmlElement& pci, std::uint64_t busId, const Place& place);
  Status addDevice(const XmlElement& pci, std::uint64_t busId, const Place& place);
  Status addGpu(const XmlElement& gpu, int device, int index);
  Status addNic(const XmlElement& nic, int node);
  Status addNet(const XmlElement& net, int nic);

  PciTrees trees_;
  std::vector<std::uint64_t> hosts_;
  std::uint64_t virtualNics_ = 0;
};

Status PciBuilder::checkSize(const XmlElement& next) const {
  if (trees_.machine.nodeCount() < kMaxNodes &&
      std::ssize(trees_.machine.nodes(NodeKind::Cpu)) < kMaxCpus + (next.name == "cpu" ? 0 : 1)) {
    return {};
  }
  return fail(ncclInvalidUsage, "{}: the machine has more than {} nodes or {} CPUs", next.where(), kMaxNodes, kMaxCpus);
}

Result<int> PciBuilder::systemOf(const XmlElement& cpu) {
  ASSIGN(const std::uint64_t hash, hexAttribute(cpu, "host_hash", 0));
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i] == hash) return static_cast<int>(i);
  }
  hosts_.push_back(hash);
  return static_cast<int>(hosts_.size()) - 1;
}

Status PciBuilder::addCpu(const XmlElement& cpu) {
  TRY(checkSize(cpu));
  ASSIGN(const int numa, intAttribute(cpu, "numaid", {}, kNaturalOrNone));
  ASSIGN(const CpuKind kind, cpuKindOf(cpu));
  const std::string* affinity = cpu.find("affinity");
  ASSIGN(const int system, systemOf(cpu));
  const int node = trees_.machine.addNode(system, static_cast<std::uint32_t>(numa),
                                          CpuFacts{kind, numa, affinity == nullptr ? "" : *affinity});
  const Place place{system, node, node, 0};
  for (const XmlElement& child : cpu.children) {
    if (child.name == "pci") TRY(addPci(child, place));
    if (child.name == "nic") {
      TRY(checkSize(child));
      const int nic = trees_.machine.addNode(system, virtualNics_++, NicFacts{});
      trees_.machine.connect(nic, node, LinkKind::Local, kLocalBandwidth);
      TRY(addNic(child, nic));
    }
  }
  return {};
}

Status PciBuilder::addPci(const XmlElement& pci, const Place& place) {
  TRY(checkSize(pci));
  if (place.depth >= kMaxPciDepth) {
    return fail(ncclInvalidUsage, "{}: it stands in {} others, more than any machine has", pci.where(), place.depth);
  }
  ASSIGN(const std::uint64_t busId, busIdAttribute(pci, "busid"));
  if (trees_.find(place.system, busId) >= 0) {
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
  return addPciNic(pci, busId, place);
}

Status PciBuilder::addPciNic(const XmlElement& pci, std::uint64_t busId, const Place& place) {
  ASSIGN(const float bandwidth, uplinkBandwidth(pci));
  const int node = trees_.machine.addNode(place.system, busId, NicFacts{});
  trees_.byBusId[{place.system, busId}] = node;
  trees_.machine.connect(node, place.parent, LinkKind::Pci, bandwidth);
  for (const XmlElement& child : pci.children) {
    if (child.name == "nic") TRY(addNic(child, node));
  }
  return {};
}

Status PciBuilder::addSwitch(const XmlElement& pci, std::uint64_t busId, const Place& place) {
  ASSIGN(const std::uint64_t deviceId, deviceIdOf(pci));
  ASSIGN(const float bandwidth, uplinkBandwidth(pci));
  Place below = place;
  ++below.depth;
  const bool underSwitch = trees_.machine.node(place.parent).kind() == NodeKind::Switch;
  if (!underSwitch || !isOneSwitch(trees_.machine.facts<SwitchFacts>(place.parent).deviceId, deviceId)) {
    below.parent = trees_.machine.addNode(place.system, busId, SwitchFacts{deviceId});
    trees_.machine.connect(below.parent, place.parent, LinkKind::Pci, bandwidth);
  }
  trees_.byBusId[{place.system, busId}] = below.parent;
  for (const XmlElement& child : pci.children) {
    if (child.name == "pci") TRY(addPci(child, below));
    if (child.name == "pcilink") trees_.pciLinks.push_back({&child, below.parent});
  }
  return {};
}

Status PciBuilder::addDevice(const XmlElement& pci, std::uint64_t busId, const Place& place) {
  std::vector<const XmlElement*> used;
  for (const XmlElement& child : pci.children) {
    if (child.name == "gpu" && child.find("rank") != nullptr) used.push_back(&child);
  }
  if (used.empty()) return {};
  ASSIGN(const DeviceFacts facts, deviceFactsOf(*used.front()));
  ASSIGN(const float bandwidth, uplinkBandwidth(pci));
  const int node = trees_.machine.addNode(place.system, busId, facts);
  trees_.byBusId[{place.system, busId}] = node;
  trees_.machine.connect(node, place.parent, LinkKind::Pci, bandwidth);
  for (std::size_t i = 0; i < used.size(); ++i) TRY(addGpu(*used[i], node, static_cast<int>(i)));
  trees_.devices.push_back({firstChild(pci, "gpu"), node, place.cpu});
  return {};
}

Status PciBuilder::addGpu(const XmlElement& gpu, int device, int index) {
  const Node& owner = trees_.machine.node(device);
  const auto& deviceFacts = std::get<DeviceFacts>(owner.facts);
  TRY(checkSize(gpu));
  ASSIGN(const GpuFacts facts, gpuFactsOf(gpu, device, deviceFacts));
  const std::uint64_t id = owner.id + (static_cast<std::uint64_t>(index) << 40);
  const float bandwidth = deviceFacts.partition >= 0 ? kPartitionBandwidth : kLocalBandwidth;
  const int node = trees_.machine.addNode(owner.system, id, facts);
  trees_.machine.connect(node, device, LinkKind::Local, bandwidth);
  return {};
}

Status PciBuilder::addNic(const XmlElement& nic, int node) {
  for (const XmlElement& net : nic.children) {
    if (net.name != "net" || net.find("dev") == nullptr) continue;
    ASSIGN(const int usable, intAttribute(net, "net", 1));
    if (usable != 0) TRY(addNet(net, node));
  }
  return {};
}

Status PciBuilder::addNet(const XmlElement& net, int nic) {
  const int system = trees_.machine.node(nic).system;
  TRY(checkSize(net));
  ASSIGN(NetFacts facts, netFactsOf(net, system));
  if (facts.dev < 0) return {};
  const auto id = static_cast<std::uint64_t>(facts.dev);
  const float bandwidth = facts.speed;
  const int node = trees_.machine.addNode(system, id, std::move(facts));
  trees_.machine.connect(node, nic, LinkKind::Net, bandwidth);
  return {};
}

Result<PciTrees> PciBuilder::build(const XmlElement& system) {
  for (const XmlElement& child : system.children) {
    if (child.name == "cpu") TRY(addCpu(child));
  }
  return std::move(trees_);
}

}  // namespace

int PciTrees::find(int system, std::uint64_t busId) const {
  const auto found = byBusId.find({system, busId});
  return found == byBusId.end() ? -1 : found->second;
}

Result<PciTrees> buildPciTrees(const XmlElement& system) {
  return PciBuilder().build(system);
}

}  // namespace tutti::topo
