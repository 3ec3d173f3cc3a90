#include "topo/detect/hwloc_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <pugixml.hpp>
#include <string_view>
#include <vector>

#include "topo/xml/scan.h"

namespace tutti::topo {
namespace {

constexpr int kMaxDepth = 128;           ///< objects in each other
constexpr int kMaxObjects = 1 << 16;     ///< a machine of thousands of processors has fewer
constexpr std::size_t kMaxWords = 1024;  ///< of a set: 32768 processors

/// Bits, 32 in a word, lowest first.
using Bits = std::vector<std::uint32_t>;

/// "0x000000ff,,0x0000ffff", most significant first; an empty word is 0. False for anything else, sets without an end
/// ("0xf...f") included.
bool parseBits(std::string_view text, Bits& bits) {
  bits.clear();
  if (text.empty()) return false;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    std::string_view word = text.substr(at, end - at);
    std::uint32_t value = 0;
    if (!word.empty() || at == 0) {
      if (word.substr(0, 2) != "0x" || word.size() > 10) return false;
      word.remove_prefix(2);
      const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value, 16);
      if (error != std::errc() || stop != word.data() + word.size()) return false;
    }
    bits.push_back(value);
    if (bits.size() > kMaxWords) return false;
    at = end + 1;
  }
  std::reverse(bits.begin(), bits.end());
  return true;
}

bool isWithin(const Bits& inner, const Bits& outer) {
  for (std::size_t i = 0; i < inner.size(); ++i) {
    if ((inner[i] & ~(i < outer.size() ? outer[i] : 0)) != 0) return false;
  }
  return true;
}

int countOf(const Bits& bits) {
  int count = 0;
  for (const std::uint32_t word : bits) count += std::popcount(word);
  return count;
}

/// The sets that every object has but those of devices.
struct Sets {
  Bits cpus, completeCpus, nodes, completeNodes;
};

bool readSets(const pugi::xml_node& object, Sets& sets) {
  return parseBits(object.attribute("cpuset").as_string(), sets.cpus) &&
         parseBits(object.attribute("complete_cpuset").as_string(), sets.completeCpus) &&
         parseBits(object.attribute("nodeset").as_string(), sets.nodes) &&
         parseBits(object.attribute("complete_nodeset").as_string(), sets.completeNodes) &&
         isWithin(sets.cpus, sets.completeCpus) && isWithin(sets.nodes, sets.completeNodes);
}

bool isWithin(const Sets& inner, const Sets& outer) {
  return isWithin(inner.cpus, outer.cpus) && isWithin(inner.completeCpus, outer.completeCpus) &&
         isWithin(inner.nodes, outer.nodes) && isWithin(inner.completeNodes, outer.completeNodes);
}

template <std::size_t N>
bool isOneOf(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

constexpr std::array<std::string_view, 3> kDevices = {"PCIDev", "Bridge", "OSDev"};
constexpr std::array<std::string_view, 15> kPlaces = {"Package", "Group",    "NUMANode", "PU",       "Core",
                                                      "Die",     "L1Cache",  "L2Cache",  "L3Cache",  "L4Cache",
                                                      "L5Cache", "L1iCache", "L2iCache", "L3iCache", "MemCache"};

/// Goes through the objects, and takes out what hwloc is not to see.
class Checker {
 public:
  /// What is wrong with an object, and where; empty: nothing.
  std::string check(pugi::xml_node object, const Sets* above, bool inDevice, int depth) {
    if (depth > kMaxDepth) return complaint(object, "stands deeper than in any machine");
    if (++objects_ > kMaxObjects) return complaint(object, "is one of more than any machine has");
    const std::string_view type = object.attribute("type").as_string();
    const bool device = isOneOf(type, kDevices);
    Sets own;
    if (device) {
      for (const char* set : {"cpuset", "complete_cpuset", "nodeset", "complete_nodeset"}) object.remove_attribute(set);
    } else {
      const bool known = above == nullptr ? type == "Machine" : isOneOf(type, kPlaces);
      if (!known || inDevice) return complaint(object, "is of a type that is not known there");
      if (!readSets(object, own)) return complaint(object, "has no sets of processors and nodes");
      const bool one = (type != "PU" || countOf(own.cpus) == 1) && (type != "NUMANode" || countOf(own.nodes) == 1);
      const bool within = above == nullptr || isWithin(own, *above);
      if (!one || !within) return complaint(object, "has sets that do not fit");
    }
    for (pugi::xml_node child = object.first_child(); child;) {
      const pugi::xml_node next = child.next_sibling();
      std::string wrong;
      if (std::strcmp(child.name(), "object") == 0 && std::strcmp(child.attribute("type").as_string(), "Misc") != 0) {
        wrong = check(child, device ? above : &own, inDevice || device, depth + 1);
      } else if (std::strcmp(child.name(), "info") != 0 || !child.attribute("name") || !child.attribute("value")) {
        object.remove_child(child);
      }
      if (!wrong.empty()) return wrong;
      child = next;
    }
    return {};
  }

 private:
  static std::string complaint(const pugi::xml_node& object, std::string_view what) {
    return fmt::format("the object {} {} {}", shownText(object.attribute("type").as_string()),
                       shownText(object.attribute("gp_index").as_string()), what);
  }

  int objects_ = 0;
};

struct TextWriter : pugi::xml_writer {
  void write(const void* data, std::size_t size) override { text.append(static_cast<const char*>(data), size); }
  std::string text;
};

}  // namespace

std::optional<std::string> checkedHwlocXml(const std::string& text, std::string& why) {
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(text.data(), text.size());
  if (!parsed) {
    why = fmt::format("line {}: not well formed: {}", lineOf(text, parsed.offset), parsed.description());
    return std::nullopt;
  }
  pugi::xml_node topology = document.child("topology");
  pugi::xml_node machine = topology.child("object");
  if (std::strncmp(topology.attribute("version").as_string(), "2.", 2) != 0 || machine.next_sibling("object")) {
    why =
        "no topology of hwloc 2 (root element <topology version=\"2.…\">); write one with 'lstopo --whole-io "
        "machine.xml'";
    return std::nullopt;
  }
  why = machine ? Checker().check(machine, nullptr, false, 0) : "there is no machine in it";
  if (!why.empty()) return std::nullopt;
  while (topology.first_child() != machine) topology.remove_child(topology.first_child());
  while (machine.next_sibling()) topology.remove_child(machine.next_sibling());
  TextWriter writer;
  topology.print(writer, "", pugi::format_raw | pugi::format_no_declaration);
  return std::move(writer.text);
}

}  // namespace tutti::topo
