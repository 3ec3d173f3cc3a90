#include "topo/xml/topology_xml.h"

#include <algorithm>
#include <array>
#include <span>
#include <unordered_map>

#include "base/log.h"
#include "topo/xml/scan.h"

namespace tutti::topo {

namespace {

using Names = std::span<const std::string_view>;

constexpr std::array<std::string_view, 2> kInCpu = {"pci", "nic"};
constexpr std::array<std::string_view, 4> kInPci = {"pci", "gpu", "nic", "pcilink"};
constexpr std::array<std::string_view, 2> kInGpu = {"nvlink", "c2c"};
constexpr std::array<std::string_view, 1> kInNic = {"net"};
constexpr std::array<std::string_view, 1> kInSystem = {"cpu"};
constexpr std::array<std::string_view, 1> kOnlyGpu = {"gpu"};
constexpr std::array<std::string_view, 1> kOnlyNic = {"nic"};

/// Children that are known below an element of that name.
Names knownChildren(std::string_view name) {
  if (name == "system") return kInSystem;
  if (name == "cpu") return kInCpu;
  if (name == "pci") return kInPci;
  if (name == "gpu") return kInGpu;
  if (name == "nic") return kInNic;
  return {};
}

bool hasChild(const XmlElement& element, std::string_view name) {
  return std::any_of(element.children.begin(), element.children.end(),
                     [name](const XmlElement& child) { return child.name == name; });
}

/// A function of a GPU or NIC by its class.
bool isLeafByClass(const XmlElement& pci) {
  const std::string* text = pci.find("class");
  const PciClass kind = text != nullptr ? pciClassOf(*text) : PciClass::Switch;
  return kind == PciClass::Gpu || kind == PciClass::Nic;
}

/// Children that mean something below this very element: nothing hangs below a GPU's or a NIC's function.
Names knownChildrenOf(const XmlElement& element) {
  if (element.name == "pci" && hasChild(element, "gpu")) return kOnlyGpu;
  if (element.name == "pci" && hasChild(element, "nic")) return kOnlyNic;
  if (element.name == "pci" && isLeafByClass(element)) return {};
  return knownChildren(element.name);
}

/// What was removed, for one line about it.
struct Unknown {
  int count = 0;
  std::string first;
};

void removeUnknown(XmlElement& element, Unknown& unknown) {
  const Names known = knownChildrenOf(element);
  std::erase_if(element.children, [&](const XmlElement& child) {
    if (std::find(known.begin(), known.end(), child.name) != known.end()) return false;
    if (unknown.count++ == 0) unknown.first = child.where();
    return true;
  });
  for (XmlElement& child : element.children) removeUnknown(child, unknown);
}

/// Comma separated words of up to eight hexadecimal digits.
bool isCpuSet(std::string_view text) {
  std::size_t digits = 0;
  for (const char c : text) {
    const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (hex ? ++digits > 8 : (c != ',' || std::exchange(digits, 0) == 0)) return false;
  }
  return text.empty() || digits > 0;
}

class Check {
 public:
  Status run(const XmlElement& system) {
    if (system.name != "system") {
      return fail(ncclInvalidUsage, "{}: the root of a topology file is <system>{}", system.where(),
                  system.name == "graphs" ? "; this is a graph file (NCCL_GRAPH_FILE)" : "");
    }
    ASSIGN(const int version, intAttribute(system, "version"));
    if (version != 1) {
      return fail(ncclInvalidUsage, "{}: version=\"{}\": files of version 1 are read", system.where(), version);
    }
    return children(system);
  }

 private:
  Status children(const XmlElement& parent) {
    if (parent.children.size() > kMaxTopologyChildren) {
      return fail(ncclInvalidUsage, "{}: {} elements in it, at most {} are read", parent.where(),
                  parent.children.size(), kMaxTopologyChildren);
    }
    for (const XmlElement& child : parent.children) {
      if (++elements_ > kMaxTopologyElements) {
        return fail(ncclInvalidUsage, "{}: more than {} elements", child.where(), kMaxTopologyElements);
      }
      TRY(attributes(child));
      TRY(children(child));
    }
    return {};
  }

  Status attributes(const XmlElement& element) {
    const std::string_view name = element.name;
    if (name == "cpu") return cpu(element);
    if (name == "pci") return pci(element);
    if (name == "gpu") return gpu(element);
    if (name == "net") return net(element);
    if (name == "nvlink") {
      TRY(busIdAttribute(element, "target"));
      return intAttribute(element, "count", {}, {0, kMaxLinks}).status();
    }
    if (name == "c2c") {
      TRY(intAttribute(element, "bw", {}, {.least = 0}));
      return intAttribute(element, "count", {}, {0, kMaxLinks}).status();
    }
    if (name == "pcilink") return busIdAttribute(element, "target").status();
    return {};
  }

  Status cpu(const XmlElement& element) {
    ASSIGN(host_, hexAttribute(element, "host_hash", 0));
    TRY(intAttribute(element, "numaid"));
    TRY(intAttribute(element, "familyid", 0));
    TRY(intAttribute(element, "modelid", 0));
    const std::string* affinity = element.find("affinity");
    if (affinity == nullptr || isCpuSet(*affinity)) return {};
    return fail(ncclInvalidUsage, "{}: affinity=\"{}\" is not a list of 32-bit hexadecimal words", element.where(),
                shownText(*affinity));
  }

  Status pci(const XmlElement& element) {
    ASSIGN(const std::uint64_t busId, busIdAttribute(element, "busid"));
    const auto [known, isNew] = busIds_[host_].try_emplace(busId, &element);
    if (!isNew) {
      return fail(ncclInvalidUsage, "{}: busid=\"{}\" is already that of {}", element.where(),
                  shownText(*element.find("busid")), known->second->where());
    }
    TRY(intAttribute(element, "link_width", 0, {0, kMaxLinks}));
    for (const char* id : {"vendor", "device", "subsystem_vendor", "subsystem_device"}) {
      ASSIGN(const std::uint64_t value, hexAttribute(element, id, 0));
      if (value > 0xffff) {
        return fail(ncclInvalidUsage, "{}: {}=\"{}\" has more than 16 bits", element.where(), id,
                    shownText(*element.find(id)));
      }
    }
    return {};
  }

  static Status gpu(const XmlElement& element) {
    TRY(intAttribute(element, "dev", {}, {0, kMaxIndex}));
    TRY(intAttribute(element, "sm", 0, {0, kMaxIndex}));
    TRY(intAttribute(element, "rank", 0, {.least = -1}));
    TRY(intAttribute(element, "gdr", 0));
    return intAttribute(element, "mlopart", -1, {-1, kMaxIndex}).status();
  }

  static Status net(const XmlElement& element) {
    TRY(intAttribute(element, "dev", 0, {0, kMaxIndex}));
    TRY(hexAttribute(element, "guid", 0));
    TRY(floatAttribute(element, "latency", 0.0f));
    for (const char* name : {"speed", "port", "maxconn", "gdr", "coll", "net", "gin", "rma", "rail", "plane"}) {
      TRY(intAttribute(element, name, 0));
    }
    return {};
  }

  static constexpr std::int64_t kMaxLinks = 1024;  ///< NVLinks, C2C links or lanes of one entry
  static constexpr std::int64_t kMaxIndex = 65535;

  int elements_ = 1;
  std::uint64_t host_ = 0;  ///< of the <cpu> being checked
  std::unordered_map<std::uint64_t, std::unordered_map<std::uint64_t, const XmlElement*>> busIds_;
};

}  // namespace

Status checkTopology(XmlElement& system) {
  Unknown unknown;
  removeUnknown(system, unknown);
  TRY(Check().run(system));
  if (unknown.count > 0) {
    info(kGraph, "{}: {} element{} left out that topology files do not have there, the first: {}",
         system.origin ? *system.origin : "topology", unknown.count, unknown.count == 1 ? "" : "s", unknown.first);
  }
  return {};
}

Result<XmlElement> parseTopology(std::string_view text, std::string_view origin) {
  ASSIGN(XmlElement system, parseXml(text, origin, {.elements = kMaxTopologyElements}));
  TRY(checkTopology(system));
  return system;
}

Result<XmlElement> readTopologyFile(const std::string& path, std::string_view asked) {
  ASSIGN(XmlElement system, readXmlFile(path, {.elements = kMaxTopologyElements}, asked));
  TRY(checkTopology(system));
  return system;
}

}  // namespace tutti::topo
