#include <algorithm>
#include <charconv>
#include <utility>

#include "metrics.h"

namespace tutti::tool {

namespace {

/// Takes `{name="value",…}` off the front; false: it is damaged.
bool takeLabels(std::string_view& line, Sample& sample) {
  line.remove_prefix(1);
  while (!line.empty() && line.front() != '}') {
    const std::size_t equals = line.find("=\"");
    if (equals == std::string_view::npos) return false;
    std::string& value = sample.labels[std::string(line.substr(0, equals))];
    line.remove_prefix(equals + 2);
    while (!line.empty() && line.front() != '"') {
      if (line.front() == '\\' && line.size() > 1) {
        line.remove_prefix(1);
        value += line.front() == 'n' ? '\n' : line.front();
      } else {
        value += line.front();
      }
      line.remove_prefix(1);
    }
    if (line.empty()) return false;
    line.remove_prefix(1);
    if (!line.empty() && line.front() == ',') line.remove_prefix(1);
  }
  if (line.empty()) return false;
  line.remove_prefix(1);
  return true;
}

bool parse(std::string_view line, Sample& sample) {
  const std::size_t end = line.find_first_of("{ ");
  if (line.empty() || line.front() == '#' || end == 0 || end == std::string_view::npos) return false;
  sample.name = line.substr(0, end);
  line.remove_prefix(end);
  if (line.front() == '{' && !takeLabels(line, sample)) return false;
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return std::from_chars(line.data(), line.data() + line.size(), sample.value).ec == std::errc();
}

/// Calls `each` with every line, without its end.
template <class Each>
void forLines(std::string_view text, Each&& each) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    each(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

std::string_view Sample::label(std::string_view of) const {
  const auto found = labels.find(of);
  return found == labels.end() ? std::string_view() : std::string_view(found->second);
}

std::vector<Sample> parseSamples(std::string_view text) {
  std::vector<Sample> samples;
  forLines(text, [&](std::string_view line) {
    Sample sample;
    if (parse(line, sample)) samples.push_back(std::move(sample));
  });
  return samples;
}

std::string joinMetrics(const std::vector<std::string>& texts) {
  struct Family {
    std::string name;
    std::string heading;
    std::string samples;
  };
  std::vector<Family> families;  // in the order in which they are first met
  const auto of = [&](std::string_view name) -> Family& {
    const auto known =
        std::find_if(families.begin(), families.end(), [&](const Family& one) { return one.name == name; });
    return known != families.end() ? *known : families.emplace_back(Family{std::string(name), "", ""});
  };
  for (const std::string& text : texts) {
    std::vector<std::string> headed;  // families that a text before this one has introduced
    for (const Family& family : families) headed.push_back(family.name);
    forLines(text, [&](std::string_view line) {
      const bool comment = line.starts_with("# ");
      std::string_view rest = line;
      if (comment) rest.remove_prefix(std::min(line.find(' ', 2) + 1, line.size()));
      const std::string name(rest.substr(0, rest.find_first_of("{ ")));
      if (name.empty()) return;
      const bool before = std::find(headed.begin(), headed.end(), name) != headed.end();
      Family& family = of(name);
      if (!comment) (family.samples += line) += '\n';
      if (comment && !before) (family.heading += line) += '\n';
    });
  }
  std::string joined;
  for (const Family& family : families) joined += family.heading + family.samples;
  return joined;
}

}  // namespace tutti::tool
