// The layout of one log line: pure text building.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

#include "base/log.h"

namespace tutti {

/// What a line is. LogLevel says when it is printed; this says how it looks.
enum class LineClass : std::uint8_t { Version, Warn, Error, Info, Abort, Trace, Call };

/// Everything around the text of a line.
struct LineContext {
  LineClass kind = LineClass::Info;
  std::string stamp;  ///< formatted time stamp, "" for none
  std::string host;
  int device = 0;
  SourcePlace where;
  double elapsedMs = 0;  ///< since the log began; TRACE lines show it
};

/// For NCCL_DEBUG_TIMESTAMP_LEVELS.
LogLevel levelOf(LineClass kind);

/// The finished line: at most 1024 bytes, ends in exactly one newline; WARN and ERROR also start with one.
std::string layOutLine(const LineContext& context, std::string_view text);

/// `format` as strftime with %1f…%9f for fractions of a second; local time; "" where the format is empty.
std::string formatStamp(std::string_view format, const std::timespec& time);

/// "/x/src/base/log.cc" -> "base/log.cc".
std::string_view sourcePath(std::string_view file);
/// "tutti::Status tutti::A::f(int) const" -> "f".
std::string_view functionName(std::string_view signature);

}  // namespace tutti
