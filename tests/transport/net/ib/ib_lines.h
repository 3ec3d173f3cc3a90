// Lines of the network over verbs as people read them, to be compared whole.
#pragma once

#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "support/log_capture.h"

namespace tutti::test {

/// Without what differs from run to run: who wrote a line and where, ports of sockets, seconds.
inline std::string plainLine(const std::string& line) {
  static const std::regex kSocket("<[0-9]+>"), kSeconds("[0-9]+\\.[0-9] s\\b");
  const std::string mark = "NCCL ";
  const std::size_t at = line.find(mark);
  std::string text = at == std::string::npos ? line : line.substr(at + mark.size());
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return std::regex_replace(std::regex_replace(text, kSocket, "<PORT>"), kSeconds, "N s");
}

/// What the log gets from now on.
class IbLines {
 public:
  /// Those since the last time, oldest first: "WARN NET/IB : …".
  std::vector<std::string> take() {
    const std::vector<std::string> all = capturedLog();
    std::vector<std::string> lines;
    for (; seen_ < all.size(); ++seen_) lines.push_back(plainLine(all[seen_]));
    return lines;
  }

 private:
  std::size_t seen_ = capturedLog().size();
};

}  // namespace tutti::test
