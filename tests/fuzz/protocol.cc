#include "protocol.h"

#include <algorithm>

namespace tutti::fuzz {

namespace {

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  }
  return result;
}

/// A decimal number of 32 bits; -1: none.
long secondsOf(std::string_view text) {
  constexpr std::string_view kMost = "4294967295";
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) return -1;
  text.remove_prefix(std::min(text.find_first_not_of('0'), text.size() - 1));
  if (text.size() > kMost.size() || (text.size() == kMost.size() && text > kMost)) return -1;
  return std::stol(std::string(text));
}

}  // namespace

bool ProtocolModel::monitor(std::string_view upperCase, std::string_view line) {
  constexpr std::string_view kPrefix = "MONITOR ";
  if (!upperCase.starts_with(kPrefix)) return false;
  std::uint8_t groups = 0;
  for (std::size_t at = kPrefix.size(); at <= line.size();) {
    const std::size_t end = std::min(line.find(',', at), line.size());
    const std::string_view name = upperCase.substr(at, end - at);
    if (name != "LIFECYCLE" && name != "TRACE" && name != "ALL") {
      heard_ += "ERROR: Invalid event group '" + std::string(line.substr(at, end - at)) + "'\n";
      return true;
    }
    groups |= name == "LIFECYCLE" ? 1 : name == "TRACE" ? 2 : 3;
    at = end + 1;
  }
  groups_ = groups;
  stage_ = Stage::Monitor;
  heard_ += "OK\n";
  return true;
}

void ProtocolModel::command(std::string_view line) {
  const std::string upperCase = upper(line);
  constexpr std::string_view kTimeout = "TIMEOUT ";
  constexpr std::string_view kFormat = "SET FORMAT ";
  if (upperCase == "STATUS" || upperCase == "VERBOSE STATUS") {
    verbose_ = upperCase != "STATUS";
    stage_ = Stage::Report;
  } else if (upperCase == "MONITOR") {
    groups_ = 1;
    stage_ = Stage::Monitor;
    heard_ += "OK\n";
  } else if (upperCase.starts_with("CLIENT PROTOCOL ")) {
    heard_ += "SERVER PROTOCOL 2\n";
  } else if (upperCase.starts_with(kTimeout)) {
    const std::string value(line.substr(kTimeout.size()));
    const long seconds = secondsOf(value);
    if (seconds >= 0) timeout_ = seconds;
    heard_ += seconds >= 0 ? "OK\n" : "ERROR: Invalid timeout value " + value + "\n";
  } else if (upperCase.starts_with(kFormat)) {
    const std::string_view value = std::string_view(upperCase).substr(kFormat.size());
    if (value == "JSON" || value == "TEXT") json_ = value == "JSON";
    heard_ += value == "JSON" || value == "TEXT"
                  ? "OK\n"
                  : "ERROR: Invalid format " + std::string(line.substr(kFormat.size())) + "\n";
  } else if (!monitor(upperCase, line)) {
    heard_ += "ERROR: Unknown command " + std::string(line) + "\n";
  }
}

void ProtocolModel::said(char byte) {
  if (stage_ != Stage::Commands && stage_ != Stage::Monitor) return;
  if (byte != '\n') {
    line_ += byte;
    if (line_.size() > kLongestLine) stage_ = Stage::Closed;
    return;
  }
  if (line_.ends_with('\r')) line_.pop_back();
  command(line_);
  line_.clear();
}

void ProtocolModel::saidNothingMore() {
  if (stage_ == Stage::Monitor) stage_ = Stage::DeafMonitor;
  if (stage_ == Stage::Commands) stage_ = Stage::Closed;
}

void ProtocolModel::happened(std::uint8_t group, std::string_view text, std::string_view json) {
  if (stage_ != Stage::Monitor && stage_ != Stage::DeafMonitor) return;
  if ((groups_ & group) != 0) heard_ += json_ ? json : text;
}

void ProtocolModel::report(std::string_view text) {
  heard_ += text;
  stage_ = Stage::Over;
}

}  // namespace tutti::fuzz
