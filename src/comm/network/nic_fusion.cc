#include "comm/network/nic_fusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "topo/detect/detect.h"

namespace tutti::comm {

namespace {

using Way = std::vector<const topo::XmlElement*>;  ///< from the root to a <net>

/// Whether there is a <net> of that name; `way` leads to it.
bool findNet(const topo::XmlElement& element, const std::string& name, Way& way) {
  way.push_back(&element);
  if (element.name == "net") {
    const std::string* found = element.find("name");
    if (found != nullptr && *found == name) return true;
  }
  for (const topo::XmlElement& child : element.children) {
    if (findNet(child, name, way)) return true;
  }
  way.pop_back();
  return false;
}

/// PCI elements of a way below its element number `from`.
std::ptrdiff_t pciBelow(const Way& way, std::size_t from) {
  return std::count_if(way.begin() + static_cast<std::ptrdiff_t>(from), way.end(),
                       [](const topo::XmlElement* element) { return element->name == "pci"; });
}

NicDistance distanceInMachine(const topo::XmlElement& machine, const std::string& a, const std::string& b) {
  Way toA;
  Way toB;
  if (!findNet(machine, a, toA) || !findNet(machine, b, toB)) return NicDistance::Apart;
  std::size_t common = 0;
  while (common < toA.size() && common < toB.size() && toA[common] == toB[common]) ++common;
  if (common < 2) return NicDistance::Apart;  // no more than the root
  const std::string& last = toA[common - 1]->name;
  // NICs that hang nowhere in particular share an element, too, and are no ports of one.
  if (last == "nic") return toA[common - 2]->name == "pci" ? NicDistance::Port : NicDistance::Apart;
  if (last == "cpu") return NicDistance::Phb;
  const bool direct = pciBelow(toA, common) <= 1 && pciBelow(toB, common) <= 1;
  return direct ? NicDistance::Pix : NicDistance::Pxb;
}

/// A bus id without its function; empty: unknown.
std::string adapterOf(const plugin::NetProperties& device) {
  const std::string busId = topo::lastBusId(device.pciPath);
  return busId.substr(0, busId.find('.'));
}

std::vector<std::string> splitAt(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

int deviceNamed(std::string_view name, std::span<const plugin::NetProperties> devices) {
  const auto found = std::find_if(devices.begin(), devices.end(), [&](const plugin::NetProperties& device) {
    return name == device.name || name == fmt::format("{}:{}", device.name, device.port);
  });
  return found == devices.end() ? -1 : static_cast<int>(found - devices.begin());
}

/// What a device behind the first `physical` ones is made of; empty: it does not say.
std::vector<int> partsOf(const plugin::NetProperties& device, int physical) {
  const std::vector<int>& parts = device.physical;
  const bool known = parts.size() > 1 &&
                     std::all_of(parts.begin(), parts.end(), [&](int part) { return part >= 0 && part < physical; });
  return known ? parts : std::vector<int>{};
}

/// One network's devices while they are being fused.
class Fusion {
 public:
  Fusion(plugin::NetDevices& net, std::span<const plugin::NetProperties> devices, int physical)
      : net_(net),
        label_(labelOf(net)),
        devices_(devices.first(static_cast<std::size_t>(physical))),
        taken_(devices_.size()) {
    for (const plugin::NetProperties& device : devices.subspan(devices_.size())) {
      std::vector<int> parts = partsOf(device, physical);
      for (const int part : parts) taken_[static_cast<std::size_t>(part)] = true;
      std::sort(parts.begin(), parts.end());
      there_.insert(std::move(parts));
    }
  }

  /// Whether there is a device of exactly these.
  bool has(std::vector<int> group) const {
    std::sort(group.begin(), group.end());
    return there_.contains(group);
  }
  std::span<const plugin::NetProperties> devices() const { return devices_; }
  const std::string& label() const { return label_; }

  /// Why the network does not make one device of the group; empty: it does.
  std::string make(const std::vector<int>& group) {
    const plugin::NetFusion made = net_.makeVirtual(group);
    if (!made.why.empty()) return made.why;
    for (const int device : group) taken_[static_cast<std::size_t>(device)] = true;
    info(kInit | kNet, "{} : {} are used as one device, number {}", label_, namesOf(devices_, group), made.device);
    return {};
  }

  void makeNearOnes(const FusionSettings& settings, const topo::XmlElement* machine) {
    std::set<std::pair<int, int>> refused;
    const auto mayJoin = [&](int a, int b) {
      const plugin::NetProperties& first = devices_[static_cast<std::size_t>(a)];
      const plugin::NetProperties& second = devices_[static_cast<std::size_t>(b)];
      if (settings.onlyOfOneRail && (first.railId < 0 || first.railId != second.railId)) return false;
      return !refused.contains({a, b}) && nicDistance(first, second, machine) <= *settings.farthest;
    };
    for (int first = 0; first < static_cast<int>(devices_.size());) {
      const std::vector<int> group = groupFrom(first, mayJoin);
      const std::string why = group.size() < 2 ? "" : make(group);
      if (why.empty()) {
        ++first;
        continue;
      }
      info(kInit | kNet, "{} : {} stay devices of their own: {}", label_, namesOf(devices_, group), why);
      for (const int a : group) {
        for (const int b : group) refused.insert({a, b});
      }
    }
  }

 private:
  template <class MayJoin>
  std::vector<int> groupFrom(int first, MayJoin&& mayJoin) const {
    std::vector<int> group;
    for (int next = first; next < static_cast<int>(devices_.size()); ++next) {
      if (taken_[static_cast<std::size_t>(next)] || static_cast<int>(group.size()) >= net_.maxFused()) continue;
      if (next != first && group.empty()) break;  // `first` itself is taken
      if (std::all_of(group.begin(), group.end(), [&](int member) { return mayJoin(member, next); })) {
        group.push_back(next);
      }
    }
    return group;
  }

  plugin::NetDevices& net_;
  const std::string label_;
  const std::span<const plugin::NetProperties> devices_;  ///< no fused ones
  std::vector<bool> taken_;                               ///< by a fused one
  std::set<std::vector<int>> there_;                      ///< what fused ones were made of before
};

}  // namespace

NicDistance nicDistance(const plugin::NetProperties& a, const plugin::NetProperties& b,
                        const topo::XmlElement* machine) {
  const std::string adapter = adapterOf(a);
  if (!adapter.empty() && adapter == adapterOf(b)) return NicDistance::Port;
  return machine == nullptr ? NicDistance::Apart : distanceInMachine(*machine, a.name, b.name);
}

Result<std::vector<std::vector<int>>> forcedGroups(std::string_view list,
                                                   std::span<const plugin::NetProperties> devices,
                                                   std::string_view label) {
  std::vector<std::vector<int>> groups;
  std::set<int> seen;
  for (const std::string& group : splitAt(list, ';')) {
    std::vector<int>& members = groups.emplace_back();
    for (const std::string& name : splitAt(group, ',')) {
      const int device = deviceNamed(name, devices);
      if (device < 0) {
        std::vector<int> all(devices.size());
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
        return fail(ncclInvalidUsage, "NCCL_NET_FORCE_MERGE={}: {} has no device {}, it has {}", list, label, name,
                    namesOf(devices, all));
      }
      if (!seen.insert(device).second) {
        return fail(ncclInvalidUsage, "NCCL_NET_FORCE_MERGE={}: {} stands there twice", list, name);
      }
      members.push_back(device);
    }
    if (members.size() < 2) groups.pop_back();  // there is nothing to fuse
  }
  return groups;
}

Status fuseNics(plugin::NetDevices& net, std::span<const plugin::NetProperties> devices, int physical,
                const FusionSettings& settings, const topo::XmlElement* machine) {
  Fusion fusion(net, devices, physical);
  ASSIGN(const auto groups, forcedGroups(settings.forced, fusion.devices(), fusion.label()));
  for (const std::vector<int>& group : groups) {
    if (fusion.has(group)) continue;
    if (const std::string why = fusion.make(group); !why.empty()) {
      return fail(ncclInvalidUsage, "NCCL_NET_FORCE_MERGE={}: {} cannot become one device: {}", settings.forced,
                  namesOf(devices, group), why);
    }
  }
  if (settings.farthest && net.fuses()) fusion.makeNearOnes(settings, machine);
  return {};
}

std::string labelOf(const plugin::NetDevices& net) {
  return fmt::format("{}/{}", net.kind(), net.name());
}

std::string namesOf(std::span<const plugin::NetProperties> devices, std::span<const int> group) {
  std::string names;
  for (const int device : group) {
    names += (names.empty() ? "" : ", ") + devices[static_cast<std::size_t>(device)].name;
  }
  return names;
}

std::vector<int> devicesToUse(std::span<const plugin::NetProperties> devices, int physical, std::string_view label) {
  std::vector<bool> used(devices.size(), true);
  for (std::size_t device = static_cast<std::size_t>(physical); device < devices.size(); ++device) {
    const std::vector<int> parts = partsOf(devices[device], physical);
    if (parts.empty()) {
      info(kInit | kNet, "{} : device {} ({}) does not say which others it is made of, and is not used", label, device,
           devices[device].name);
      used[device] = false;
      continue;
    }
    for (const int part : parts) used[static_cast<std::size_t>(part)] = false;
  }
  std::vector<int> numbers;
  for (std::size_t device = 0; device < devices.size(); ++device) {
    if (used[device]) numbers.push_back(static_cast<int>(device));
  }
  return numbers;
}

}  // namespace tutti::comm
