#include "topo/xml/fuse.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <unordered_map>
#include <utility>

#include "topo/xml/topology_xml.h"
#include "topo/xml/values.h"

namespace tutti::topo {

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

/// A rank whose collNet does not work knows of the same NICs that they can do no collectives.
bool mayDiffer(const XmlElement& element, std::string_view attribute) {
  return element.name == "net" && attribute == "coll";
}

/// The same text for elements of equal name and attributes, in whichever order these stand; no text of a file has
/// characters 0.
std::string identityOf(const XmlElement& element) {
  std::vector<const std::pair<std::string, std::string>*> sorted;
  for (const auto& attribute : element.attributes) {
    if (!mayDiffer(element, attribute.first)) sorted.push_back(&attribute);
  }
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return *a < *b; });
  std::string identity = element.name;
  for (const auto* attribute : sorted) {
    ((identity += '\0') += attribute->first) += '\0';
    identity += attribute->second;
  }
  return identity;
}

/// Leaves what may differ only where both say the same.
void keepCommon(XmlElement& into, const XmlElement& from) {
  std::erase_if(into.attributes, [&](const auto& attribute) {
    const std::string* other = from.find(attribute.first);
    return mayDiffer(into, attribute.first) && (other == nullptr || *other != attribute.second);
  });
}

void mergeChildren(XmlElement& into, const XmlElement& from) {
  if (from.children.empty()) return;
  // What `from` brings twice itself stays twice: only children that were there before are candidates.
  std::unordered_map<std::string, std::size_t> had;
  for (std::size_t i = 0; i < into.children.size(); ++i) had.try_emplace(identityOf(into.children[i]), i);
  for (const XmlElement& child : from.children) {
    const auto same = had.find(identityOf(child));
    if (same == had.end()) {
      into.children.push_back(child);
    } else {
      keepCommon(into.children[same->second], child);
      mergeChildren(into.children[same->second], child);
    }
  }
}

/// Largest rank + 1 below `element`.
std::int64_t ranksBelow(const XmlElement& element) {
  std::int64_t ranks = element.name == "gpu" ? std::int64_t{intOr(element, "rank", -1)} + 1 : 0;
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
  const std::int64_t ranks = ranksBelow(system);
  if (ranks * hosts > std::numeric_limits<std::int32_t>::max()) {
    return fail(ncclInvalidUsage, "{}: {} copies of a host with rank {} have more ranks than can be counted",
                system.where(), hosts, ranks - 1);
  }
  for (int host = 0; host < hosts; ++host) {
    for (const XmlElement& cpu : system.children)
      moveToHost(domain.children.emplace_back(cpu), host, static_cast<int>(ranks));
  }
  return domain;
}

void setHostHash(XmlElement& system, std::uint64_t hash) {
  for (XmlElement& child : system.children) {
    if (child.name == "cpu") child.set("host_hash", fmt::format("{:#x}", hash));
  }
}

}  // namespace tutti::topo
