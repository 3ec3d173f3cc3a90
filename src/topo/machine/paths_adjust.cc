#include "topo/machine/paths_adjust.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/log.h"
#include "topo/machine/path_settings.h"
#include "topo/xml/values.h"

namespace tutti::topo {

namespace {

constexpr int kIgnoreAndSkip = 2;  // NCCL_IGNORE_DISABLED_P2P

/// Applies what computePaths() promises, one step after the other.
class Adjuster {
 public:
  Adjuster(const Machine& machine, const PathSettings& settings, PathTable& paths)
      : machine_(machine), settings_(settings), paths_(paths), level_(p2pLevel(machine, settings)) {}

  Status adjust() {
    TRY(adjustGpus());
    markC2cNets();
    relayOverGpus();
    avoidWithoutGdr();
    return {};
  }

 private:
  struct Relay {
    int gpu = -1;
    Path toNet;  // from its device
  };

  std::span<const int> gpus() const { return machine_.nodes(NodeKind::Gpu); }
  std::span<const int> nets() const { return machine_.nodes(NodeKind::Net); }

  Status adjustGpus();
  const PeerRefusal* refusalOf(int from, int to) const;
  Result<bool> p2pAllowed(const Path& path) const;
  Status refuse(int from, int to, const PeerRefusal& refusal) const;
  bool netIsFaster(std::size_t a, std::size_t b, const Path& path) const;
  bool passesC2c(const Path& path) const;
  void markC2cNets();
  std::vector<int> netsInTurn(int gpu) const;
  Relay relayOf(int net) const;
  void relayOverGpus();
  void relay(int gpu, int net, const Relay& relay);
  void avoidWithoutGdr();

  const Machine& machine_;
  const PathSettings& settings_;
  PathTable& paths_;
  PathType level_;
  std::vector<float> netBandwidth_;         // of each GPU's best path to a NIC that is near
  std::map<int, std::vector<int>> inTurn_;  // netsInTurn() of each GPU
};

/// What NVML says against the path from one device to another; null: nothing.
const PeerRefusal* Adjuster::refusalOf(int from, int to) const {
  const Node& one = machine_.node(from);
  const Node& other = machine_.node(to);
  if (one.system != other.system) return nullptr;
  const auto& refused = settings_.p2p.refused;
  const auto found = std::find_if(refused.begin(), refused.end(), [&](const PeerRefusal& refusal) {
    return refusal.from == one.id && refusal.to == other.id;
  });
  return found == refused.end() ? nullptr : &*found;
}

/// Whether the path is short enough and NVML lets data go from GPU to GPU along it. Errors: as of computePaths().
Result<bool> Adjuster::p2pAllowed(const Path& path) const {
  if (path.type > level_) return false;
  if (settings_.p2p.refused.empty() || settings_.p2p.ignore == kIgnoreAndSkip) return true;
  int previous = -1;
  for (const int number : path.links) {
    const int node = machine_.link(number).to;
    if (machine_.node(node).kind() != NodeKind::Device) continue;
    const int from = std::exchange(previous, node);
    const PeerRefusal* refusal = from < 0 ? nullptr : refusalOf(from, node);
    if (refusal == nullptr) continue;
    if (path.type > PathType::Nvb || settings_.p2p.ignore != 0) return false;
    return refuse(from, node, *refusal);
  }
  return true;
}

Status Adjuster::refuse(int from, int to, const PeerRefusal& refusal) const {
  const std::string& host = settings_.p2p.host;
  return fail(ncclUnhandledCudaError,
              "NVML{} says that GPU {} ({}) cannot access GPU {} ({}) directly, {}, although NVLink joins them. The "
              "cause is probably a fault of the hardware or a driver setting; see `nvidia-smi topo -p2p rw`. "
              "NCCL_IGNORE_DISABLED_P2P=1 goes on without P2P between the two",
              host.empty() ? "" : fmt::format(" on host {}", host), machine_.facts<DeviceFacts>(from).dev,
              busIdText(refusal.from), machine_.facts<DeviceFacts>(to).dev, busIdText(refusal.to), refusal.reason);
}

bool Adjuster::netIsFaster(std::size_t a, std::size_t b, const Path& path) const {
  if (settings_.netDisableIntra) return false;
  return netBandwidth_[a] > path.bandwidth && netBandwidth_[b] > path.bandwidth;
}

/// Without P2P data go through the CPU near the destination; without that as well only the network is left.
Status Adjuster::adjustGpus() {
  std::vector<int> cpus;
  for (const int gpu : gpus()) {
    cpus.push_back(localCpu(machine_, paths_, gpu));
    netBandwidth_.push_back(0);
    for (const int net : nets()) {
      const Path& path = paths_.of(gpu, net);
      if (path.type <= PathType::Pxb) netBandwidth_.back() = std::max(netBandwidth_.back(), path.bandwidth);
    }
  }
  // Replacing GPU-to-GPU paths leaves those to and from CPUs, which replacements are made of, as they are.
  for (std::size_t a = 0; a < gpus().size(); ++a) {
    for (std::size_t b = 0; b < gpus().size(); ++b) {
      if (a == b) continue;
      Path& path = paths_.of(gpus()[a], gpus()[b]);
      ASSIGN(const bool p2p, p2pAllowed(path));
      if (!p2p && cpus[b] >= 0) path = joinPaths(paths_.of(gpus()[a], cpus[b]), paths_.of(cpus[b], gpus()[b]));
      const bool oneHost = machine_.node(gpus()[a]).system == machine_.node(gpus()[b]).system;
      const bool shm = oneHost && !settings_.shmDisabled;
      const bool linked = path.type < PathType::Net && (p2p || shm) && !netIsFaster(a, b, path);
      if (!linked) path = {PathType::Net, 0, {}};
    }
  }
  return {};
}

bool Adjuster::passesC2c(const Path& path) const {
  return std::any_of(path.links.begin(), path.links.end(),
                     [this](int number) { return machine_.link(number).kind == LinkKind::C2c; });
}

/// Where the best NICs of a GPU hang under the CPU that it reaches over C2C.
void Adjuster::markC2cNets() {
  for (const int gpu : gpus()) {
    const int cpu = localCpu(machine_, paths_, gpu);
    if (cpu < 0 || paths_.of(gpu, cpu).type != PathType::C2c) continue;
    for (const int net : localNets(machine_, paths_, gpu)) {
      Path& there = paths_.of(gpu, net);
      Path& back = paths_.of(net, gpu);
      if (there.type != PathType::Phb || back.type != PathType::Phb || !passesC2c(there) || !passesC2c(back)) continue;
      there.type = PathType::P2c;
      back.type = PathType::P2c;
    }
  }
}

/// The NICs of a GPU's channels, until they start again.
std::vector<int> Adjuster::netsInTurn(int gpu) const {
  std::vector<int> inTurn;
  for (int channel = 0; channel < static_cast<int>(nets().size()); ++channel) {
    const int net = netOfChannel(machine_, paths_, gpu, channel, settings_.netsPerGpu);
    if (net < 0 || (channel > 0 && net == inTurn.front())) break;
    inTurn.push_back(net);
  }
  return inTurn;
}

/// The GPU that others send through to a NIC: that which the NIC is for, where it is near enough.
Adjuster::Relay Adjuster::relayOf(int net) const {
  const std::vector<int> near = localGpus(machine_, paths_, net);
  int chosen = -1;
  std::size_t earliest = nets().size();
  for (const int gpu : near) {
    const std::vector<int>& inTurn = inTurn_.at(gpu);
    const auto channel = static_cast<std::size_t>(std::find(inTurn.begin(), inTurn.end(), net) - inTurn.begin());
    if (channel == inTurn.size() || channel >= earliest) continue;
    earliest = channel;
    chosen = gpu;
  }
  if (chosen < 0) return {};
  const PathType distance = paths_.of(chosen, net).type;
  const PathType limit = settings_.pxnOverC2c ? PathType::P2c : PathType::Pxb;
  if (distance > limit || !gdrUsable(machine_, paths_, settings_, {chosen, net, true, distance})) return {};
  return {chosen, paths_.of(machine_.facts<GpuFacts>(chosen).device, net)};
}

void Adjuster::relay(int gpu, int net, const Relay& relay) {
  if (gpu == relay.gpu || machine_.node(gpu).system != machine_.node(relay.gpu).system) return;
  if (paths_.of(gpu, relay.gpu).type > PathType::Nvl) return;
  Path& own = paths_.of(gpu, net);
  if (relay.toNet.bandwidth <= own.bandwidth && own.type <= PathType::Pxn) return;
  const Path& toRelay = paths_.of(gpu, machine_.facts<GpuFacts>(relay.gpu).device);
  own = joinPaths(toRelay, relay.toNet);
  own.type = PathType::Pxn;
}

void Adjuster::relayOverGpus() {
  if (settings_.pxnDisabled) return;
  // All relays first: they are chosen by paths without relays.
  for (const int gpu : gpus()) inTurn_.emplace(gpu, netsInTurn(gpu));
  std::vector<Relay> relays;
  for (const int net : nets()) relays.push_back(relayOf(net));
  for (const int gpu : gpus()) {
    for (std::size_t i = 0; i < relays.size(); ++i) {
      if (relays[i].gpu >= 0) relay(gpu, nets()[i], relays[i]);
    }
  }
}

void Adjuster::avoidWithoutGdr() {
  for (const int gpu : gpus()) {
    const int cpu = localCpu(machine_, paths_, gpu);
    if (cpu < 0) continue;
    for (const int net : nets()) {
      Path& there = paths_.of(gpu, net);
      Path& back = paths_.of(net, gpu);
      if (there.type >= PathType::Phb) continue;
      // A relay is near enough by choice.
      const PathType distance = there.type == PathType::Pxn ? PathType::Loc : there.type;
      if (gdrUsable(machine_, paths_, settings_, {gpu, net, false, distance})) continue;
      there = joinPaths(paths_.of(gpu, cpu), paths_.of(cpu, net));
      back = joinPaths(paths_.of(net, cpu), paths_.of(cpu, gpu));
    }
  }
}

}  // namespace

Path joinPaths(const Path& first, const Path& second) {
  if (first.type >= PathType::Net || second.type >= PathType::Net) return {};
  Path joined = first;
  const auto [shorter, longer] = std::minmax(first.type, second.type);
  joined.type = shorter == PathType::C2c && longer == PathType::Phb ? PathType::P2c : longer;
  joined.bandwidth = std::min(first.bandwidth, second.bandwidth);
  joined.links.insert(joined.links.end(), second.links.begin(), second.links.end());
  return joined;
}

int localCpu(const Machine& machine, const PathTable& paths, int gpu) {
  int best = -1;
  for (const int cpu : machine.nodes(NodeKind::Cpu)) {
    const Path& path = paths.of(gpu, cpu);
    if (path.type >= PathType::Net) continue;
    if (best < 0 || path.type < paths.of(gpu, best).type) best = cpu;
  }
  return best;
}

PathType p2pLevel(const Machine& machine, const PathSettings& settings) {
  if (settings.p2pDisabled) return PathType::Loc;
  if (settings.p2pLevel) return *settings.p2pLevel;
  const bool fewOnAmd = machine.cpuKind() == CpuKind::Amd && machine.nodes(NodeKind::Device).size() <= 2;
  return fewOnAmd ? PathType::Sys : PathType::Pxb;
}

PathType gdrLevel(const PathSettings& settings) {
  return settings.gdrLevel.value_or(settings.gdrOverC2c ? PathType::P2c : PathType::Pxb);
}

GdrVerdict judgeGdr(const Machine& machine, const PathTable& paths, const PathSettings& settings, const GdrPair& pair) {
  const auto& gpu = machine.facts<GpuFacts>(pair.gpu);
  if (!gpu.gdr) return GdrVerdict::GpuCannot;
  if (machine.facts<DeviceFacts>(gpu.device).partition >= 0) return GdrVerdict::Divided;
  if (!machine.facts<NetFacts>(pair.net).gdr) return GdrVerdict::NicCannot;
  if (pair.distance > gdrLevel(settings)) return GdrVerdict::TooFar;
  if (!pair.read || settings.gdrRead == 1) return GdrVerdict::Usable;
  if (settings.gdrRead == 0) return GdrVerdict::ReadOff;
  const auto gpus = machine.nodes(NodeKind::Gpu);
  if (gpu.sm >= 80 || gpus.size() == 1) return GdrVerdict::Usable;
  const bool joined = std::any_of(gpus.begin(), gpus.end(), [&](int other) {
    return other != pair.gpu && paths.of(pair.gpu, other).type == PathType::Nvl;
  });
  return joined ? GdrVerdict::Usable : GdrVerdict::ReadSlow;
}

std::string_view gdrVerdictText(GdrVerdict verdict) {
  switch (verdict) {
    case GdrVerdict::Usable:
      return "";
    case GdrVerdict::GpuCannot:
      return "the driver says that NICs do not reach this GPU's memory";
    case GdrVerdict::Divided:
      return "the GPU is a partition of one";
    case GdrVerdict::NicCannot:
      return "the NIC takes no GPU memory";
    case GdrVerdict::TooFar:
      return "farther apart than NCCL_NET_GDR_LEVEL allows";
    case GdrVerdict::ReadOff:
      return "NCCL_NET_GDR_READ=0";
    case GdrVerdict::ReadSlow:
      return "GPUs before compute capability 8 without NVLink send faster through host memory (NCCL_NET_GDR_READ=1 "
             "insists)";
  }
  return "";
}

bool gdrUsable(const Machine& machine, const PathTable& paths, const PathSettings& settings, const GdrPair& pair) {
  return judgeGdr(machine, paths, settings, pair) == GdrVerdict::Usable;
}

int relayOnWay(const Machine& machine, const PathTable& paths, int gpu, int net) {
  const Path& way = paths.of(gpu, net);
  if (way.type != PathType::Pxn) return -1;
  int device = -1;
  for (const int link : way.links) {
    const int node = machine.link(link).to;
    if (machine.node(node).kind() == NodeKind::Device) device = node;
  }
  // Of several ranks on that device all would choose the same.
  for (const int relay : machine.nodes(NodeKind::Gpu)) {
    if (device >= 0 && machine.facts<GpuFacts>(relay).device == device) return relay;
  }
  return -1;
}

Result<PathTable> computePaths(const Machine& machine, const PathSettings& settings) {
  PathTable paths = shortestPaths(machine, settings);
  TRY(Adjuster(machine, settings, paths).adjust());
  return paths;
}

}  // namespace tutti::topo
