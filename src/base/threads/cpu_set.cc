#include "base/threads/cpu_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace tutti {

namespace {

/// The whole of `text` as a number in this base.
std::optional<unsigned> numberOf(std::string_view text, int base) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Takes the first part, up to a comma, off `rest`.
std::string_view takePart(std::string_view& rest) {
  const std::size_t end = std::min(rest.find(','), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

}  // namespace

std::optional<cpu_set_t> parseCpuList(std::string_view text) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (text.empty() || text.back() == ',') return std::nullopt;
  while (!text.empty()) {
    const std::string_view part = takePart(text);
    const std::size_t dash = part.find('-');
    const auto first = numberOf(part.substr(0, dash), 10);
    const auto last = dash == std::string_view::npos ? first : numberOf(part.substr(dash + 1), 10);
    if (!first || !last || *first > *last || *last >= CPU_SETSIZE) return std::nullopt;
    for (unsigned cpu = *first; cpu <= *last; ++cpu) CPU_SET(cpu, &set);
  }
  return set;
}

std::optional<cpu_set_t> parseCpuWords(std::string_view text) {
  constexpr unsigned kWordBits = 32;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (text.empty() || text.back() == ',') return std::nullopt;
  for (unsigned word = 0; !text.empty(); ++word) {
    const std::size_t comma = text.rfind(',');
    const std::size_t begin = comma == std::string_view::npos ? 0 : comma + 1;
    const auto bits = numberOf(text.substr(begin), 16);
    if (!bits) return std::nullopt;
    for (unsigned bit = 0; bit < kWordBits; ++bit) {
      if ((*bits >> bit & 1U) == 0) continue;
      if (word * kWordBits + bit >= CPU_SETSIZE) return std::nullopt;
      CPU_SET(word * kWordBits + bit, &set);
    }
    text = text.substr(0, begin == 0 ? 0 : begin - 1);
    if (begin == 1) return std::nullopt;  // nothing before the first comma
  }
  return set;
}

std::string cpuListText(const cpu_set_t& set) {
  std::string text;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    const int first = cpu;
    while (cpu + 1 < CPU_SETSIZE && CPU_ISSET(cpu + 1, &set)) ++cpu;
    if (!text.empty()) text += ',';
    text += first == cpu ? fmt::format("{}", first) : fmt::format("{}-{}", first, cpu);
  }
  return text;
}

std::optional<cpu_set_t> ownProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return std::nullopt;
  return set;
}

}  // namespace tutti
