#include "softgpu/nvml/place.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace tutti::softgpu::nvml {
namespace {

constexpr unsigned kMostLinksOfAnElement = 1024;

unsigned number(const pugi::xml_node& node, const char* attribute) {
  return static_cast<unsigned>(std::strtoul(node.attribute(attribute).as_string(), nullptr, 0));
}

/// A vendor, a device or a class: hexadecimal, with or without 0x.
unsigned hexadecimal(const pugi::xml_node& node, const char* attribute) {
  return static_cast<unsigned>(std::strtoul(node.attribute(attribute).as_string(), nullptr, 16));
}

unsigned generationOf(const char* speed) {
  constexpr std::array<std::pair<double, unsigned>, 6> kGenerations = {
      {{2.5, 1}, {5, 2}, {8, 3}, {16, 4}, {32, 5}, {64, 6}}};
  const double transfers = std::strtod(speed, nullptr);
  for (const auto& [of, generation] : kGenerations) {
    if (transfers == of) return generation;
  }
  return 0;
}

LinkEnd endOf(std::string_view tclass) {
  if (tclass.starts_with("0x03")) return kEndGpu;
  if (tclass == "0x068000") return kEndSwitch;
  return tclass == "0x068001" ? kEndNpu : kEndUnknown;
}

/// As the kernel writes masks: words of 32 bits with commas between them, the last one first. None set: unknown.
std::vector<std::uint32_t> parseProcessors(std::string_view text) {
  std::vector<std::uint32_t> words;
  while (!text.empty()) {
    const std::size_t comma = text.rfind(',');
    const std::string word(comma == std::string_view::npos ? text : text.substr(comma + 1));
    words.push_back(static_cast<std::uint32_t>(std::strtoul(word.c_str(), nullptr, 16)));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(0, comma);
  }
  const bool any = std::any_of(words.begin(), words.end(), [](std::uint32_t word) { return word != 0; });
  return any ? words : std::vector<std::uint32_t>();
}

void readLinks(const pugi::xml_node& gpu, Place& place) {
  for (const pugi::xml_node& element : gpu.children("nvlink")) {
    const NvLink link{endOf(element.attribute("tclass").as_string()),
                      parseFunction(element.attribute("target").as_string()).value_or(Function())};
    const unsigned count = std::min(number(element, "count"), kMostLinksOfAnElement);
    for (unsigned i = 0; i < count && place.links.size() < kMaxLinks; ++i) place.links.push_back(link);
  }
  place.c2cLinks = number(gpu.child("c2c"), "count");
  place.c2cBandwidth = number(gpu.child("c2c"), "bw");
}

void readPci(const pugi::xml_node& pci, Place& place) {
  place.pcieGeneration = generationOf(pci.attribute("link_speed").as_string());
  place.pcieWidth = number(pci, "link_width");
  place.pciDeviceId = hexadecimal(pci, "device") << 16 | (hexadecimal(pci, "vendor") & 0xffffu);
  place.pciSubSystemId = hexadecimal(pci, "subsystem_device") << 16 | (hexadecimal(pci, "subsystem_vendor") & 0xffffu);
  if (const unsigned pciClass = hexadecimal(pci, "class"); pciClass != 0) place.pciClass = pciClass;
}

Place readPlace(const pugi::xml_node& pci) {
  Place place;
  place.known = true;
  readLinks(pci.child("gpu"), place);
  readPci(pci, place);
  pugi::xml_node above = pci.parent();
  for (; above && std::strcmp(above.name(), "cpu") != 0; above = above.parent()) {
    place.bridges.push_back(above.offset_debug());
  }
  place.cpu = above.offset_debug();
  place.numaNode = above.attribute("numaid").as_int(-1);
  place.processors = parseProcessors(above.attribute("affinity").as_string());
  return place;
}

}  // namespace

std::optional<Function> parseFunction(const char* text) {
  Function function;
  unsigned number = 0;
  if (std::sscanf(text, "%x:%x:%x.%x", &function.domain, &function.bus, &function.slot, &number) >= 3) return function;
  function.domain = 0;
  if (std::sscanf(text, "%x:%x.%x", &function.bus, &function.slot, &number) >= 2) return function;
  return std::nullopt;
}

std::vector<Place> readPlaces(const MachineFile& file) {
  std::vector<Place> places(file.devices.size());
  pugi::xml_document document;
  if (!document.load_buffer(file.text.data(), file.text.size())) return places;
  for (const auto& match : document.select_nodes("system/cpu//pci[gpu]")) {
    const std::optional<Function> found = parseFunction(match.node().attribute("busid").as_string());
    for (std::size_t i = 0; found && i < places.size(); ++i) {
      const DeviceFacts& facts = file.devices[i];
      if (*found == Function{facts.domain, facts.bus, facts.slot}) places[i] = readPlace(match.node());
    }
  }
  return places;
}

Ancestor commonAncestor(const Place& a, const Place& b) {
  if (a.cpu != b.cpu) return kSystem;
  const auto shared = std::find_first_of(a.bridges.begin(), a.bridges.end(), b.bridges.begin(), b.bridges.end());
  if (shared == a.bridges.end()) return kHostBridge;
  const bool nearest = shared == a.bridges.begin() && *shared == b.bridges.front();
  return nearest ? kOneSwitch : kSwitches;
}

}  // namespace tutti::softgpu::nvml
