// NCCL_DEBUG and its family as values: pure parsing, no state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/environment.h"
#include "base/log.h"

namespace tutti {

inline constexpr std::uint32_t kDefaultSubsys = kInit | kBootstrap | kEnv;
inline constexpr const char* kDefaultStampFormat = "[%F %T] ";

/// The parsed NCCL_DEBUG* variables.
struct LogSettings {
  LogLevel level = LogLevel::None;
  std::uint32_t subsys = kDefaultSubsys;
  std::uint32_t stampLevels = 1U << static_cast<unsigned>(LogLevel::Warn);  ///< bit per LogLevel
  std::string stampFormat = kDefaultStampFormat;                            ///< blanks in place of '_'; "": no stamps
  std::string filePath;                                                     ///< expanded; "": standard output
  bool infoAfterWarn = false;                                               ///< NCCL_WARN_ENABLE_DEBUG_INFO
};

LogSettings readLogSettings(const EnvReader& env);

LogLevel parseLogLevel(std::string_view text);
/// The whole value counts or nothing does: a list with an unknown word gives the default.
std::uint32_t parseSubsys(std::string_view text);
std::uint32_t parseStampLevels(std::string_view text);
/// Expands %h, %p, %%; any other %x stays as it is.
std::string expandFilePattern(std::string_view pattern, std::string_view host, long pid);

}  // namespace tutti
