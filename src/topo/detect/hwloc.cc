#include "topo/detect/hwloc.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <pugixml.hpp>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/log.h"
#include "topo/xml/scan.h"

namespace tutti::topo {
namespace {

constexpr int kMaxDepth = 128;

/// "0x000000ff,0xffffffff" or "0xffffffff" with gaps for zero words -> the form of /sys.
std::string affinityOf(std::string_view set) {
  std::string words;
  for (std::size_t at = 0; at <= set.size();) {
    const std::size_t end = std::min(set.find(',', at), set.size());
    std::string_view word = set.substr(at, end - at);
    if (word.substr(0, 2) == "0x") word.remove_prefix(2);
    if (word.size() > 8) return {};  // "0xf...f": without an end
    if (!words.empty()) words += ',';
    words += std::string(8 - word.size(), '0').append(word);
    at = end + 1;
  }
  return words.find_first_not_of("0123456789abcdefABCDEF,") == words.npos ? words : std::string();
}

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

/// With a point, whatever the process' locale writes; 0: no number.
double numberOf(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Walks hwloc's tree; the document must live on. What stands inside an object belongs to its CPUs.
class Reader {
 public:
  HostFacts read(const pugi::xml_node& topology) {
    for (const pugi::xml_node& object : topology.children("object")) visit(object, {}, 0);
    for (auto& [facts, set] : pci_) {
      facts.numa = numaOf(set);
      facts_.pci.push_back(std::move(facts));
    }
    std::sort(facts_.numaNodes.begin(), facts_.numaNodes.end(),
              [](const auto& a, const auto& b) { return a.id < b.id; });
    facts_.processor.arch = arch();
    return std::move(facts_);
  }

 private:
  struct Above {
    std::string bridge;        ///< bus id
    const char* nodeset = "";  ///< of the nearest object that has one; the document's
  };

  void visit(const pugi::xml_node& object, Above above, int depth) {
    if (depth > kMaxDepth) return;
    const std::string type = object.attribute("type").as_string();
    if (object.attribute("nodeset")) above.nodeset = object.attribute("nodeset").as_string();
    takeInfos(object);
    if (type == "NUMANode") takeNode(object);
    if (type == "PCIDev" || type == "Bridge") {
      const std::string busId = normalBusId(object.attribute("pci_busid").as_string());
      if (!busId.empty()) takePci(object, busId, above);
      above.bridge = busId;
    }
    for (const pugi::xml_node& child : object.children("object")) visit(child, above, depth + 1);
  }

  void takeInfos(const pugi::xml_node& object) {
    for (const pugi::xml_node& info : object.children("info")) {
      const std::string name = info.attribute("name").as_string();
      const char* value = info.attribute("value").as_string();
      ProcessorFacts& processor = facts_.processor;
      if (name == "CPUVendor") processor.vendor = value;
      if (name == "CPUFamilyNumber") processor.family = info.attribute("value").as_int();
      if (name == "CPUModelNumber") processor.model = info.attribute("value").as_int();
      if (name == "Architecture" || name == "CPUModel") (name == "CPUModel" ? model_ : machine_) = value;
    }
  }

  void takeNode(const pugi::xml_node& object) {
    NumaNodeFacts node{object.attribute("os_index").as_int(), affinityOf(object.attribute("cpuset").as_string())};
    if (!ids_.insert(node.id).second) return;
    nodesets_.try_emplace(object.attribute("nodeset").as_string(), node.id);
    if (node.affinity.find_first_not_of("0,") != node.affinity.npos) facts_.numaNodes.push_back(std::move(node));
  }

  void takePci(const pugi::xml_node& object, const std::string& busId, const Above& above) {
    unsigned code = 0;
    unsigned ids[4] = {};
    std::sscanf(object.attribute("pci_type").as_string(), "%x [%x:%x] [%x:%x]", &code, &ids[0], &ids[1], &ids[2],
                &ids[3]);
    PciFacts facts;
    facts.busId = busId;
    facts.parent = above.bridge;
    facts.classCode = code << 8;
    facts.vendor = static_cast<std::uint16_t>(ids[0]);
    facts.device = static_cast<std::uint16_t>(ids[1]);
    facts.subsystemVendor = static_cast<std::uint16_t>(ids[2]);
    facts.subsystemDevice = static_cast<std::uint16_t>(ids[3]);
    const HwlocLink link = linkOf(numberOf(object.attribute("pci_link_speed").as_string()));
    facts.linkSpeed = link.speed;
    facts.linkWidth = link.width;
    pci_.emplace_back(std::move(facts), above.nodeset);
  }

  /// The NUMA node whose set it is; -1 for the set of several. A set that many objects stand in is looked up once: it
  /// may be long.
  int numaOf(const char* nodeset) {
    const auto [known, isNew] = numaOf_.try_emplace(nodeset, -1);
    if (!isNew) return known->second;
    const auto found = nodesets_.find(nodeset);
    if (found != nodesets_.end()) known->second = found->second;
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

  HostFacts facts_;
  std::string machine_;
  std::string model_;
  std::set<int> ids_;  ///< of NUMA nodes
  std::unordered_map<std::string_view, int> nodesets_;
  std::unordered_map<const char*, int> numaOf_;
  std::vector<std::pair<PciFacts, const char*>> pci_;  ///< with the set of NUMA nodes they are near to
};

}  // namespace

Result<HostFacts> readHwlocXml(std::string_view text, std::string_view origin) {
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(text.data(), text.size());
  if (!parsed) {
    return fail(ncclInvalidUsage, "{}, line {}: not well formed: {}", origin, lineOf(text, parsed.offset),
                parsed.description());
  }
  const pugi::xml_node topology = document.child("topology");
  if (std::strncmp(topology.attribute("version").as_string(), "2.", 2) != 0) {
    return fail(ncclInvalidUsage,
                "{}: no topology of hwloc 2 (root element <topology version=\"2.…\">); write one with "
                "'lstopo --whole-io machine.xml'",
                origin);
  }
  return Reader().read(topology);
}

}  // namespace tutti::topo
