// Attributes of the topology and graph files as values. Every error names file, line, element and attribute
// (ncclInvalidUsage). Without a `fallback` the attribute is required; a value that is there must be right. With one, an
// empty value counts as none.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/log.h"
#include "topo/xml/xml.h"

namespace tutti::topo {

/// Bounds of an integer, both included.
struct IntRange {
  std::int64_t least = std::numeric_limits<std::int32_t>::min();
  std::int64_t most = std::numeric_limits<std::int32_t>::max();
};

/// An integer as a C literal: 0x.. hexadecimal, 0.. octal, else decimal.
Result<int> intAttribute(const XmlElement& element, std::string_view name, std::optional<int> fallback = {},
                         IntRange range = {});
/// 64 bits in hexadecimal, with or without 0x.
Result<std::uint64_t> hexAttribute(const XmlElement& element, std::string_view name,
                                   std::optional<std::uint64_t> fallback = {});
/// A number, finite and not negative.
Result<float> floatAttribute(const XmlElement& element, std::string_view name, std::optional<float> fallback = {});
Result<std::string> textAttribute(const XmlElement& element, std::string_view name,
                                  std::optional<std::string> fallback = {});
/// "0000:1b:00.0" as a number: its hexadecimal digits without the separators.
Result<std::uint64_t> busIdAttribute(const XmlElement& element, std::string_view name);

/// The number of a bus id ("dddd:bb:dd.f", up to 8 digits before the first colon); empty if it is none.
std::optional<std::uint64_t> parseBusId(std::string_view text);
/// The other way round: "0000:1b:00.0".
std::string busIdText(std::uint64_t busId);

/// An entry of a dictionary: what a value begins with, and what that means.
template <typename T>
struct Word {
  std::string_view prefix;
  T value;
};

/// The first entry that `text` begins with; null if there is none.
template <typename T>
const T* findWord(std::span<const Word<T>> words, std::string_view text) {
  for (const Word<T>& word : words) {
    if (text.starts_with(word.prefix)) return &word.value;
  }
  return nullptr;
}

/// What a PCI function is by its class.
enum class PciClass : std::uint8_t { Switch, NvSwitch, CpuBridge, Gpu, Nic };
/// Of a `class` or `tclass` attribute; what nobody knows is a switch.
PciClass pciClassOf(std::string_view text);
/// Of a `link_speed` attribute: 100 Mb/s per lane, of Gen3 if unknown.
int pciLaneSpeed(std::string_view text);

}  // namespace tutti::topo
