#include "topo/fuse.h"

#include <algorithm>

#include "topo/topology_xml.h"
#include "topo/xml_values.h"

namespace tutti {

namespace {

/// What an attribute says, 0 if it is missing or wrong: checkTopology() passed before.
std::uint64_t hexOrZero(const XmlElement& element, std::string_view name) {
  const std::string* text = element.find(name);
  return text == nullptr ? 0 : std::strtoull(text->c_str(), nullptr, 16);
}

int intOr(const XmlElement& element, std::string_view name, int fallback) {
  const std::string* text = element.find(name);
  return text == nullptr ? fallback : static_cast<int>(std::strtol(text->c_str(), nullptr, 0));
}

/// The same element without its children.
XmlElement shallow(const XmlElement& element) {
  return {.name = element.name,
          .line = element.line,
          .attributes = element.attributes,
          .children = {},
          .origin = element.origin};
}

class Trim {
 public:
  explicit Trim(const UsedLeaves& used) : used_(used) {}

  /// `element` with its used branches; false if nothing below it is used.
  bool copyUsed(const XmlElement& element, XmlElement& to) const {
    to = shallow(element);
    if (element.name == "net") return isUsedNet(element);
    bool any = false;
    const std::uint64_t busId = parseBusId(element.find("busid") ? *element.find("busid") : "").value_or(0);
    for (const XmlElement& child : element.children) {
      if (child.name == "gpu") {
        any = addGpus(child, busId, to) || any;
        continue;
      }
      XmlElement copy;
      const bool isLeafOfParent = child.name == "pcilink";
      const bool used = copyUsed(child, copy);
      if (used || isLeafOfParent) to.children.push_back(std::move(copy));
      any = any || used;
    }
    return any;
  }

 private:
  bool isUsedNet(const XmlElement& net) const {
    if (used_.allNets) return true;
    const std::string* name = net.find("name");
    return name != nullptr && std::find(used_.nets.begin(), used_.nets.end(), *name) != used_.nets.end();
  }

  /// One <gpu> for each rank that uses this one, as copies of it.
  bool addGpus(const XmlElement& gpu, std::uint64_t busId, XmlElement& to) const {
    bool any = false;
    const int partition = intOr(gpu, "mlopart", -1);
    for (const UsedGpu& used : used_.gpus) {
      if (used.busId != busId || (used.partition >= 0 && used.partition != partition)) continue;
      // A device described twice without partitions: each rank once.
      const auto hasRank = [&](const XmlElement& other) {
        return other.name == "gpu" && intOr(other, "rank", -1) == used.rank;
      };
      if (std::any_of(to.children.begin(), to.children.end(), hasRank)) continue;
      XmlElement& copy = to.children.emplace_back(gpu);
      copy.set("rank", std::to_string(used.rank));
      any = true;
    }
    return any;
  }

  const UsedLeaves& used_;
};

bool equalElements(const XmlElement& a, const XmlElement& b) {
  if (a.name != b.name || a.attributes.size() != b.attributes.size()) return false;
  if (a.attributes == b.attributes) return true;
  return std::all_of(a.attributes.begin(), a.attributes.end(), [&](const auto& attribute) {
    const std::string* other = b.find(attribute.first);
    return other != nullptr && *other == attribute.second;
  });
}

void mergeChildren(XmlElement& into, const XmlElement& from) {
  // What `from` brings twice itself stays twice: only children that were there before are candidates.
  const std::size_t had = into.children.size();
  for (const XmlElement& child : from.children) {
    const auto end = into.children.begin() + static_cast<std::ptrdiff_t>(had);
    const auto same =
        std::find_if(into.children.begin(), end, [&](const XmlElement& other) { return equalElements(other, child); });
    if (same == end) {
      into.children.push_back(child);
    } else {
      mergeChildren(*same, child);
    }
  }
}

/// Largest rank + 1 below `element`.
int ranksBelow(const XmlElement& element) {
  int ranks = element.name == "gpu" ? intOr(element, "rank", -1) + 1 : 0;
  for (const XmlElement& child : element.children) ranks = std::max(ranks, ranksBelow(child));
  return ranks;
}

std::size_t elementsOf(const XmlElement& element) {
  std::size_t elements = 1;
  for (const XmlElement& child : element.children) elements += elementsOf(child);
  return elements;
}

/// Makes a copy that of host `host`, of which each has `ranks` ranks.
void moveToHost(XmlElement& element, int host, int ranks) {
  // Above what adapters' numbers and indices usually use.
  constexpr int kHostShift = 48;
  const auto mark = static_cast<std::uint64_t>(host) << kHostShift;
  if (element.name == "cpu") {
    element.set("host_hash", fmt::format("{:#x}", hexOrZero(element, "host_hash") ^ mark));
  } else if (element.name == "net" && element.find("guid") != nullptr) {
    element.set("guid", fmt::format("{:#x}", hexOrZero(element, "guid") ^ mark));
  } else if (element.name == "gpu" && intOr(element, "rank", -1) >= 0) {
    element.set("rank", std::to_string(intOr(element, "rank", 0) + host * ranks));
  }
  for (XmlElement& child : element.children) moveToHost(child, host, ranks);
}

}  // namespace

XmlElement trimTopology(const XmlElement& system, const UsedLeaves& used) {
  XmlElement trimmed;
  Trim(used).copyUsed(system, trimmed);
  return trimmed;
}

XmlElement fuseTopologies(std::span<const XmlElement> systems) {
  if (systems.empty()) return {};
  XmlElement fused = systems.front();
  for (const XmlElement& system : systems.subspan(1)) mergeChildren(fused, system);
  return fused;
}

Result<XmlElement> copyHosts(const XmlElement& system, int hosts) {
  const std::size_t elements = elementsOf(system);
  if (hosts > 0 && elements > static_cast<std::size_t>(kMaxTopologyElements / hosts)) {
    return fail(ncclInvalidUsage, "{}: {} copies of {} elements are more than {}: ask for fewer hosts", system.where(),
                hosts, elements, kMaxTopologyElements);
  }
  XmlElement domain = shallow(system);
  const int ranks = ranksBelow(system);
  for (int host = 0; host < hosts; ++host) {
    for (const XmlElement& cpu : system.children) moveToHost(domain.children.emplace_back(cpu), host, ranks);
  }
  return domain;
}

void setHostHash(XmlElement& system, std::uint64_t hash) {
  for (XmlElement& child : system.children) {
    if (child.name == "cpu") child.set("host_hash", fmt::format("{:#x}", hash));
  }
}

}  // namespace tutti
