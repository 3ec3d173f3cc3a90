#include "ras/client/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "ras/report/event.h"

namespace tutti::ras {

namespace {

char upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

bool equal(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return upper(x) == upper(y); });
}

/// What follows `prefix` in `line`; unset where it begins otherwise.
std::optional<std::string_view> after(std::string_view line, std::string_view prefix) {
  if (line.size() < prefix.size() || !equal(line.substr(0, prefix.size()), prefix)) return std::nullopt;
  return line.substr(prefix.size());
}

Command timeoutOf(std::string_view text) {
  TimeoutCommand command;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), command.seconds);
  if (error == std::errc() && end == text.data() + text.size()) return command;
  return WrongCommand{fmt::format("ERROR: Invalid timeout value {}\n", text)};
}

Command formatOf(std::string_view text) {
  if (equal(text, "text")) return FormatCommand{false};
  if (equal(text, "json")) return FormatCommand{true};
  return WrongCommand{fmt::format("ERROR: Invalid format {}\n", text)};
}

Command monitorOf(std::string_view groups) {
  MonitorCommand command;
  for (std::size_t begin = 0; begin <= groups.size();) {
    const std::size_t end = std::min(groups.find(',', begin), groups.size());
    const std::string_view name = groups.substr(begin, end - begin);
    if (equal(name, "lifecycle")) {
      command.groups |= kLifecycle;
    } else if (equal(name, "trace")) {
      command.groups |= kTrace;
    } else if (equal(name, "all")) {
      command.groups |= kLifecycle | kTrace;
    } else {
      return WrongCommand{fmt::format("ERROR: Invalid event group '{}'\n", name)};
    }
    begin = end + 1;
  }
  return command;
}

}  // namespace

Command parseCommand(std::string_view line) {
  if (equal(line, "STATUS")) return StatusCommand{false};
  if (equal(line, "VERBOSE STATUS")) return StatusCommand{true};
  if (equal(line, "MONITOR")) return MonitorCommand{kLifecycle};
  if (after(line, "CLIENT PROTOCOL ")) return HandshakeCommand{};
  if (const auto text = after(line, "TIMEOUT ")) return timeoutOf(*text);
  if (const auto text = after(line, "SET FORMAT ")) return formatOf(*text);
  if (const auto text = after(line, "MONITOR ")) return monitorOf(*text);
  return WrongCommand{fmt::format("ERROR: Unknown command {}\n", line)};
}

std::optional<std::string> LineReader::next() {
  const std::size_t end = pending_.find('\n');
  if (end == std::string::npos || end > kLongest) return std::nullopt;
  std::string line = pending_.substr(0, end);
  pending_.erase(0, end + 1);
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return line;
}

}  // namespace tutti::ras
