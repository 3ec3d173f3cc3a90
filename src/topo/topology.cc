#include "topo/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/log.h"
#include "topo/fuse.h"
#include "topo/machine_build.h"
#include "topo/xml_values.h"

namespace tutti {

namespace {

/// Calls `use` with every <gpu> below `element` that has a meaning, in the file's order.
template <typename Use>
void forGpus(XmlElement& element, Use use) {
  for (XmlElement& child : element.children) {
    if (child.name == "pci") forGpus(child, use);
    if (child.name == "gpu" && element.name == "pci") use(child);
  }
}

/// The same with the GPUs of all CPUs of a <system>.
template <typename Use>
void forSystemGpus(XmlElement& system, Use use) {
  for (XmlElement& cpu : system.children) {
    if (cpu.name == "cpu") forGpus(cpu, use);
  }
}

void eraseAttribute(XmlElement& element, std::string_view name) {
  std::erase_if(element.attributes, [name](const auto& attribute) { return attribute.first == name; });
}

bool isUsedGpu(const XmlElement& element) {
  return element.name == "gpu" && element.find("rank") != nullptr;
}

/// Leaves PCI, NIC and CPU elements out that lead to no used GPU and no network; false: `element` itself does not.
bool trim(XmlElement& element) {
  if (element.name == "net") return element.find("dev") != nullptr;
  if (element.name == "pcilink") return true;
  // All <gpu> of a device stay if one is used: the first one has the links.
  const bool deviceUsed = std::any_of(element.children.begin(), element.children.end(), isUsedGpu);
  std::erase_if(element.children, [&](XmlElement& child) { return child.name == "gpu" ? !deviceUsed : !trim(child); });
  return std::any_of(element.children.begin(), element.children.end(),
                     [](const XmlElement& child) { return child.name != "pcilink"; });
}

void markCollective(XmlElement& element) {
  if (element.name == "net") element.set("coll", "1");
  for (XmlElement& child : element.children) markCollective(child);
}

/// Gives ranks to the GPUs that `wanted` names, in its order; the k-th time a number is named it means the k-th GPU
/// element of that number. All others lose theirs.
Status giveRanks(XmlElement& system, const std::vector<int>& wanted) {
  int next = 0;
  std::vector<std::pair<int, XmlElement*>> gpus;
  Status status;
  forSystemGpus(system, [&](XmlElement& gpu) {
    eraseAttribute(gpu, "rank");
    const Result<int> dev = intAttribute(gpu, "dev");
    if (!dev.ok()) status = dev.status();
    if (dev.ok()) gpus.emplace_back(dev.value(), &gpu);
  });
  TRY(status);
  if (gpus.empty()) return fail(ncclInvalidUsage, "{}: there is no <gpu> below <cpu> and <pci>", system.where());
  if (wanted.empty()) {
    for (auto& [dev, gpu] : gpus) gpu->set("rank", std::to_string(next++));
    return {};
  }
  for (const int dev : wanted) {
    bool found = false;
    for (auto& [number, gpu] : gpus) {
      if (number != dev || gpu->find("rank") != nullptr) continue;
      gpu->set("rank", std::to_string(next++));
      found = true;
      break;
    }
    if (found) continue;
    std::string known;
    for (const auto& [number, gpu] : gpus) known += fmt::format("{}{}", known.empty() ? "" : ", ", number);
    return fail(ncclInvalidArgument, "{}: GPU {} is asked for, but there are only {}", system.where(), dev, known);
  }
  return {};
}

/// The elements of what is used, with ranks.
Result<XmlElement> select(const XmlElement& xml, const TopologyUse& use) {
  XmlElement used = xml;
  TRY(giveRanks(used, use.gpus));
  if (use.collNet) markCollective(used);
  trim(used);
  return use.hosts > 1 ? copyHosts(used, use.hosts) : used;
}

}  // namespace

Result<Topology> buildTopology(const XmlElement& xml, const TopologyUse& use, PathSettings settings) {
  ASSIGN(const XmlElement used, select(xml, use));
  Topology topology;
  ASSIGN(topology.machine, buildMachine(used));
  ASSIGN(topology.paths, computePaths(topology.machine, settings));
  topology.interNode = use.interNode;
  topology.groupOf.assign(topology.machine.nodes(NodeKind::Gpu).size(), 0);
  return topology;
}

}  // namespace tutti
