#include "topo/search/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/log.h"
#include "topo/machine/build.h"
#include "topo/xml/fuse.h"
#include "topo/xml/values.h"

namespace tutti::topo {

namespace {

/// Calls `use` with every <gpu> below `element` that has a meaning, in the file's order.
template <typename Element, typename Use>
void forGpus(Element& element, Use use) {
  for (auto& child : element.children) {
    if (child.name == "pci") forGpus(child, use);
    if (child.name == "gpu" && element.name == "pci") use(child);
  }
}

/// The same with the GPUs of all CPUs of a <system>.
template <typename Element, typename Use>
void forSystemGpus(Element& system, Use use) {
  for (auto& cpu : system.children) {
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

/// Gives GPUs the place that their rank has in `carried`. All others lose theirs, also those that have a rank again.
Status keepRanks(XmlElement& system, const std::vector<int>& carried) {
  std::map<int, int> places;
  for (std::size_t i = 0; i < carried.size(); ++i) places.try_emplace(carried[i], static_cast<int>(i));
  Status status;
  forSystemGpus(system, [&](XmlElement& gpu) {
    const Result<int> rank = intAttribute(gpu, "rank", -1);
    if (!rank.ok()) status = rank.status();
    eraseAttribute(gpu, "rank");
    const auto place = rank.ok() ? places.find(rank.value()) : places.end();
    if (place == places.end()) return;
    gpu.set("rank", std::to_string(place->second));
    places.erase(place);
  });
  TRY(status);
  if (places.empty()) return {};
  return fail(ncclInvalidArgument, "{}: there is no <gpu> of rank {}", system.where(), places.begin()->first);
}

/// Without hosts that have no used GPU.
void dropIdleHosts(XmlElement& system) {
  // One that is no number is complained about where the machine is built.
  const auto hostOf = [](const XmlElement& cpu) {
    const Result<std::uint64_t> hash = hexAttribute(cpu, "host_hash", 0);
    return hash.ok() ? hash.value() : 0;
  };
  std::set<std::uint64_t> busy;
  for (XmlElement& cpu : system.children) {
    forGpus(cpu, [&](const XmlElement& gpu) {
      if (isUsedGpu(gpu)) busy.insert(hostOf(cpu));
    });
  }
  std::erase_if(system.children, [&](const XmlElement& cpu) { return !busy.contains(hostOf(cpu)); });
}

/// The elements of what is used, with ranks.
Result<XmlElement> select(const XmlElement& xml, const TopologyUse& use) {
  if (use.hosts < 1 || use.hosts > kMaxNodes) {
    return fail(ncclInvalidArgument, "{} copies of a machine are asked for; 1 to {} can be joined", use.hosts,
                kMaxNodes);
  }
  XmlElement used = xml;
  TRY(use.ranks.empty() ? giveRanks(used, use.gpus) : keepRanks(used, use.ranks));
  if (use.collNet) markCollective(used);
  trim(used);
  dropIdleHosts(used);
  return use.hosts > 1 ? copyHosts(used, use.hosts) : Result<XmlElement>(std::move(used));
}

/// `system` without the GPUs of other ranks.
XmlElement withRanks(XmlElement system, const std::vector<int>& ranks) {
  forSystemGpus(system, [&](XmlElement& gpu) {
    const Result<int> rank = intAttribute(gpu, "rank", -1);
    if (!rank.ok() || !std::binary_search(ranks.begin(), ranks.end(), rank.value())) eraseAttribute(gpu, "rank");
  });
  trim(system);
  dropIdleHosts(system);
  return system;
}

/// Ranks that reach each other without the network, each group ascending, groups in the order of their lowest rank.
std::vector<std::vector<int>> groupsOf(const Machine& machine, const PathTable& paths) {
  std::vector<int> left(machine.nodes(NodeKind::Gpu).begin(), machine.nodes(NodeKind::Gpu).end());
  const auto rankOf = [&](int gpu) { return machine.facts<GpuFacts>(gpu).rank; };
  std::sort(left.begin(), left.end(), [&](int a, int b) { return rankOf(a) < rankOf(b); });
  std::vector<std::vector<int>> groups;
  while (!left.empty()) {
    std::vector<int> group{left.front()};
    left.erase(left.begin());
    for (std::size_t i = 0; i < group.size(); ++i) {
      const auto near = [&](int gpu) {
        return paths.of(group[i], gpu).type < PathType::Net || paths.of(gpu, group[i]).type < PathType::Net;
      };
      const auto far = std::stable_partition(left.begin(), left.end(), [&](int gpu) { return !near(gpu); });
      group.insert(group.end(), far, left.end());
      left.erase(far, left.end());
    }
    std::transform(group.begin(), group.end(), group.begin(), rankOf);
    std::sort(group.begin(), group.end());
    groups.push_back(std::move(group));
  }
  return groups;
}

/// Every GPU with a rank is in the machine? One below the function of a NIC or of another GPU is not.
Status checkGpus(const XmlElement& system, const Machine& machine) {
  std::size_t used = 0;
  forSystemGpus(system, [&](const XmlElement& gpu) { used += isUsedGpu(gpu) ? 1 : 0; });
  const std::size_t built = machine.nodes(NodeKind::Gpu).size();
  if (built == used) return {};
  return fail(ncclInvalidUsage, "{}: {} of {} GPUs in use stand below a <pci> that is a NIC or another GPU",
              system.where(), used - built, used);
}

/// Builds the machines of groups of ranks, until none of them falls into groups.
class Splitter {
 public:
  Splitter(const TopologyUse& use, const PathSettings& settings) : use_(use), settings_(settings) {}

  /// Settles the ranks of `system`; `groups` gets the groups they form in the end.
  Status settle(const XmlElement& system, Topology& result, std::vector<std::vector<int>>& groups) {
    ASSIGN(Machine machine, buildMachine(system));
    TRY(checkGpus(system, machine));
    ASSIGN(PathTable paths, computePaths(machine, settings_));
    std::vector<std::vector<int>> parts = groupsOf(machine, paths);
    if (parts.size() > 1) {
      for (const std::vector<int>& part : parts) TRY(settle(withRanks(system, part), result, groups));
      return {};
    }
    if (std::binary_search(parts.front().begin(), parts.front().end(), use_.rank)) {
      result.machine = std::move(machine);
      result.paths = std::move(paths);
    }
    groups.push_back(std::move(parts.front()));
    return {};
  }

 private:
  const TopologyUse& use_;
  const PathSettings& settings_;
};

}  // namespace

Result<Topology> buildTopology(const XmlElement& xml, const TopologyUse& use, const PathSettings& settings) {
  ASSIGN(const XmlElement used, select(xml, use));
  Topology topology;
  std::vector<std::vector<int>> groups;
  TRY(Splitter(use, settings).settle(used, topology, groups));
  std::sort(groups.begin(), groups.end());
  topology.interNode = use.interNode || groups.size() > 1;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (const int rank : groups[group]) {
      topology.groupOf.resize(std::max(topology.groupOf.size(), static_cast<std::size_t>(rank) + 1));
      topology.groupOf[static_cast<std::size_t>(rank)] = static_cast<int>(group);
    }
  }
  if (use.rank < 0 || static_cast<std::size_t>(use.rank) >= topology.groupOf.size()) {
    return fail(ncclInvalidArgument, "Rank {} is asked for, but only {} GPUs of the topology are used", use.rank,
                topology.groupOf.size());
  }
  topology.group = topology.groupOf[static_cast<std::size_t>(use.rank)];
  return topology;
}

}  // namespace tutti::topo
