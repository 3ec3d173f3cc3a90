#include "topo/machine/paths.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "topo/machine/path_settings.h"
#include "topo/machine/speeds.h"

namespace tutti::topo {

namespace {

PathType typeOf(const Machine& machine, const Link& link) {
  switch (link.kind) {
    case LinkKind::Local:
    case LinkKind::Net:
      return PathType::Loc;
    case LinkKind::NvLink:
      return PathType::Nvl;
    case LinkKind::C2c:
      return PathType::C2c;
    case LinkKind::Sys:
      return PathType::Sys;
    case LinkKind::Pci:
      break;
  }
  const NodeKind from = machine.node(link.from).kind();
  const NodeKind to = machine.node(link.to).kind();
  if (from == NodeKind::Cpu || to == NodeKind::Cpu) return PathType::Phb;
  return from == NodeKind::Switch && to == NodeKind::Switch ? PathType::Pxb : PathType::Pix;
}

/// A machine's links as the search for paths needs them.
struct Roads {
  const Machine& machine;
  std::vector<PathType> types;    // of each link
  std::vector<PathType> levels;   // those that occur, ascending
  std::vector<float> bandwidths;  // those that occur, descending

  explicit Roads(const Machine& m) : machine(m) {
    for (int i = 0; i < m.linkCount(); ++i) {
      types.push_back(typeOf(m, m.link(i)));
      bandwidths.push_back(m.link(i).bandwidth);
    }
    levels = types;
    std::sort(levels.begin(), levels.end());
    levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
    std::sort(bandwidths.begin(), bandwidths.end(), std::greater<>());
    bandwidths.erase(std::unique(bandwidths.begin(), bandwidths.end()), bandwidths.end());
  }
};

/// The best paths from one node at a time. Type and bandwidth are both the worst of the links, so a best path need not
/// consist of best paths: for each type limit, ascending, and each bandwidth, descending, a breadth-first search over
/// the links that are good enough finds what it is the first to reach, over the fewest hops.
class WayFinder {
 public:
  WayFinder(const Roads& roads, bool overGpus)
      : roads_(roads),
        machine_(roads.machine),
        overGpus_(overGpus),
        done_(static_cast<std::size_t>(machine_.nodeCount())),
        via_(done_.size()),
        seen_(done_.size()) {}

  void findFrom(int source, PathTable& paths);

 private:
  void findOverGpus(PathTable& paths);
  void findWithin(PathType limit, PathTable& paths);
  int reach(PathType limit, float bandwidth);
  bool mayLeave(int node, const Link& link) const;
  void record(int node, PathType type, float bandwidth, PathTable& paths);
  void recordOverGpu(int first, int second, PathTable& paths);

  const Roads& roads_;
  const Machine& machine_;
  bool overGpus_;
  int source_ = -1;
  int device_ = -1;  // the source's, -1: it is no GPU
  std::vector<bool> done_;
  std::vector<int> via_;  // the link over which the last search came to a node
  std::vector<int> seen_;
  std::vector<int> queue_;
  int round_ = 0;
};

/// Nothing passes through GPUs, ranks and network ports.
bool WayFinder::mayLeave(int node, const Link& link) const {
  if (node == source_ || node == device_) return true;
  switch (machine_.node(node).kind()) {
    case NodeKind::Cpu:
    case NodeKind::Switch:
    case NodeKind::NvSwitch:
    case NodeKind::Nic:
      return true;
    case NodeKind::Device:
      return machine_.node(link.to).kind() == NodeKind::Gpu;
    case NodeKind::Gpu:
    case NodeKind::Net:
      return false;
  }
  return false;
}

/// Searches the links of at most this type and at least this bandwidth; returns how many nodes it reaches that are not
/// done.
int WayFinder::reach(PathType limit, float bandwidth) {
  ++round_;
  int fresh = 0;
  queue_.assign(1, source_);
  seen_[static_cast<std::size_t>(source_)] = round_;
  for (std::size_t head = 0; head < queue_.size(); ++head) {
    const int node = queue_[head];
    for (const int number : machine_.node(node).links) {
      const Link& link = machine_.link(number);
      const auto to = static_cast<std::size_t>(link.to);
      if (seen_[to] == round_ || link.bandwidth < bandwidth || roads_.types[static_cast<std::size_t>(number)] > limit ||
          !mayLeave(node, link)) {
        continue;
      }
      seen_[to] = round_;
      via_[to] = number;
      fresh += done_[to] ? 0 : 1;
      queue_.push_back(link.to);
    }
  }
  return fresh;
}

void WayFinder::record(int node, PathType type, float bandwidth, PathTable& paths) {
  done_[static_cast<std::size_t>(node)] = true;
  Path& path = paths.of(source_, node);
  path.type = type;
  path.bandwidth = bandwidth;
  for (int at = node; at != source_; at = machine_.link(path.links.back()).from) {
    path.links.push_back(via_[static_cast<std::size_t>(at)]);
  }
  std::reverse(path.links.begin(), path.links.end());
}

void WayFinder::findWithin(PathType limit, PathTable& paths) {
  int left = reach(limit, 0);
  for (const float bandwidth : roads_.bandwidths) {
    if (left == 0) return;
    if (reach(limit, bandwidth) == 0) continue;
    for (const int node : queue_) {
      if (done_[static_cast<std::size_t>(node)]) continue;
      record(node, limit, bandwidth, paths);
      --left;
    }
  }
}

void WayFinder::recordOverGpu(int first, int second, PathTable& paths) {
  const float bandwidth = std::min(machine_.link(first).bandwidth, machine_.link(second).bandwidth);
  const int target = machine_.link(second).to;
  via_[static_cast<std::size_t>(target)] = second;
  via_[static_cast<std::size_t>(machine_.link(first).to)] = first;
  record(target, PathType::Nvb, bandwidth, paths);
  for (const int number : machine_.node(target).links) {
    const Link& link = machine_.link(number);
    if (machine_.node(link.to).kind() != NodeKind::Gpu || done_[static_cast<std::size_t>(link.to)]) continue;
    via_[static_cast<std::size_t>(link.to)] = number;
    record(link.to, PathType::Nvb, std::min(bandwidth, link.bandwidth), paths);
  }
}

/// NVLink to another GPU and on to a third one, where there is nothing better.
void WayFinder::findOverGpus(PathTable& paths) {
  if (device_ < 0) return;
  struct Way {
    int first;
    int second;
    float bandwidth;
  };
  std::vector<Way> best;
  const auto linksToDevices = [this](int device, auto use) {
    for (const int number : machine_.node(device).links) {
      const Link& link = machine_.link(number);
      if (link.kind == LinkKind::NvLink && machine_.node(link.to).kind() == NodeKind::Device) use(number, link);
    }
  };
  linksToDevices(device_, [&](int first, const Link& toMiddle) {
    linksToDevices(toMiddle.to, [&](int second, const Link& toTarget) {
      if (done_[static_cast<std::size_t>(toTarget.to)]) return;
      const float bandwidth = std::min(toMiddle.bandwidth, toTarget.bandwidth);
      for (Way& way : best) {
        if (machine_.link(way.second).to != toTarget.to) continue;
        if (bandwidth > way.bandwidth) way = {first, second, bandwidth};
        return;
      }
      best.push_back({first, second, bandwidth});
    });
  });
  // The link from the source to its device is still noted from the search before.
  for (const Way& way : best) recordOverGpu(way.first, way.second, paths);
}

void WayFinder::findFrom(int source, PathTable& paths) {
  source_ = source;
  device_ = -1;
  if (machine_.node(source).kind() == NodeKind::Device) device_ = source;
  if (machine_.node(source).kind() == NodeKind::Gpu) device_ = machine_.facts<GpuFacts>(source).device;
  std::fill(done_.begin(), done_.end(), false);
  done_[static_cast<std::size_t>(source)] = true;
  paths.of(source, source) = {PathType::Loc, kLocalBandwidth, {}};
  bool gpusTried = !overGpus_;
  for (const PathType level : roads_.levels) {
    if (!gpusTried && level > PathType::Nvl) {
      gpusTried = true;
      findOverGpus(paths);
    }
    findWithin(level, paths);
  }
  if (!gpusTried) findOverGpus(paths);
}

bool isGpu(const Machine& machine, int node) {
  const NodeKind kind = machine.node(node).kind();
  return kind == NodeKind::Gpu || kind == NodeKind::Device;
}

bool isIntel(CpuKind kind) {
  return kind == CpuKind::IntelBroadwell || kind == CpuKind::IntelSkylake || kind == CpuKind::IntelSapphireRapids ||
         kind == CpuKind::IntelEmeraldRapids;
}

/// What a flow that takes this link costs in the other direction.
float reverseFactor(const Machine& machine, const Link& link, bool fromGpu) {
  const NodeKind to = machine.node(link.to).kind();
  if (to == NodeKind::Device && !fromGpu && machine.facts<DeviceFacts>(link.to).sm < 80) return 0.125F;
  const bool intoPower = to == NodeKind::Cpu && link.kind == LinkKind::NvLink && machine.cpuKind() == CpuKind::Power;
  return intoPower ? 1.0F : 0.0F;
}

/// Those of `candidates` that `pathTo` is best to: most bandwidth, then lowest type.
template <typename PathTo>
std::vector<int> nearest(std::span<const int> candidates, PathTo pathTo) {
  std::vector<int> best;
  PathType type = PathType::Dis;
  float bandwidth = 0;
  for (const int node : candidates) {
    const Path& path = pathTo(node);
    if (path.type >= PathType::Net) continue;
    if (path.bandwidth > bandwidth || (path.bandwidth == bandwidth && path.type < type)) {
      best.clear();
      bandwidth = path.bandwidth;
      type = path.type;
    }
    if (path.bandwidth == bandwidth && path.type == type) best.push_back(node);
  }
  return best;
}

/// The bits of `value` back to front; `count` is a power of two.
unsigned reversedBits(unsigned value, unsigned count) {
  unsigned reversed = 0;
  for (unsigned bit = 1; bit < count; bit <<= 1) reversed = reversed << 1 | ((value & bit) != 0 ? 1U : 0U);
  return reversed;
}

/// What a GPU can put out: over all its NVLinks, or over PCI.
float outputOf(const Machine& machine, int gpu) {
  float nvlink = 0;
  float pci = 0;
  for (const int number : machine.node(machine.facts<GpuFacts>(gpu).device).links) {
    const Link& link = machine.link(number);
    if (link.kind == LinkKind::NvLink) nvlink += link.bandwidth;
    if (link.kind == LinkKind::Pci) pci = std::max(pci, link.bandwidth);
  }
  return std::max(nvlink, pci);
}

}  // namespace

PathTable shortestPaths(const Machine& machine, const PathSettings& settings) {
  PathTable paths(machine.nodeCount());
  const Roads roads(machine);
  WayFinder finder(roads, !settings.nvbDisabled);
  for (int node = 0; node < machine.nodeCount(); ++node) finder.findFrom(node, paths);
  return paths;
}

std::vector<LinkLoad> loadsOf(const Machine& machine, const PathTable& paths, int from, int to) {
  const Path& path = paths.of(from, to);
  const bool fromGpu = isGpu(machine, from);
  const float pciFactor = fromGpu && path.type == PathType::Phb && isIntel(machine.cpuKind()) ? 1.2F : 1.0F;
  std::vector<LinkLoad> loads;
  loads.reserve(path.links.size() + 1);
  for (const int number : path.links) {
    const Link& link = machine.link(number);
    loads.push_back({number, link.kind == LinkKind::Pci ? pciFactor : 1.0F});
    const float back = reverseFactor(machine, link, fromGpu);
    if (back > 0 && link.reverse >= 0) loads.push_back({link.reverse, back});
  }
  return loads;
}

std::vector<int> localNets(const Machine& machine, const PathTable& paths, int gpu) {
  return nearest(machine.nodes(NodeKind::Net), [&](int net) -> const Path& { return paths.of(gpu, net); });
}

std::vector<int> localGpus(const Machine& machine, const PathTable& paths, int net) {
  return nearest(machine.nodes(NodeKind::Gpu), [&](int gpu) -> const Path& { return paths.of(net, gpu); });
}

int netOfChannel(const Machine& machine, const PathTable& paths, int gpu, int channel, int netsPerGpu) {
  const std::vector<int> nets = localNets(machine, paths, gpu);
  if (nets.empty()) return -1;
  const auto count = static_cast<unsigned>(nets.size());
  const auto gpus = static_cast<unsigned>(localGpus(machine, paths, nets.front()).size());
  unsigned place = static_cast<unsigned>(machine.facts<GpuFacts>(gpu).dev) % std::max(gpus, 1U);
  if (std::has_single_bit(count)) place = reversedBits(place % count, count);
  unsigned turns = gpus == 0 ? count : (count + gpus - 1) / gpus;
  if (netsPerGpu > 0) turns = std::min(static_cast<unsigned>(netsPerGpu), count);
  return nets[(place + static_cast<unsigned>(channel) % turns) % count];
}

MachineBandwidth machineBandwidth(const Machine& machine, const PathTable& paths, bool interNode) {
  const auto gpus = machine.nodes(NodeKind::Gpu);
  if (gpus.size() == 1 && !interNode) return {kLocalBandwidth, kLocalBandwidth};
  MachineBandwidth result;
  for (const int gpu : gpus) {
    for (const int other : machine.nodes(interNode ? NodeKind::Net : NodeKind::Gpu)) {
      if (other != gpu) result.best = std::max(result.best, paths.of(gpu, other).bandwidth);
    }
    result.total = std::max(result.total, outputOf(machine, gpu));
  }
  return result;
}

}  // namespace tutti::topo
