#include "topo/xml/values.h"

#include <array>
#include <charconv>
#include <cmath>

#include "topo/xml/scan.h"

namespace tutti::topo {

namespace {

Status missing(const XmlElement& element, std::string_view name) {
  return fail(ncclInvalidUsage, "{}: the attribute '{}' is missing", element.where(), name);
}

Status wrong(const XmlElement& element, std::string_view name, const std::string& value, std::string_view wanted) {
  return fail(ncclInvalidUsage, "{}: {}=\"{}\" is not {}", element.where(), name, shownText(value), wanted);
}

/// Nothing said, where nothing need be said: NCCL writes "" for what it could not read from the system.
template <typename T>
bool isAbsent(const std::string* text, const std::optional<T>& fallback) {
  return text == nullptr || (text->empty() && fallback.has_value());
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// All of `text` as a number of that base.
template <typename T>
std::optional<T> wholeNumber(std::string_view text, int base) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view withoutHexMark(std::string_view text) {
  return text.starts_with("0x") || text.starts_with("0X") ? text.substr(2) : text;
}

std::optional<std::int64_t> cLiteral(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  std::optional<std::uint64_t> value;
  if (const std::string_view hex = withoutHexMark(text); hex.size() != text.size()) {
    value = wholeNumber<std::uint64_t>(hex, 16);
  } else {
    value = wholeNumber<std::uint64_t>(text, text.starts_with('0') ? 8 : 10);
  }
  if (!value || *value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  return negative ? -static_cast<std::int64_t>(*value) : static_cast<std::int64_t>(*value);
}

constexpr std::array<Word<PciClass>, 6> kPciClasses = {{
    {"0x060400", PciClass::Switch},
    {"0x080100", PciClass::Switch},  // ConnectX-8 data direct
    {"0x068000", PciClass::NvSwitch},
    {"0x068001", PciClass::CpuBridge},
    {"0x03", PciClass::Gpu},
    {"0x02", PciClass::Nic},
}};

/// "32 GT/s" is how sysfs wrote it once, "32.0 GT/s PCIe" how it writes it now; a mixture of both is unknown.
constexpr std::array<Word<int>, 10> kLaneSpeeds = {{
    {"2.5 GT/s", 15},
    {"5 GT/s", 30},
    {"8 GT/s", 60},
    {"16 GT/s", 120},
    {"32 GT/s", 240},
    {"5.0 GT/s PCIe", 30},
    {"8.0 GT/s PCIe", 60},
    {"16.0 GT/s PCIe", 120},
    {"32.0 GT/s PCIe", 240},
    {"64.0 GT/s PCIe", 480},
}};
constexpr int kGen3LaneSpeed = 60;

}  // namespace

Result<int> intAttribute(const XmlElement& element, std::string_view name, std::optional<int> fallback,
                         IntRange range) {
  const std::string* text = element.find(name);
  if (isAbsent(text, fallback)) return fallback ? Result<int>(*fallback) : missing(element, name);
  const std::optional<std::int64_t> value = cLiteral(trimmed(*text));
  if (!value) return wrong(element, name, *text, "an integer");
  if (*value < range.least || *value > range.most) {
    return wrong(element, name, *text, fmt::format("within {} and {}", range.least, range.most));
  }
  return static_cast<int>(*value);
}

Result<std::uint64_t> hexAttribute(const XmlElement& element, std::string_view name,
                                   std::optional<std::uint64_t> fallback) {
  const std::string* text = element.find(name);
  if (isAbsent(text, fallback)) return fallback ? Result<std::uint64_t>(*fallback) : missing(element, name);
  const auto value = wholeNumber<std::uint64_t>(withoutHexMark(trimmed(*text)), 16);
  return value ? Result<std::uint64_t>(*value) : wrong(element, name, *text, "a hexadecimal number of up to 64 bits");
}

Result<float> floatAttribute(const XmlElement& element, std::string_view name, std::optional<float> fallback) {
  const std::string* text = element.find(name);
  if (isAbsent(text, fallback)) return fallback ? Result<float>(*fallback) : missing(element, name);
  const std::string_view digits = trimmed(*text);
  float value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool good = error == std::errc() && end == digits.data() + digits.size() && std::isfinite(value) && value >= 0;
  return good ? Result<float>(value) : wrong(element, name, *text, "a number of zero or more");
}

Result<std::string> textAttribute(const XmlElement& element, std::string_view name,
                                  std::optional<std::string> fallback) {
  if (const std::string* text = element.find(name)) return *text;
  return fallback ? Result<std::string>(*std::move(fallback)) : missing(element, name);
}

Result<std::uint64_t> busIdAttribute(const XmlElement& element, std::string_view name) {
  const std::string* text = element.find(name);
  if (text == nullptr) return missing(element, name);
  const std::optional<std::uint64_t> busId = parseBusId(*text);
  return busId ? Result<std::uint64_t>(*busId) : wrong(element, name, *text, "a bus id like 0000:1b:00.0");
}

std::optional<std::uint64_t> parseBusId(std::string_view text) {
  constexpr std::size_t kTail = std::string_view(":bb:dd.f").size();
  if (text.size() <= kTail || text.size() > kTail + 8) return std::nullopt;
  const std::size_t domain = text.size() - kTail;
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char separator = i == domain || i == domain + 3 ? ':' : i == domain + 6 ? '.' : '\0';
    if (separator == '\0') {
      digits += text[i];
    } else if (text[i] != separator) {
      return std::nullopt;
    }
  }
  return wholeNumber<std::uint64_t>(digits, 16);
}

std::string busIdText(std::uint64_t busId) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", busId >> 20, (busId >> 12) & 0xff, (busId >> 4) & 0xff, busId & 0xf);
}

PciClass pciClassOf(std::string_view text) {
  const PciClass* found = findWord<PciClass>(kPciClasses, text);
  return found != nullptr ? *found : PciClass::Switch;
}

int pciLaneSpeed(std::string_view text) {
  const int* found = findWord<int>(kLaneSpeeds, text);
  return found != nullptr ? *found : kGen3LaneSpeed;
}

}  // namespace tutti::topo
