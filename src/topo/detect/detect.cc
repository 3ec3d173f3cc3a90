#include "topo/detect/detect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "base/log.h"
#include "topo/detect/tree.h"

namespace tutti::topo {
namespace {

constexpr const char* kHiddenSwitch = "fffffff:ff:ff.0";
constexpr const char* kSwitchClass = "0x068000";
constexpr const char* kCpuBridgeClass = "0x068001";
constexpr const char* kGpuClass = "0x030200";
constexpr const char* kNicClass = "0x020000";

bool isGpuClass(std::uint32_t code) {
  return code >> 16 == 0x03;
}

/// Puts facts into a tree that may already hold a file's elements.
class Detection {
 public:
  explicit Detection(const DetectInput& input) : input_(input), places_(input.host, tree_) {
    for (const GpuSourceFacts& gpu : input.gpus) gpus_.emplace(normalBusId(gpu.busId), &gpu);
  }

  Result<XmlElement> run() {
    if (input_.given) TRY(takeGiven());
    for (const GpuSourceFacts& gpu : input_.gpus) addGpu(gpu, gpu.index >= 0 ? gpu.index : freeNumber());
    if (input_.nets) addNets();
    if (tree_.of(DetectTree::kRoot).children.empty()) places_.addAllCpus();
    places_.complete();
    if (!input_.given) tree_.sortSiblings();
    return tree_.assemble();
  }

 private:
  Status takeGiven() {
    const XmlElement& root = *input_.given;
    if (root.name != "system") {
      return fail(ncclInvalidUsage, "{}: a topology file begins with <system version=\"1\">", root.where());
    }
    tree_.import(root);
    if (input_.gpusComplete) dropAbsentGpus();
    if (input_.nets) dropAbsentNets();
    return {};
  }

  void dropAbsentGpus() {
    for (const auto& [busId, pci] : tree_.pciItems()) {
      if (gpus_.count(busId) != 0 || tree_.child(pci, "gpu") < 0) continue;
      info(kGraph, "{}: the GPU at {} is not in this machine and is left out", input_.givenOrigin, busId);
      tree_.removeChildren(pci, "gpu");
    }
  }

  void dropAbsentNets() {
    for (const int net : tree_.items("net")) {
      const std::string* name = tree_.of(net).self.find("name");
      const auto named = [&](const NetDeviceFacts& device) { return name != nullptr && device.name == *name; };
      if (std::none_of(input_.nets->begin(), input_.nets->end(), named)) tree_.remove(net);
    }
    for (const int nic : tree_.items("nic")) {
      if (tree_.child(nic, "net") < 0) tree_.remove(nic);
    }
  }

  /// A number that no GPU has, for one that NVML does not know: without NVML, CUDA's.
  int freeNumber() {
    const auto taken = [this](const GpuSourceFacts& gpu) { return gpu.index == nextFree_; };
    while (std::any_of(input_.gpus.begin(), input_.gpus.end(), taken)) ++nextFree_;
    return nextFree_++;
  }

  /// Its compute capability; where nobody told it, that of another GPU: most machines have one kind. 0: all unknown.
  int capabilityOf(const GpuSourceFacts& gpu) const {
    if (gpu.sm > 0) return gpu.sm;
    const auto known =
        std::find_if(input_.gpus.begin(), input_.gpus.end(), [](const auto& other) { return other.sm > 0; });
    return known == input_.gpus.end() ? 0 : known->sm;
  }

  void addGpu(const GpuSourceFacts& gpu, int number) {
    const int sm = capabilityOf(gpu);
    if (sm == 0) {
      info(kGraph, "The GPU at {} is left out: neither the driver nor NVML tells its compute capability", gpu.busId);
      return;
    }
    const std::string busId = normalBusId(gpu.busId);
    const int pci = places_.pci(busId.empty() ? gpu.busId : busId, kGpuClass);
    if (gpu.pcieGeneration > 0 && gpu.pcieWidth > 0) places_.offerLink(pci, gpu.pcieGeneration, gpu.pcieWidth);
    int item = tree_.child(pci, "gpu");
    const bool known = item >= 0;
    if (!known) item = tree_.add(pci, "gpu");
    XmlElement& element = tree_.of(item).self;
    element.set("dev", std::to_string(number));
    offer(element, "sm", std::to_string(sm));
    if (gpu.gdr) offer(element, "gdr", *gpu.gdr ? "1" : "0");
    if (tree_.child(item, "nvlink") < 0 && !gpu.mig) addNvLinks(item, gpu);
    if (tree_.child(item, "c2c") < 0 && gpu.c2cLinks > 0 && gpu.c2cBandwidth > 0) {
      XmlElement& c2c = tree_.of(tree_.add(item, "c2c")).self;
      c2c.set("bw", std::to_string(gpu.c2cBandwidth));
      c2c.set("count", std::to_string(gpu.c2cLinks));
    }
  }

  /// Target and class that a link's far end has in the file; an empty target: a link that carries nothing.
  std::pair<std::string, std::string> farEnd(const NvLinkFacts& link) const {
    const std::string target = normalBusId(link.target);
    const PciFacts* pci = places_.find(target);
    if (const auto gpu = gpus_.find(target); gpu != gpus_.end()) {
      if (gpu->second->mig) return {};
      const bool asGpu = pci != nullptr && isGpuClass(pci->classCode);
      return {target, asGpu ? fmt::format("{:#08x}", pci->classCode) : kGpuClass};
    }
    if (link.end == NvLinkEnd::Gpu) return {target, kGpuClass};
    if (link.end == NvLinkEnd::Cpu) return {target, kCpuBridgeClass};
    if (link.end == NvLinkEnd::Unknown && pci != nullptr) return {target, fmt::format("{:#08x}", pci->classCode)};
    return {pci != nullptr ? target : kHiddenSwitch, kSwitchClass};
  }

  void addNvLinks(int item, const GpuSourceFacts& gpu) {
    std::vector<std::pair<std::pair<std::string, std::string>, int>> counts;
    for (const NvLinkFacts& link : gpu.nvlinks) {
      auto end = farEnd(link);
      if (end.first.empty()) continue;
      const auto known = std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == end; });
      if (known != counts.end()) {
        ++known->second;
      } else {
        counts.emplace_back(std::move(end), 1);
      }
    }
    for (const auto& [end, count] : counts) {
      XmlElement& nvlink = tree_.of(tree_.add(item, "nvlink")).self;
      nvlink.set("target", end.first);
      nvlink.set("count", std::to_string(count));
      nvlink.set("tclass", end.second);
    }
  }

  /// The file's <net> of that name, -1: none.
  int netNamed(const std::string& name) const {
    for (const int net : tree_.items("net")) {
      const std::string* found = tree_.of(net).self.find("name");
      if (found != nullptr && *found == name) return net;
    }
    return -1;
  }

  /// Where the network does not tell it, the system may know a device of that name; empty: a virtual NIC.
  std::string busIdOf(const NetDeviceFacts& device) const {
    std::string busId = lastBusId(device.pciPath);
    if (!busId.empty()) return busId;
    const auto named = [&](const OsDeviceFacts& known) { return known.name == device.name; };
    const auto found = std::find_if(input_.host.devices.begin(), input_.host.devices.end(), named);
    return found == input_.host.devices.end() ? std::string() : found->busId;
  }

  int newNet(const NetDeviceFacts& device) {
    const std::string busId = busIdOf(device);
    const int above = busId.empty() ? places_.anyCpu() : places_.pci(busId, kNicClass);
    int nic = tree_.child(above, "nic");
    if (nic < 0) nic = tree_.add(above, "nic");
    const int net = tree_.add(nic, "net");
    tree_.of(net).self.set("name", device.name);
    return net;
  }

  void addNets() {
    int dev = 0;
    for (const NetDeviceFacts& device : *input_.nets) {
      int item = netNamed(device.name);
      if (item < 0) item = newNet(device);
      XmlElement& net = tree_.of(item).self;
      net.set("dev", std::to_string(device.dev >= 0 ? device.dev : dev));
      ++dev;
      offer(net, "speed", std::to_string(device.speed));
      offer(net, "port", std::to_string(device.port));
      offer(net, "latency", fmt::format("{:.6f}", device.latency));
      offer(net, "guid", fmt::format("{:#x}", device.guid));
      offer(net, "maxconn", std::to_string(device.maxComms));
      offer(net, "gdr", device.gdr ? "1" : "0");
      if (device.coll) offer(net, "coll", "1");
      if (device.rail >= 0) offer(net, "rail", std::to_string(device.rail));
      if (device.plane >= 0) offer(net, "plane", std::to_string(device.plane));
    }
  }

  const DetectInput& input_;
  DetectTree tree_;
  DetectPlaces places_;
  std::map<std::string, const GpuSourceFacts*> gpus_;
  int nextFree_ = 0;
};

}  // namespace

Result<XmlElement> detectTopology(const DetectInput& input) {
  return Detection(input).run();
}

std::string normalBusId(std::string_view text) {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned slot = 0;
  unsigned function = 0;
  int used = 0;
  const std::string copy(text);
  const auto whole = [&](int fields, int expected) {
    return fields == expected && static_cast<std::size_t>(used) == copy.size() && bus < 256 && slot < 32 &&
           function < 8;
  };
  const bool shaped = copy.size() <= 16 && copy.find_first_not_of("0123456789abcdefABCDEF:.") == copy.npos;
  if (!shaped) return {};
  if (!whole(std::sscanf(copy.c_str(), "%x:%x:%x.%x%n", &domain, &bus, &slot, &function, &used), 4)) {
    domain = 0;
    used = 0;
    if (!whole(std::sscanf(copy.c_str(), "%x:%x.%x%n", &bus, &slot, &function, &used), 3)) return {};
  }
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain, bus, slot, function);
}

std::string lastBusId(std::string_view path) {
  while (!path.empty()) {
    const std::size_t slash = path.rfind('/');
    const std::string_view part = slash == path.npos ? path : path.substr(slash + 1);
    if (std::string busId = normalBusId(part); !busId.empty()) return busId;
    path = slash == path.npos ? std::string_view() : path.substr(0, slash);
  }
  return {};
}

}  // namespace tutti::topo
