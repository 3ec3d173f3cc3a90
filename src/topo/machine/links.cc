#include "topo/machine/links.h"

#include <map>
#include <string>
#include <vector>

#include "base/log.h"
#include "topo/machine/build.h"
#include "topo/machine/elements.h"
#include "topo/machine/speeds.h"
#include "topo/xml/scan.h"
#include "topo/xml/values.h"

namespace tutti::topo {

namespace {

int nvSwitch(Machine& machine) {
  const auto known = machine.nodes(NodeKind::NvSwitch);
  return known.empty() ? machine.addNode(0, 0, NvSwitchFacts{}) : known.front();
}

Status addNvLink(PciTrees& trees, const XmlElement& nvlink, const PciTrees::Device& device) {
  ASSIGN(const std::uint64_t target, busIdAttribute(nvlink, "target"));
  ASSIGN(const int count, intAttribute(nvlink, "count", {}, {.least = 0, .most = 1024}));
  const float bandwidth = static_cast<float>(count) * nvlinkBandwidth(trees.machine.facts<DeviceFacts>(device.node).sm);
  if (count == 0) return {};
  const int other = trees.find(trees.machine.node(device.node).system, target);
  const bool known = other >= 0 && trees.machine.node(other).kind() == NodeKind::Device;
  const std::string* text = nvlink.find("tclass");
  const PciClass kind = text != nullptr ? pciClassOf(*text) : known ? PciClass::Gpu : PciClass::NvSwitch;
  if (kind == PciClass::CpuBridge) {
    trees.machine.connect(device.node, device.cpu, LinkKind::NvLink, bandwidth);
    return {};
  }
  if (kind != PciClass::Gpu) {
    trees.machine.connect(device.node, nvSwitch(trees.machine), LinkKind::NvLink, bandwidth);
    return {};
  }
  // A GPU that is not used, or (some machines say so) itself: nothing to travel to.
  if (known && other != device.node) trees.machine.connect(device.node, other, LinkKind::NvLink, bandwidth, true);
  return {};
}

Status addNvLinks(PciTrees& trees, const PciTrees::Device& device) {
  for (const XmlElement& child : device.gpu->children) {
    if (child.name == "nvlink") TRY(addNvLink(trees, child, device));
  }
  return {};
}

Status addC2c(PciTrees& trees, const PciTrees::Device& device) {
  for (const XmlElement& child : device.gpu->children) {
    if (child.name != "c2c") continue;
    ASSIGN(const int megabytes, intAttribute(child, "bw", {}, kNatural));
    ASSIGN(const int count, intAttribute(child, "count", {}, {.least = 0, .most = 1024}));
    const float bandwidth = static_cast<float>(megabytes) * static_cast<float>(count) / 1000.0F;
    if (bandwidth > 0) trees.machine.connect(device.node, device.cpu, LinkKind::C2c, bandwidth);
  }
  return {};
}

Status addPciLinks(PciTrees& trees) {
  for (const auto& [element, from] : trees.pciLinks) {
    ASSIGN(const std::uint64_t target, busIdAttribute(*element, "target"));
    const int to = trees.find(trees.machine.node(from).system, target);
    if (to < 0 || to == from || trees.machine.node(to).kind() != NodeKind::Switch) continue;
    if (trees.machine.findLink(from, to, LinkKind::Local) >= 0) continue;
    trees.machine.connect(from, to, LinkKind::Local, kLocalBandwidth, true);
  }
  return {};
}

Status connectCpus(Machine& machine, const XmlElement& system) {
  const std::vector<int> cpus(machine.nodes(NodeKind::Cpu).begin(), machine.nodes(NodeKind::Cpu).end());
  std::map<int, int> ofHost;
  for (const int cpu : cpus) {
    if (++ofHost[machine.node(cpu).system] <= kMaxCpusOfHost) continue;
    return fail(ncclInvalidUsage, "{}: a host has more than {} CPUs", system.where(), kMaxCpusOfHost);
  }
  const float bandwidth = cpuBandwidth(machine.cpuKind());
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    for (std::size_t j = i + 1; j < cpus.size(); ++j) {
      if (machine.node(cpus[i]).system != machine.node(cpus[j]).system) continue;
      machine.connect(cpus[i], cpus[j], LinkKind::Sys, bandwidth);
    }
  }
  return {};
}

}  // namespace

Status joinNodes(PciTrees& trees, const XmlElement& system) {
  for (const auto& device : trees.devices) TRY(addNvLinks(trees, device));
  for (const auto& device : trees.devices) TRY(addC2c(trees, device));
  TRY(addPciLinks(trees));
  return connectCpus(trees.machine, system);
}

}  // namespace tutti::topo
