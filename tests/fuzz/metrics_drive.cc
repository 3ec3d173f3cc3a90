#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "ras_drive.h"
#include "tutti_info/metrics.h"

namespace tutti::fuzz {

namespace {

/// One text, for comparison: of a number that is none as well.
std::string textOf(const tool::Sample& sample) {
  std::string text = sample.name;
  for (const auto& [name, value] : sample.labels) text += fmt::format("\n{}\n{}", name, value);
  return fmt::format("{}\n{}", text, sample.value);
}

std::vector<std::string> sorted(const std::vector<tool::Sample>& samples) {
  std::vector<std::string> texts;
  for (const tool::Sample& sample : samples) texts.push_back(textOf(sample));
  std::sort(texts.begin(), texts.end());
  return texts;
}

bool plain(char c) {
  return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
}

std::string driveTable(const std::vector<tool::Sample>& before, const std::vector<tool::Sample>& now) {
  const std::string table = tool::topTable(before, now, 1);
  const auto lines = static_cast<std::size_t>(std::count(table.begin(), table.end(), '\n'));
  if (lines < 1 || lines > now.size() + 1 || table.back() != '\n') return "the table has lines that are no rank's";
  const bool clean = std::all_of(table.begin(), table.end(), [](char c) { return c == '\n' || plain(c); });
  return clean ? "" : "the table holds control characters";
}

}  // namespace

std::string driveMetrics(std::string_view text) {
  constexpr char kNext = '\x1e';
  std::vector<std::string> texts(1);
  for (const char c : text) {
    if (c == kNext) {
      texts.emplace_back();
    } else {
      texts.back() += c;
    }
  }
  std::vector<tool::Sample> samples;
  std::size_t bytes = texts.size();  // each may lack its last new line
  for (const std::string& one : texts) {
    const std::vector<tool::Sample> more = tool::parseSamples(one);
    samples.insert(samples.end(), more.begin(), more.end());
    bytes += one.size();
  }
  for (const tool::Sample& sample : samples) {
    if (sample.name.empty() || sample.name.find('\n') != std::string::npos) return "a sample without a name";
  }
  const std::string joined = tool::joinMetrics(texts);
  if (joined.size() > bytes) return "joined texts are longer than they were";
  if (tool::joinMetrics({joined}) != joined) return "what was joined does not come back as it was";
  const std::vector<tool::Sample> again = tool::parseSamples(joined);
  if (sorted(again) != sorted(samples)) return "samples change when texts are joined";
  return driveTable(tool::parseSamples(texts.front()), again);
}

}  // namespace tutti::fuzz
