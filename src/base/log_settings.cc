#include "base/log_settings.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <climits>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/host.h"

namespace tutti {

namespace {

using Word = std::pair<std::string_view, std::uint32_t>;

constexpr std::array<Word, 19> kSubsysWords{{{"INIT", kInit},
                                             {"COLL", kColl},
                                             {"P2P", kP2p},
                                             {"SHM", kShm},
                                             {"NET", kNet},
                                             {"GRAPH", kGraph},
                                             {"TUNING", kTuning},
                                             {"ENV", kEnv},
                                             {"ALLOC", kAlloc},
                                             {"CALL", kCall},
                                             {"PROXY", kProxy},
                                             {"NVLS", kNvls},
                                             {"BOOTSTRAP", kBootstrap},
                                             {"REG", kReg},
                                             {"PROFILE", kProfile},
                                             {"RAS", kRas},
                                             {"DESTROY", kDestroy},
                                             {"ALLOC_HOST", kAllocHost},
                                             {"ALL", kAllSubsys}}};

constexpr std::uint32_t bit(LogLevel level) {
  return 1U << static_cast<unsigned>(level);
}

constexpr std::array<Word, 6> kLevelWords{{{"VERSION", bit(LogLevel::Version)},
                                           {"WARN", bit(LogLevel::Warn)},
                                           {"INFO", bit(LogLevel::Info)},
                                           {"ABORT", bit(LogLevel::Abort)},
                                           {"TRACE", bit(LogLevel::Trace)},
                                           {"ALL", 0xffffffffU}}};

std::string upper(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return result;
}

template <std::size_t N>
std::optional<std::uint32_t> bitsOf(const std::string& word, const std::array<Word, N>& words) {
  for (const auto& [name, bits] : words) {
    if (word == name) return bits;
  }
  return std::nullopt;
}

/// Comma separated words, "^" in front inverts. Nothing where any word is unknown.
template <std::size_t N>
std::optional<std::uint32_t> parseWords(std::string_view text, const std::array<Word, N>& words) {
  const bool inverted = text.starts_with('^');
  if (inverted) text.remove_prefix(1);
  std::uint32_t mask = 0;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const auto bits = bitsOf(upper(text.substr(0, comma)), words);
    if (!bits) return std::nullopt;
    mask |= *bits;
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return inverted ? ~mask : mask;
}

std::string parseStampFormat(std::string_view text) {
  if (text.size() > 255) return kDefaultStampFormat;
  std::string format(text);
  std::replace(format.begin(), format.end(), '_', ' ');
  return format;
}

}  // namespace

LogLevel parseLogLevel(std::string_view text) {
  const std::string word = upper(text);
  if (word == "VERSION") return LogLevel::Version;
  if (word == "WARN") return LogLevel::Warn;
  if (word == "INFO") return LogLevel::Info;
  if (word == "ABORT") return LogLevel::Abort;
  if (word == "TRACE") return LogLevel::Trace;
  return LogLevel::None;
}

std::uint32_t parseSubsys(std::string_view text) {
  return parseWords(text, kSubsysWords).value_or(kDefaultSubsys);
}

std::uint32_t parseStampLevels(std::string_view text) {
  return parseWords(text, kLevelWords).value_or(LogSettings().stampLevels);
}

std::string expandFilePattern(std::string_view pattern, std::string_view host, long pid) {
  std::string path;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'h')
      path += host;
    else if (next == 'p')
      path += std::to_string(pid);
    else if (next == '%')
      path += '%';
    else if (next != '\0')
      path.append(pattern.substr(i, 2));
    else
      path += pattern[i];
    if (next != '\0') ++i;
  }
  return path.size() < PATH_MAX ? path : std::string();
}

LogSettings readLogSettings(const EnvReader& env) {
  LogSettings settings;
  settings.level = parseLogLevel(env.get("NCCL_DEBUG").value_or(""));
  if (const auto text = env.get("NCCL_DEBUG_SUBSYS"); text && !text->empty()) settings.subsys = parseSubsys(*text);
  if (const auto text = env.get("NCCL_DEBUG_TIMESTAMP_LEVELS")) settings.stampLevels = parseStampLevels(*text);
  if (const auto text = env.get("NCCL_DEBUG_TIMESTAMP_FORMAT")) settings.stampFormat = parseStampFormat(*text);
  if (const auto text = env.get("NCCL_DEBUG_FILE"); text && settings.level > LogLevel::Version) {
    settings.filePath = expandFilePattern(*text, hostName(), ::getpid());
  }
  if (const auto text = env.get("NCCL_WARN_ENABLE_DEBUG_INFO")) {
    settings.infoAfterWarn = std::strtoll(text->c_str(), nullptr, 0) != 0;
  }
  return settings;
}

}  // namespace tutti
