// What clients may ask, line by line.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace tutti::ras {

/// What tools compare only to warn.
inline constexpr int kClientProtocol = 2;

/// "CLIENT PROTOCOL n"; the number does not matter.
struct HandshakeCommand {};
/// "TIMEOUT s"; 0: no limit.
struct TimeoutCommand {
  std::uint32_t seconds = 0;
};
/// "SET FORMAT text" or "json".
struct FormatCommand {
  bool json = false;
};
/// "STATUS" or "VERBOSE STATUS".
struct StatusCommand {
  bool verbose = false;
};
/// "MONITOR [groups]"; bits of EventGroup.
struct MonitorCommand {
  std::uint8_t groups = 0;
};
/// Any other line: what is answered.
struct WrongCommand {
  std::string reply;
};
using Command =
    std::variant<HandshakeCommand, TimeoutCommand, FormatCommand, StatusCommand, MonitorCommand, WrongCommand>;

/// `line` without its end. Words in any case, one blank between them.
Command parseCommand(std::string_view line);

/// Cuts what comes into lines, which LF or CRLF ends. Not thread-safe.
class LineReader {
 public:
  /// A line that is longer is too long.
  static constexpr std::size_t kLongest = 1024;

  void add(std::string_view bytes) { pending_ += bytes; }
  /// The next line; unset where it has not come whole.
  std::optional<std::string> next();
  bool tooLong() const { return std::min(pending_.find('\n'), pending_.size()) > kLongest; }
  /// Bytes that have come, and are no line yet.
  std::size_t held() const { return pending_.size(); }

 private:
  std::string pending_;
};

}  // namespace tutti::ras
