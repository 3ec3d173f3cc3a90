#include "topo/search/model.h"

#include <algorithm>

namespace tutti::topo {

namespace {

void addUse(std::vector<ResourceUse>& uses, std::size_t begin, ResourceUse use) {
  for (std::size_t i = begin; i < uses.size(); ++i) {
    if (uses[i].resource == use.resource) {
      uses[i].factor += use.factor;
      return;
    }
  }
  uses.push_back(use);
}

}  // namespace

bool isShared(const Machine& machine, int device) {
  int ranks = 0;
  for (const int gpu : machine.nodes(NodeKind::Gpu)) ranks += machine.facts<GpuFacts>(gpu).device == device ? 1 : 0;
  return ranks > 1;
}

bool isViewOfDevice(const Machine& machine, const Link& link) {
  const NodeKind from = machine.node(link.from).kind();
  const NodeKind to = machine.node(link.to).kind();
  if (from == NodeKind::Gpu && to == NodeKind::Device) return !isShared(machine, link.to);
  return from == NodeKind::Device && to == NodeKind::Gpu && !isShared(machine, link.from);
}

SearchModel::SearchModel(const Machine& machine, const PathTable& paths, const SearchSettings& settings)
    : machine_(machine), interNode_(settings.interNode) {
  const auto gpus = machine.nodes(NodeKind::Gpu);
  gpus_.assign(gpus.begin(), gpus.end());
  if (interNode_) {
    const auto nets = machine.nodes(NodeKind::Net);
    nets_.assign(nets.begin(), nets.end());
  }
  resourceOf_.assign(static_cast<std::size_t>(machine.linkCount()), -1);
  for (int l = 0; l < machine.linkCount(); ++l) isView_.push_back(isViewOfDevice(machine, machine.link(l)));
  addPorts();
  const int n = gpuCount();
  ways_.hops.resize(static_cast<std::size_t>(n) * static_cast<std::size_t>(n));
  for (int a = 0; a < n; ++a) {
    for (int b = 0; b < n; ++b) {
      if (a != b) ways_.hops[square(a, b)] = wayOf(paths, gpuNode(a), gpuNode(b), -1);
    }
  }
  const auto switches = machine.nodes(NodeKind::NvSwitch);
  for (int gpu = 0; gpu < n; ++gpu) {
    ways_.toSwitch.push_back(switches.empty() ? SearchWay{} : wayOf(paths, gpuNode(gpu), switches[0], -1));
    ways_.fromSwitch.push_back(switches.empty() ? SearchWay{} : wayOf(paths, switches[0], gpuNode(gpu), -1));
  }
  for (int net = 0; net < netCount(); ++net) {
    const int port = ports_[static_cast<std::size_t>(net)];
    for (int gpu = 0; gpu < n; ++gpu) {
      ways_.entries.push_back(wayOf(paths, netNode(net), gpuNode(gpu), port));
      ways_.exits.push_back(wayOf(paths, gpuNode(gpu), netNode(net), port < 0 ? -1 : port + 1));
    }
  }
}

SearchWay SearchModel::wayOf(const PathTable& paths, int from, int to, int port) {
  const Path& path = paths.of(from, to);
  SearchWay way{.type = path.type, .begin = static_cast<int>(uses_.size()), .end = static_cast<int>(uses_.size())};
  if (!way.usable() || path.bandwidth <= 0) {
    way.type = PathType::Dis;
    return way;
  }
  const auto begin = static_cast<std::size_t>(way.begin);
  for (const LinkLoad& load : loadsOf(machine_, paths, from, to)) {
    if (!isView_[static_cast<std::size_t>(load.link)]) addUse(uses_, begin, {resourceOf(load.link), load.factor});
  }
  if (port >= 0) addUse(uses_, begin, {port, 1});
  way.end = static_cast<int>(uses_.size());
  return way;
}

int SearchModel::resourceOf(int link) {
  int& resource = resourceOf_[static_cast<std::size_t>(link)];
  if (resource >= 0) return resource;
  resource = static_cast<int>(capacities_.size());
  capacities_.push_back(machine_.link(link).bandwidth);
  links_.push_back(link);
  return resource;
}

bool SearchModel::isNvLink(std::size_t resource) const {
  return links_[resource] >= 0 && machine_.link(links_[resource]).kind == LinkKind::NvLink;
}

std::vector<float> SearchModel::nvLinkLevels() const {
  std::vector<float> levels;
  for (std::size_t r = 0; r < capacities_.size(); ++r) {
    if (isNvLink(r)) levels.push_back(capacities_[r]);
  }
  std::sort(levels.begin(), levels.end());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  return levels;
}

SearchModel SearchModel::levelled(float most) const {
  SearchModel model = *this;
  for (std::size_t r = 0; r < capacities_.size(); ++r) {
    if (isNvLink(r)) model.capacities_[r] = std::min(capacities_[r], most);
  }
  return model;
}

SearchModel SearchModel::within(PathType farthest) const {
  SearchModel model = *this;
  for (std::vector<SearchWay>* ways : {&model.ways_.entries, &model.ways_.exits}) {
    for (SearchWay& way : *ways) {
      if (way.type > farthest) way.type = PathType::Dis;
    }
  }
  return model;
}

std::vector<PathType> SearchModel::reaches() const {
  std::vector<PathType> limits;
  PathType before = PathType::Loc;
  for (const PathType limit : {PathType::Pxn, PathType::Phb, PathType::Sys}) {
    const auto isNew = [&](const SearchWay& way) { return way.usable() && way.type >= before && way.type <= limit; };
    const bool any = std::any_of(ways_.entries.begin(), ways_.entries.end(), isNew) ||
                     std::any_of(ways_.exits.begin(), ways_.exits.end(), isNew);
    if (any) limits.push_back(limit);
    before = static_cast<PathType>(static_cast<int>(limit) + 1);
  }
  if (limits.empty()) limits.push_back(PathType::Sys);
  return limits;
}

void SearchModel::addPorts() {
  ports_.assign(nets_.size(), -1);
  for (int a = 0; a < netCount(); ++a) {
    for (int b = 0; b < a; ++b) {
      if (!samePort(a, b)) continue;
      int& shared = ports_[static_cast<std::size_t>(b)];
      if (shared < 0) {
        shared = static_cast<int>(capacities_.size());
        capacities_.insert(capacities_.end(), 2, netFacts(b).speed);
        links_.insert(links_.end(), 2, -1);
      }
      for (std::size_t way = 0; way < 2; ++way) {
        float& capacity = capacities_[static_cast<std::size_t>(shared) + way];
        capacity = std::min(capacity, netFacts(a).speed);
      }
      ports_[static_cast<std::size_t>(a)] = shared;
      break;
    }
  }
}

bool SearchModel::samePort(int netA, int netB) const {
  if (machine_.node(netNode(netA)).system != machine_.node(netNode(netB)).system) return false;
  return netFacts(netA).guid == netFacts(netB).guid && netFacts(netA).port == netFacts(netB).port;
}

bool SearchModel::sameRail(int netA, int netB) const {
  if (netA == netB) return true;
  if (!samePlane(netA, netB)) return false;
  const int a = netFacts(netA).rail;
  const int b = netFacts(netB).rail;
  return a >= 0 && b >= 0 ? a == b : samePort(netA, netB);
}

bool SearchModel::samePlane(int netA, int netB) const {
  const int a = netFacts(netA).plane;
  const int b = netFacts(netB).plane;
  return a == b || a < 0 || b < 0;
}

int SearchModel::lowestSm() const {
  int lowest = gpus_.empty() ? 0 : machine_.facts<GpuFacts>(gpus_[0]).sm;
  for (int gpu : gpus_) lowest = std::min(lowest, machine_.facts<GpuFacts>(gpu).sm);
  return lowest;
}

}  // namespace tutti::topo
