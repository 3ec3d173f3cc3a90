// A machine as the search sees it: GPUs and NICs numbered densely, and for every way what it takes from which resource.
// Pure: a value computed from a machine and its ways.
#pragma once

#include <span>
#include <vector>

#include "topo/machine/machine.h"
#include "topo/machine/paths.h"
#include "topo/search/graph.h"
#include "topo/search/search.h"

namespace tutti::topo {

/// What one GB/s on a way takes from a resource: a direction of a link, or of a port that several NICs share.
struct ResourceUse {
  int resource = 0;
  float factor = 1;
};

/// A way: a path between two ends as the search uses it, with what it takes.
struct SearchWay {
  PathType type = PathType::Dis;
  int begin = 0;
  int end = 0;

  bool usable() const { return type < PathType::Net; }
};

/// Constant once built.
class SearchModel {
 public:
  SearchModel(const Machine& machine, const PathTable& paths, const SearchSettings& settings);

  int gpuCount() const { return static_cast<int>(gpus_.size()); }
  int netCount() const { return static_cast<int>(nets_.size()); }
  int gpuNode(int gpu) const { return gpus_[static_cast<std::size_t>(gpu)]; }
  int netNode(int net) const { return nets_[static_cast<std::size_t>(net)]; }
  bool interNode() const { return interNode_; }
  const Machine& machine() const { return machine_; }

  /// GB/s that each resource carries; resources are what ways use, nothing else.
  std::span<const float> capacities() const { return capacities_; }
  /// What NVLinks of the machine carry: each amount once, ascending.
  std::vector<float> nvLinkLevels() const;
  /// The same machine, but that no NVLink carries more than so many GB/s.
  SearchModel levelled(float most) const;
  /// The same machine, but that no way between a GPU and a NIC is of a longer type.
  SearchModel within(PathType farthest) const;
  /// Limits for within() that each leave more ways than the one before, the last all of them: near NICs, which read and
  /// write a GPU's memory themselves, those under the same CPU, those of other CPUs.
  std::vector<PathType> reaches() const;
  /// The link whose direction a resource is; -1: a port that NICs share.
  int linkOf(int resource) const { return links_[static_cast<std::size_t>(resource)]; }
  std::span<const ResourceUse> uses(const SearchWay& way) const {
    return std::span(uses_).subspan(static_cast<std::size_t>(way.begin), static_cast<std::size_t>(way.end - way.begin));
  }
  /// What all ways together use: a way's begin and end are places in this list.
  std::size_t useCount() const { return uses_.size(); }
  const SearchWay& hop(int from, int to) const { return ways_.hops[square(from, to)]; }
  const SearchWay& entry(int net, int gpu) const { return ways_.entries[netIndex(net, gpu)]; }
  const SearchWay& exit(int gpu, int net) const { return ways_.exits[netIndex(net, gpu)]; }

  /// To and from the NVSwitch; not usable without one.
  const SearchWay& toSwitch(int gpu) const { return ways_.toSwitch[static_cast<std::size_t>(gpu)]; }
  const SearchWay& fromSwitch(int gpu) const { return ways_.fromSwitch[static_cast<std::size_t>(gpu)]; }

  /// Whether a channel that stays on its rail may come in at one NIC and leave at the other.
  bool sameRail(int netA, int netB) const;
  /// Whether a channel may use both at all: NICs of different planes do not meet in the network.
  bool samePlane(int netA, int netB) const;
  /// The resource of a NIC's way in if its port is shared, the one after it being that of its way out; -1: not shared.
  int portOf(int net) const { return ports_[static_cast<std::size_t>(net)]; }
  /// The lowest compute capability x 10.
  int lowestSm() const;

 private:
  bool samePort(int netA, int netB) const;
  int resourceOf(int link);
  bool isNvLink(std::size_t resource) const;
  SearchWay wayOf(const PathTable& paths, int from, int to, int port);
  void addPorts();
  const NetFacts& netFacts(int net) const { return machine_.facts<NetFacts>(netNode(net)); }
  std::size_t square(int a, int b) const {
    return static_cast<std::size_t>(a) * gpus_.size() + static_cast<std::size_t>(b);
  }
  std::size_t netIndex(int net, int gpu) const { return square(net, gpu); }

  struct Ways {
    std::vector<SearchWay> hops;
    std::vector<SearchWay> entries;
    std::vector<SearchWay> exits;
    std::vector<SearchWay> toSwitch;
    std::vector<SearchWay> fromSwitch;
  };

  const Machine& machine_;
  bool interNode_;
  std::vector<int> gpus_;
  std::vector<int> nets_;
  std::vector<int> ports_;  ///< portOf()
  std::vector<float> capacities_;
  std::vector<int> links_;       ///< linkOf()
  std::vector<int> resourceOf_;  ///< of each link; -1: no way uses it
  std::vector<bool> isView_;     ///< of each link: isViewOfDevice()
  std::vector<ResourceUse> uses_;
  Ways ways_;
};

/// The link between a rank and a device that it has to itself: it never limits what the device's other links do not
/// limit first. Ranks that share a device meet there, so their links count.
bool isViewOfDevice(const Machine& machine, const Link& link);
/// Whether several ranks have this device, or partitions of it.
bool isShared(const Machine& machine, int device);

/// A channel in the model's numbers; netIn and netOut are -1 on one machine.
struct DenseChannel {
  std::vector<int> gpus;
  int netIn = -1;
  int netOut = -1;
};

/// Whether the traffic of a pattern enters half at the chain's first GPU, half at the second.
inline bool entersAtTwo(Pattern pattern) {
  return pattern == Pattern::BalancedTree || pattern == Pattern::SplitTree;
}

/// The ways of a channel: visit(way, share, inter), where `share` of bwInter (inter) or of bwIntra goes that way.
/// docs/topology.md, "Validator", has the table of the patterns.
template <typename Visit>
class WayVisitor {
 public:
  WayVisitor(const SearchModel& model, Pattern pattern, const DenseChannel& channel, Visit& visit)
      : model_(model), pattern_(pattern), channel_(channel), visit_(visit) {}

  void all() {
    if (pattern_ == Pattern::Nvls) {
      heads();
    } else if (pattern_ == Pattern::CollNetDirect) {
      direct();
    } else {
      chain();
    }
    if (channel_.netIn >= 0) net();
  }

 private:
  int count() const { return static_cast<int>(channel_.gpus.size()); }
  int at(int place) const { return channel_.gpus[static_cast<std::size_t>(place)]; }

  void chain() {
    for (int i = 0; i + 1 < count(); ++i) visit_(model_.hop(at(i), at(i + 1)), 1.0f, false);
    const bool closes = pattern_ == Pattern::Ring && channel_.netIn < 0 && count() > 1;
    if (closes) visit_(model_.hop(at(count() - 1), at(0)), 1.0f, false);
  }
  void heads() {
    for (int i = 0; i < count(); ++i) {
      visit_(model_.toSwitch(at(i)), i == 0 ? 2.0f : 1.0f, false);
      visit_(model_.fromSwitch(at(i)), i == 0 ? 2.0f : 1.0f, false);
    }
  }
  void direct() {
    const float share = 1.0f / static_cast<float>(count() - 1);
    for (int i = 1; i < count(); ++i) {
      visit_(model_.hop(at(0), at(i)), share, false);
      visit_(model_.hop(at(i), at(0)), share, false);
    }
  }
  void net() {
    if (pattern_ == Pattern::Ring) {
      visit_(model_.entry(channel_.netIn, at(0)), 1.0f, true);
      visit_(model_.exit(at(count() - 1), channel_.netOut), 1.0f, true);
      return;
    }
    const int ends = entersAtTwo(pattern_) && count() > 1 ? 2 : 1;
    for (int i = 0; i < ends; ++i) {
      visit_(model_.entry(channel_.netIn, at(i)), 1.0f / static_cast<float>(ends), true);
      visit_(model_.exit(at(i), channel_.netOut), 1.0f / static_cast<float>(ends), true);
    }
  }

  const SearchModel& model_;
  Pattern pattern_;
  const DenseChannel& channel_;
  Visit& visit_;
};

template <typename Visit>
void visitWays(const SearchModel& model, Pattern pattern, const DenseChannel& channel, Visit visit) {
  WayVisitor<Visit>(model, pattern, channel, visit).all();
}

}  // namespace tutti::topo
