#include "topo/detect/hwloc.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/environment.h"
#include "base/hwloc/topology.h"
#include "base/log.h"
#include "topo/detect/hwloc_file.h"
#include "topo/detect/pci_facts.h"
#include "topo/detect/sysfs.h"

namespace tutti::topo {
namespace {

using HwlocPci = decltype(hwloc_obj_attr_u::pcidev);

struct HwlocLink {
  const char* speed = "";
  int width = 0;
};

/// The widest link of at most 16 lanes that carries so many GB/s.
HwlocLink linkOf(double bandwidth) {
  struct Generation {
    double perLane;
    const char* speed;
  };
  constexpr Generation kGenerations[] = {{0.25, "2.5 GT/s PCIe"},
                                         {0.5, "5.0 GT/s PCIe"},
                                         {8.0 / 8 * 128 / 130, "8.0 GT/s PCIe"},
                                         {16.0 / 8 * 128 / 130, "16.0 GT/s PCIe"},
                                         {32.0 / 8 * 128 / 130, "32.0 GT/s PCIe"},
                                         {64.0 / 8 * 242 / 256, "64.0 GT/s PCIe"}};
  for (int width = 16; width >= 1; width /= 2) {
    for (const Generation& generation : kGenerations) {
      const double expected = generation.perLane * width;
      if (bandwidth > expected * 0.93 && bandwidth < expected * 1.07) return {generation.speed, width};
    }
  }
  return {};
}

/// Walks hwloc's tree. What stands inside an object belongs to its CPUs.
class Reader {
 public:
  explicit Reader(const HwlocTopology& topology) : calls_(topology.calls()) { visit(topology.root(), {}); }

  HostFacts takeFacts() {
    for (auto& [facts, nodes] : pci_) {
      facts.numa = numaOf(nodes);
      facts_.pci.push_back(std::move(facts));
    }
    std::sort(facts_.numaNodes.begin(), facts_.numaNodes.end(),
              [](const auto& a, const auto& b) { return a.id < b.id; });
    std::sort(facts_.devices.begin(), facts_.devices.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    facts_.processor.arch = arch();
    if (facts_.processor.arch != "x86_64") facts_.processor = {facts_.processor.arch, {}, -1, -1};
    return std::move(facts_);
  }

 private:
  struct Above {
    std::string bridge;                     ///< bus id
    std::string function;                   ///< bus id of the nearest PCI function, which may be the bridge
    hwloc_const_nodeset_t nodes = nullptr;  ///< of the nearest object that has some
  };

  void visit(hwloc_obj_t object, Above above) {
    if (object->nodeset != nullptr) above.nodes = object->nodeset;
    takeInfos(*object);
    if (object->type == HWLOC_OBJ_NUMANODE) takeNode(*object);
    if (object->type == HWLOC_OBJ_PCI_DEVICE) above.function = takePci(object->attr->pcidev, above);
    if (object->type == HWLOC_OBJ_BRIDGE) {
      const bool host = object->attr->bridge.upstream_type != HWLOC_OBJ_BRIDGE_PCI;
      above.bridge = above.function = host ? std::string() : takePci(object->attr->bridge.upstream.pci, above);
    }
    if (object->type == HWLOC_OBJ_OS_DEVICE) takeDevice(*object, above);
    for (hwloc_obj_t first : {object->first_child, object->memory_first_child, object->io_first_child}) {
      for (hwloc_obj_t child = first; child != nullptr; child = child->next_sibling) visit(child, above);
    }
  }

  void takeInfos(const hwloc_obj& object) {
    for (unsigned i = 0; i < object.infos_count; ++i) {
      const std::string_view name = object.infos[i].name;
      const char* value = object.infos[i].value;
      ProcessorFacts& processor = facts_.processor;
      if (name == "CPUVendor") processor.vendor = value;
      if (name == "CPUFamilyNumber") processor.family = std::atoi(value);
      if (name == "CPUModelNumber") processor.model = std::atoi(value);
      if (name == "Architecture" || name == "CPUModel") (name == "CPUModel" ? model_ : machine_) = value;
    }
  }

  /// In the form of /sys.
  std::string wordsOf(hwloc_const_cpuset_t set) const {
    std::string words;
    for (int word = calls_.bitmapLast(set) / 32; word >= 0; --word) {
      unsigned bits = 0;
      for (unsigned bit = 0; bit < 32; ++bit) {
        if (calls_.bitmapIsset(set, static_cast<unsigned>(word) * 32 + bit) != 0) bits |= 1U << bit;
      }
      words += fmt::format("{}{:08x}", words.empty() ? "" : ",", bits);
    }
    return words;
  }

  void takeNode(const hwloc_obj& object) {
    const auto id = static_cast<int>(object.os_index);
    // Nodes of memory alone (of GPUs, of CXL) are no CPUs.
    if (calls_.bitmapLast(object.cpuset) < 0 || !ids_.insert(id).second) return;
    facts_.numaNodes.push_back({id, wordsOf(object.cpuset)});
  }

  std::string takePci(const HwlocPci& pci, const Above& above) {
    PciFacts facts;
    facts.busId = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.dev, pci.func);
    facts.parent = above.bridge;
    facts.classCode = static_cast<std::uint32_t>(pci.class_id) << 8;
    facts.vendor = pci.vendor_id;
    facts.device = pci.device_id;
    facts.subsystemVendor = pci.subvendor_id;
    facts.subsystemDevice = pci.subdevice_id;
    const HwlocLink link = linkOf(pci.linkspeed);
    facts.linkSpeed = link.speed;
    facts.linkWidth = link.width;
    pci_.emplace_back(facts, above.nodes);
    return facts.busId;
  }

  void takeDevice(const hwloc_obj& object, const Above& above) {
    const hwloc_obj_osdev_type_t type = object.attr->osdev.type;
    if (type != HWLOC_OBJ_OSDEV_NETWORK && type != HWLOC_OBJ_OSDEV_OPENFABRICS) return;
    if (object.name != nullptr && !above.function.empty()) facts_.devices.push_back({object.name, above.function});
  }

  /// The NUMA node with CPUs that is in the set; -1: there are several.
  int numaOf(hwloc_const_nodeset_t nodes) {
    const auto [known, isNew] = numaOf_.try_emplace(nodes, -1);
    if (!isNew || nodes == nullptr) return known->second;
    int several = 0;
    for (const int id : ids_) {
      if (calls_.bitmapIsset(nodes, static_cast<unsigned>(id)) == 0) continue;
      known->second = id;
      if (++several > 1) return known->second = -1;
    }
    return known->second;
  }

  /// hwloc writes down what uname says, unless the file was made from a recorded /sys.
  std::string arch() const {
    if (machine_ == "x86_64") return "x86_64";
    if (machine_ == "aarch64" || machine_ == "arm64") return "arm64";
    if (machine_.rfind("ppc64", 0) == 0) return "ppc64";
    if (!facts_.processor.vendor.empty() && facts_.processor.vendor.find("ARM") == std::string::npos) return "x86_64";
    return model_.rfind("POWER", 0) == 0 ? "ppc64" : "";
  }

  const HwlocCalls& calls_;
  HostFacts facts_;
  std::string machine_;
  std::string model_;
  std::set<int> ids_;                                            ///< of NUMA nodes with CPUs
  std::unordered_map<hwloc_const_nodeset_t, int> numaOf_;        ///< what was found, by the object's set
  std::vector<std::pair<PciFacts, hwloc_const_nodeset_t>> pci_;  ///< with the NUMA nodes that they are near to
};

/// Takes from /sys what hwloc does not tell of the functions that a topology needs. False if hwloc does not show one of
/// them, or shows it below another bridge: it leaves out domains of more than 16 bits, and finds what hangs below what
/// by bus numbers in configuration spaces, which may be hidden.
bool completePci(std::vector<PciFacts>& pci, const std::string& root) {
  std::unordered_map<std::string_view, PciFacts*> known;
  for (PciFacts& facts : pci) known.emplace(facts.busId, &facts);
  std::vector<PciFacts> used = pciOfUse(listSysfsPci(root));
  for (PciFacts& facts : used) {
    const auto found = known.find(facts.busId);
    if (found == known.end() || found->second->parent != facts.parent) return false;
    const std::uint32_t wholeClass = facts.classCode;
    facts = std::move(*found->second);
    facts.classCode = wholeClass;
  }
  pci = std::move(used);
  takeSysfsLinks(pci, root);
  return true;
}

/// Nodes that share processors, as no system has them, are one to hwloc.
bool sameNodes(const std::vector<NumaNodeFacts>& a, const std::vector<NumaNodeFacts>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& one, const auto& two) { return one.id == two.id && one.affinity == two.affinity; });
}

}  // namespace

std::optional<HostFacts> readHwloc(const std::string& root, std::string& why) {
  if (!root.empty() && ProcessEnv().get("HWLOC_FSROOT") != root) {
    why = "HWLOC_FSROOT does not name it";
    return std::nullopt;
  }
  const auto topology = HwlocTopology::read(HwlocDetail::Devices, why);
  if (!topology) {
    if (Hwloc::instance().calls() != nullptr) warn("{}; /sys is read instead, which tells the same", why);
    return std::nullopt;
  }
  if (root.empty() && !topology->isThisMachine()) {
    why = "a variable of hwloc's (HWLOC_SYNTHETIC, HWLOC_FSROOT …) names another machine";
    return std::nullopt;
  }
  HostFacts facts = Reader(*topology).takeFacts();
  // Where the system shows none hwloc makes one up.
  if (topology->calls().topologyGetSupport(topology->get())->discovery->numa == 0) facts.numaNodes.clear();
  if (!sameNodes(facts.numaNodes, readSysfsNodes(root)) || !completePci(facts.pci, root)) {
    why = "hwloc does not show all NUMA nodes and PCI functions, or not where they are";
    return std::nullopt;
  }
  // Of a recorded system it says what this one is.
  if (!root.empty() || facts.processor.arch.empty()) facts.processor = readProcessor(root);
  return facts;
}

std::optional<HostFacts> readHwlocXml(const std::string& text, std::string& why) {
  const std::optional<std::string> checked = checkedHwlocXml(text, why);
  if (!checked) return std::nullopt;
  const auto topology = HwlocTopology::readXml(*checked, why);
  if (!topology) return std::nullopt;
  return Reader(*topology).takeFacts();
}

}  // namespace tutti::topo
