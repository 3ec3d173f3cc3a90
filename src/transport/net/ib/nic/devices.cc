#include "transport/net/ib/nic/devices.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <optional>
#include <set>

#include "base/log.h"
#include "transport/net/ib/nic/hca_filter.h"
#include "transport/net/ib/nic/nic.h"
#include "transport/net/ib/nic/options.h"
#include "transport/net/ib/nic/port.h"

namespace tutti::net::ib {

namespace {

constexpr std::size_t kMostPorts = 32;
constexpr std::size_t kMostDevices = 256;

std::string realPath(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), &std::free);
  return real ? std::string(real.get()) : std::string();
}

template <std::size_t N>
int lowestOf(const std::array<int, N>& table, std::uint32_t bits) {
  const auto lowest = static_cast<std::size_t>(std::countr_zero(bits));
  return table[std::min(lowest, N - 1)];
}

bool adaptiveBy(int setting, bool ethernet) {
  return setting >= 0 ? setting != 0 : !ethernet;
}

/// The settings' choice of one NIC's ports.
class PortSearch {
 public:
  PortSearch(const IbOptions& options, const HcaFilter& filter, IbSearch& found)
      : options_(options), filter_(filter), found_(found) {}

  std::vector<PortSight> addPortsOf(const std::shared_ptr<Nic>& nic) {
    std::vector<PortSight> sights;
    for (int port = 1; port <= nic->attributes().phys_port_cnt; ++port) {
      const HcaFilter::Verdict verdict = filter_.judge(nic->name(), port);
      PortSight sight{.number = port, .chosenBy = verdict.part, .attributes = nic->queryPort(port)};
      sight.use = useOf(verdict, sight.attributes);
      if (sight.use == PortUse::Used) add(nic, port, *sight.attributes, verdict.choice);
      sights.push_back(std::move(sight));
    }
    return sights;
  }

 private:
  PortUse useOf(const HcaFilter::Verdict& verdict, const std::optional<ibv_port_attr>& attributes) const {
    if (!verdict.used) return PortUse::NotChosen;
    if (!attributes) return PortUse::NoAnswer;
    if (attributes->state != IBV_PORT_ACTIVE) return PortUse::NotActive;
    const auto link = attributes->link_layer;
    if (link != IBV_LINK_LAYER_ETHERNET && link != IBV_LINK_LAYER_INFINIBAND) return PortUse::UnknownLink;
    return found_.ports.size() == kMostPorts ? PortUse::TooMany : PortUse::Used;
  }

  void add(const std::shared_ptr<Nic>& nic, int port, const ibv_port_attr& attributes, HcaFilter::Choice choice) {
    const bool ethernet = attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
    IbPort one{.nic = nic, .number = port, .ethernet = ethernet};
    one.speedMbps = portSpeedMbps(attributes.active_speed, attributes.active_width);
    one.exactPciPath = realPath(nic->folder() + "/device");
    one.pciPath = cardPath(one.exactPciPath, options_.mergesFunctions);
    one.guid = nic->attributes().sys_image_guid;
    one.rail = choice.rail;
    one.plane = choice.plane;
    one.adaptive = adaptiveBy(options_.adaptiveRouting, ethernet);
    found_.ports.push_back(std::move(one));
  }

  const IbOptions& options_;
  const HcaFilter& filter_;
  IbSearch& found_;
};

/// By bus id, those without one last, so that ranks of like hosts count alike.
void order(std::vector<IbPort>& ports) {
  std::stable_sort(ports.begin(), ports.end(), [](const IbPort& a, const IbPort& b) {
    if (a.exactPciPath.empty() != b.exactPciPath.empty()) return b.exactPciPath.empty();
    const auto idOf = [](const IbPort& port) { return port.exactPciPath.substr(port.exactPciPath.rfind('/') + 1); };
    return idOf(a) < idOf(b);
  });
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const auto same = [&](const IbPort& other) { return !other.pciPath.empty() && other.pciPath == ports[i].pciPath; };
    const auto earlier = std::count_if(ports.begin(), ports.begin() + static_cast<std::ptrdiff_t>(i), same);
    ports[i].place = ports[i].number + static_cast<int>(earlier);
  }
}

}  // namespace

int portSpeedMbps(std::uint32_t activeSpeed, std::uint32_t activeWidth) {
  constexpr std::array<int, 9> kSpeeds{2500, 5000, 10000, 10000, 14000, 25000, 50000, 100000, 200000};
  constexpr std::array<int, 5> kWidths{1, 4, 8, 12, 2};
  return lowestOf(kSpeeds, activeSpeed) * lowestOf(kWidths, activeWidth);
}

std::string cardPath(const std::string& pciPath, bool functions) {
  constexpr std::string_view kShape = "0000:00:00.0";
  if (pciPath.size() < kShape.size() || pciPath[pciPath.size() - 2] != '.') return pciPath;
  std::string path = pciPath;
  path.back() = '0';
  if (functions) path.replace(path.size() - 4, 2, "00");
  return path;
}

std::string peerMemorySign(const std::string& root) {
  constexpr std::array<const char*, 3> kSigns{"/sys/kernel/mm/memory_peers/nv_mem/version",
                                              "/sys/kernel/mm/memory_peers/nv_mem_nc/version",
                                              "/sys/module/nvidia_peermem/version"};
  const auto shown = std::find_if(kSigns.begin(), kSigns.end(), [&](const char* sign) {
    struct stat about {};
    return ::stat((root + sign).c_str(), &about) == 0;
  });
  return shown == kSigns.end() ? "" : *shown;
}

IbDevices::IbDevices(std::vector<IbPort> ports) : ports_(std::move(ports)) {
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    devices_.push_back({.ports = {static_cast<int>(i)}, .name = ports_[i].nic->name()});
  }
}

int IbDevices::count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(devices_.size());
}

std::vector<const IbPort*> IbDevices::portsOf(int device) const {
  const std::lock_guard lock(mutex_);
  std::vector<const IbPort*> ports;
  if (device < 0 || static_cast<std::size_t>(device) >= devices_.size()) return ports;
  for (const int port : devices_[static_cast<std::size_t>(device)].ports) {
    ports.push_back(&ports_[static_cast<std::size_t>(port)]);
  }
  return ports;
}

plugin::NetProperties IbDevices::properties(int device, bool peerMemory) const {
  const std::vector<const IbPort*> ports = portsOf(device);
  const IbPort& first = *ports.front();
  const std::lock_guard lock(mutex_);
  const IbDevice& one = devices_[static_cast<std::size_t>(device)];
  plugin::NetProperties said;
  said.name = one.name;
  said.pciPath = first.pciPath;
  said.guid = first.guid;
  said.ptrSupport = static_cast<int>(plugin::PtrKind::Host);
  if (peerMemory) said.ptrSupport |= static_cast<int>(plugin::PtrKind::Cuda);
  // Memory is registered with each of them.
  const bool dmaBufs = std::all_of(ports.begin(), ports.end(), [](const IbPort* p) { return p->nic->dmaBufs().taken; });
  if (dmaBufs) said.ptrSupport |= static_cast<int>(plugin::PtrKind::DmaBuf);
  said.regIsGlobal = true;
  said.speedMbps = 0;
  for (const IbPort* port : ports) said.speedMbps += port->speedMbps;
  said.port = first.place;
  said.maxComms = first.nic->attributes().max_qp;
  said.maxRecvs = static_cast<int>(kMostRowMessages);
  said.physical = one.ports;
  said.maxP2pBytes = std::size_t{1} << 40;
  said.maxCollBytes = std::size_t{1} << 29;
  said.railId = first.rail;
  said.planeId = first.plane;
  if (ports.size() == 1) return said;
  said.planeId = kFusedPlane;
  for (const IbPort* port : ports) {
    if (port->rail != first.rail) said.railId = -1;
    if (port->plane >= 0) said.planeId |= 1 << placeOfPlane(port->plane);
  }
  return said;
}

/// Among the different planes of all ports.
int IbDevices::placeOfPlane(int plane) const {
  std::set<int> lower;
  for (const IbPort& port : ports_) {
    if (port.plane >= 0 && port.plane < plane) lower.insert(port.plane);
  }
  return static_cast<int>(lower.size());
}

plugin::NetFusion IbDevices::fuse(std::span<const int> devices) {
  const std::lock_guard lock(mutex_);
  if (devices.empty()) return {-1, "there is nothing to fuse"};
  IbDevice fused;
  for (const int device : devices) {
    if (device < 0 || static_cast<std::size_t>(device) >= ports_.size()) {
      return {-1, fmt::format("device {} is no port of a NIC", device)};
    }
    const IbPort& port = ports_[static_cast<std::size_t>(device)];
    if (port.ethernet != ports_[static_cast<std::size_t>(devices.front())].ethernet) {
      return {-1,
              fmt::format("Attempted to merge incompatible devices: {} is {}, the others are not. Name ports of one "
                          "link type in NCCL_IB_HCA",
                          port.text(), port.ethernet ? "RoCE" : "InfiniBand")};
    }
    fused.ports.push_back(device);
    fused.name += (fused.name.empty() ? "" : "+") + port.nic->name();
  }
  if (fused.ports.size() > kMostChildren)
    return {-1, fmt::format("{} NICs are more than {}", fused.ports.size(), kMostChildren)};
  if (devices_.size() >= kMostDevices)
    return {-1, fmt::format("Cannot allocate any more virtual devices ({})", kMostDevices)};
  devices_.push_back(std::move(fused));
  return {static_cast<int>(devices_.size()) - 1, {}};
}

std::string IbDevices::text() const {
  std::string text;
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    text += fmt::format("{}[{}]{}/{}", i == 0 ? "" : " ", i, ports_[i].text(), ports_[i].ethernet ? "RoCE" : "IB");
  }
  return text;
}

std::string portUseText(PortUse use) {
  switch (use) {
    case PortUse::Used:
      return {};
    case PortUse::NotChosen:
      return "NCCL_IB_HCA leaves it out";
    case PortUse::NoAnswer:
      return "ibv_query_port fails";
    case PortUse::NotActive:
      return "the port is not active";
    case PortUse::UnknownLink:
      return "it is neither InfiniBand nor Ethernet";
    case PortUse::TooMany:
      return fmt::format("there are {} others", kMostPorts);
  }
  return {};
}

std::string portStateText(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_DOWN:
      return "it is DOWN: look at the cable, the switch and ip link";
    case IBV_PORT_INIT:
      return "it is in the state INIT: its link stands, and no subnet manager has set it up. Does opensm run?";
    case IBV_PORT_ARMED:
      return "it is in the state ARMED: the subnet manager has set it up and not activated it. Look at its log";
    case IBV_PORT_ACTIVE:
      return "it is ACTIVE";
    case IBV_PORT_ACTIVE_DEFER:
      return "it is in the state ACTIVE_DEFER: its link has just failed. Look at the cable and the switch";
    case IBV_PORT_NOP:
      break;
  }
  return fmt::format("its state is {}, which is none: look at dmesg", static_cast<int>(state));
}

std::vector<std::string> refusalsOf(const IbSearch& search) {
  std::vector<std::string> refusals;
  for (const NicSight& nic : search.seen) {
    if (nic.nic == nullptr) refusals.push_back(fmt::format("{}: {}", nic.name, nic.why));
    for (const PortSight& port : nic.ports) {
      if (port.use == PortUse::Used || port.use == PortUse::NotChosen) continue;
      const std::string state = port.use == PortUse::NotActive ? ": " + portStateText(port.attributes->state) : "";
      refusals.push_back(fmt::format("{}:{}: {}{}", nic.name, port.number, portUseText(port.use), state));
    }
  }
  return refusals;
}

Result<IbSearch> searchIbPorts(const Verbs& verbs, const IbOptions& options, const std::string& folder) {
  ASSIGN(const HcaFilter filter, HcaFilter::parse(options.hca));
  IbSearch found;
  PortSearch search(options, filter, found);
  int count = 0;
  ibv_device** const list = verbs.get_device_list(&count);
  for (int i = 0; list != nullptr && i < count; ++i) {
    NicSight sight{.name = verbs.get_device_name(list[i])};
    sight.nic = Nic::open(verbs, list[i], options.relaxedOrdering, folder, &sight.why);
    if (sight.nic != nullptr) sight.ports = search.addPortsOf(sight.nic);
    found.seen.push_back(std::move(sight));
  }
  if (list != nullptr) verbs.free_device_list(list);
  order(found.ports);
  return found;
}

}  // namespace tutti::net::ib
